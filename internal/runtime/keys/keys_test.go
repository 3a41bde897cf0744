package keys

import (
	"errors"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// A key has one claim at a time, here and, if it is shared, on all replicas.
func TestClaim(t *testing.T) {
	t.Parallel()
	held, err := storetest.NewMemory(time.Now).Namespace(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	one, other := New(held), New(held)
	claim := func(k *Keys, shared bool) (*Claim, error) {
		c, was, err := k.Claim(t.Context(), store.Idempotent{Key: "k", BodyHash: "h"}, shared)
		if was != nil {
			t.Errorf("an answer that nobody stored: %+v", was)
		}
		return c, err
	}
	for _, shared := range []bool{false, true} {
		c, err := claim(one, shared)
		if err != nil || c.Stored().Key != "k" {
			t.Fatalf("shared %v: %+v, %v", shared, c, err)
		}
		if _, err := claim(one, shared); !errors.Is(err, ErrInUse) {
			t.Errorf("shared %v: claimed twice: %v", shared, err)
		}
		there, err := claim(other, shared)
		if errors.Is(err, ErrInUse) != shared {
			t.Errorf("shared %v: at another replica: %v", shared, err)
		}
		there.Release()
		c.Release()
		if len(one.used)+len(other.used) != 0 {
			t.Errorf("shared %v: keys are in use after their release", shared)
		}
	}
}

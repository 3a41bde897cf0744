package storetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{Open: func(t *testing.T, now func() time.Time) store.Store {
		s := storetest.NewMemory(now)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		return s
	}})
}

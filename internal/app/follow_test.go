package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// One of the replicas runs maintenance. Another one takes over when it leaves, or when its lease is lost, which ends
// its round.
func TestMaintenanceInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		s := storetest.NewMemory(func() time.Time {
			return time.Now().Add(time.Duration(
				ahead.Load()))
		})
		a, b, alone := &turn{shared: true, store: s}, &turn{shared: true, store: s}, &turn{store: s}
		did := func(who *turn) (done bool) {
			who.Do(t.Context(), func(context.Context) { done = true })
			return done
		}
		if !did(a) || did(b) || !did(a) || !did(alone) {
			t.Error("want rounds of the first replica, none of the second, and of one that is alone")
		}
		a.End()
		if !did(b) || did(a) {
			t.Error("once the first one left: want rounds of the second")
		}
		var why error
		b.Do(t.Context(), func(ctx context.Context) {
			ahead.Add(int64(time.Hour))
			<-ctx.Done()
			why = context.Cause(ctx)
		})
		if !errors.Is(why, store.ErrFenced) {
			t.Errorf("a round whose lease was lost ended with %v, want ErrFenced", why)
		}
		if !did(a) || did(b) {
			t.Error("once the lease was lost: want rounds of the first one")
		}
		a.End()
	})
}

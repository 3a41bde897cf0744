package fair

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Work of one owner runs one at a time, with the requested rest in between. Its error is returned.
func TestPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lines[string]
		broken := errors.New("broken")
		rest := func(took time.Duration) time.Duration { return 2 * took }
		start := time.Now()
		for i, want := range []time.Duration{0, 3, 6} {
			err := l.Paced(t.Context(), "mallory", rest, func() error {
				if since := time.Since(start); since != want*time.Second {
					t.Errorf("work %d began after %v, want after %d s", i, since, want)
				}
				time.Sleep(time.Second)
				return broken
			})
			if !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		gone := errors.New("gone")
		all.Go(func() {
			if err := l.Paced(ctx, "mallory", rest,
				func() error { t.Error("it was done"); return nil }); !errors.Is(err, gone) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		if err := l.Paced(t.Context(), "alice", rest,
			func() error { return nil }); err != nil || time.Since(start) != 7*time.Second {
			t.Errorf("another owner waited until %v, %v", time.Since(start), err)
		}
		cancel(gone)
		all.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(l.by) > 0 {
			t.Errorf("%d owners hold places", len(l.by))
		}
	})
}

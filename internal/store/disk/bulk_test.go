package disk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Files of one owner are synced one at a time, in order of arrival, with a rest in between while others commit. Other
// owners do not wait for them.
func TestBulk(t *testing.T) {
	for name, tt := range map[string]struct {
		took   time.Duration
		others bool // whether others commit meanwhile
		want   []time.Duration
	}{
		"alone":       {10, false, []time.Duration{0, 10, 20, 30}},
		"with others": {10, true, []time.Duration{0, 50, 100, 150}},
		"a slow disk": {400, true, []time.Duration{0, 1400, 2800, 4200}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bulk
				var all sync.WaitGroup
				var mu sync.Mutex
				var got []time.Duration
				start := time.Now()
				file := func(owner string, note bool) {
					err := b.sync(t.Context(), agent.Owner{Name: owner}, func() error {
						if tt.others {
							b.light.Add(1)
						}
						mu.Lock()
						if note {
							got = append(got, time.Since(start)/time.Millisecond)
						}
						mu.Unlock()
						time.Sleep(tt.took * time.Millisecond)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
				for range tt.want {
					all.Go(func() { file("mallory", true) })
				}
				synctest.Wait()
				file("alice", false)
				if took := time.Since(start); took != tt.took*time.Millisecond {
					t.Errorf("another owner's file took %v", took)
				}
				all.Wait()
				if !slices.Equal(got, tt.want) {
					t.Errorf("syncs at %d ms, want %d", got, tt.want)
				}
			})
		})
	}
}

// A caller that gives up takes nothing, and a failed sync blocks nobody.
func TestBulkGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bulk
		mine := agent.Owner{Name: "mallory"}
		broken := errors.New("broken")
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if err := b.sync(t.Context(), mine,
				func() error { time.Sleep(time.Second); return broken }); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		gone := errors.New("gone")
		all.Go(func() {
			if err := b.sync(ctx, mine, func() error { t.Error("it was synced"); return nil }); !errors.Is(err, gone) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		cancel(gone)
		all.Wait()
		if err := b.sync(t.Context(), mine, func() error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

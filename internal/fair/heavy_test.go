package fair

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// The number of one owner's heavy pieces of work is bounded. Another owner's run at the same time, and short work never
// waits.
func TestHeavy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHeavy[string](1, 100)
		var mu sync.Mutex
		var begun []string
		end := make(chan struct{})
		do := func(ctx context.Context, owner string, bytes int) {
			go func() {
				if err := h.Enter(ctx, owner, bytes); err != nil {
					return
				}
				defer h.Leave(owner, bytes)
				mu.Lock()
				begun = append(begun, owner)
				mu.Unlock()
				if bytes >= 100 {
					<-end
				}
			}()
			synctest.Wait()
		}
		given, cancel := context.WithCancel(t.Context())
		for range 3 {
			do(given, "ann", 1000)
		}
		do(t.Context(), "ann", 99)
		do(t.Context(), "ben", 100)
		do(t.Context(), "eve", 100)
		if !slices.Equal(begun, []string{"ann", "ann", "ben"}) {
			t.Errorf("under way: %v", begun)
		}
		cancel()
		synctest.Wait()
		for range 3 {
			end <- struct{}{}
			synctest.Wait()
		}
		if !slices.Equal(begun, []string{"ann", "ann", "ben", "eve"}) {
			t.Errorf("in all: %v", begun)
		}
		if n, waiting := h.places.Used(); n != 0 || waiting != 0 {
			t.Errorf("left over: %d, %d", n, waiting)
		}
		var none *Heavy[string]
		if err := none.Enter(t.Context(), "ann", 1<<30); err != nil {
			t.Error(err)
		}
		none.Leave("ann", 1<<30)
	})
}

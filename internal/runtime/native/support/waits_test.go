package support

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// Go calls its function at once, and Wait has nothing to wait for.
func TestWaitGroupGo(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	n := 0
	WaitGroupGo(&wg)(func() { n++ })
	if n != 1 {
		t.Error("the function has not run")
	}
	wg.Wait()
}

// Keys come in order, without those deleted meanwhile, until the function returns false.
func TestSyncMapRange(t *testing.T) {
	t.Parallel()
	var m sync.Map
	for i := range 100 {
		m.Store(i, fmt.Sprint(i))
	}
	var got []int
	SyncMapRange(&m)(func(key, value any) bool {
		if value != fmt.Sprint(key) {
			t.Errorf("%v has %v", key, value)
		}
		m.Delete(key.(int) + 1)
		got = append(got, key.(int))
		return len(got) < 3
	})
	if !slices.Equal(got, []int{0, 2, 4}) {
		t.Errorf("got %v", got)
	}
}

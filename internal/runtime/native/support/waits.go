package support

import (
	"reflect"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// WaitGroupGo returns what replaces the method Go of a wait group: it calls the function at once.
func WaitGroupGo(wg *sync.WaitGroup) func(func()) {
	return func(f func()) {
		wg.Add(1)
		defer wg.Done()
		f()
	}
}

// SyncMapRange returns what replaces the method Range of a map: it visits the keys in the order of Range, and skips
// those deleted meanwhile.
func SyncMapRange(m *sync.Map) func(func(key, value any) bool) {
	return func(visit func(key, value any) bool) {
		var keys []any
		m.Range(func(key, _ any) bool {
			keys = append(keys, key)
			return true
		})
		slices.SortStableFunc(keys, func(a, b any) int {
			list := reflect.ValueOf([]any{a, b})
			return rt.CompareKeys(list.Index(0), list.Index(1))
		})
		for _, key := range keys {
			if value, ok := m.Load(key); ok && !visit(key, value) {
				return
			}
		}
	}
}

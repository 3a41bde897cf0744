package support

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// A Range visits the keys that a map had at its start, in the order of rt.CompareKeys, and skips those deleted
// meanwhile.
type Range[K comparable, V any] struct {
	m    map[K]V
	keys []K
	// odd holds the elements of keys that do not equal themselves (NaN), by index, because no lookup finds them.
	odd   map[int]V
	at    int // index of the next key
	key   K
	value V
}

// Over begins a range over m. Call Next before Key and Value.
func Over[M ~map[K]V, K comparable, V any](m M) Range[K, V] {
	r := Range[K, V]{m: m}
	if len(m) == 0 {
		return r
	}
	r.keys = make([]K, 0, len(m))
	var odd []V
	for k, v := range m {
		if k != k && odd == nil {
			odd = make([]V, len(r.keys), len(m))
		}
		r.keys = append(r.keys, k)
		if odd != nil {
			odd = append(odd, v)
		}
	}
	if odd != nil {
		r.sortOdd(odd)
	} else {
		sortKeys(r.keys)
	}
	return r
}

// sortOdd sorts the keys, and records the elements of those that no lookup finds.
func (r *Range[K, V]) sortOdd(elements []V) {
	keys := make([]K, len(r.keys))
	r.odd = map[int]V{}
	for to, from := range keyOrder(r.keys) {
		keys[to] = r.keys[from]
		if keys[to] != keys[to] {
			r.odd[to] = elements[from]
		}
	}
	r.keys = keys
}

// Next advances to the next key that the map still has, and reports whether there is one.
func (r *Range[K, V]) Next() bool {
	for r.at < len(r.keys) {
		r.key = r.keys[r.at]
		r.at++
		v, ok := r.m[r.key]
		if !ok && r.odd != nil && len(r.m) > 0 {
			v, ok = r.odd[r.at-1]
		}
		if ok {
			r.value = v
			return true
		}
	}
	return false
}

// Key returns the current key.
func (r *Range[K, V]) Key() K { return r.key }

// Value returns the element of the current key as of the last call of Next.
func (r *Range[K, V]) Value() V { return r.value }

// sortKeys sorts a slice of keys that all equal themselves. It has no type parameters, because generic code is compiled
// again with each program.
func sortKeys(slice any) {
	keys := reflect.ValueOf(slice)
	switch keys.Type().Elem().Kind() {
	case reflect.String:
		slices.Sort(as[string](keys))
	case reflect.Int:
		slices.Sort(as[int](keys))
	case reflect.Int64:
		slices.Sort(as[int64](keys))
	case reflect.Int32:
		slices.Sort(as[int32](keys))
	case reflect.Uint8:
		slices.Sort(as[uint8](keys))
	case reflect.Uint64:
		slices.Sort(as[uint64](keys))
	case reflect.Float64:
		slices.Sort(as[float64](keys))
	// Left in the order of the map: addresses have no reproducible order.
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
	default:
		all := reflect.MakeSlice(keys.Type(), keys.Len(), keys.Len())
		reflect.Copy(all, keys)
		for to, from := range keyOrder(slice) {
			keys.Index(to).Set(all.Index(from))
		}
	}
}

// keyOrder returns the indices of a slice of keys in the order of the keys.
func keyOrder(slice any) []int {
	keys := reflect.ValueOf(slice)
	order := make([]int, keys.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return rt.CompareKeys(keys.Index(i), keys.Index(j)) })
	return order
}

// as reinterprets the memory of a slice as a []T. T must be the underlying type of its elements.
func as[T any](keys reflect.Value) []T {
	return unsafe.Slice((*T)(keys.UnsafePointer()), keys.Len())
}

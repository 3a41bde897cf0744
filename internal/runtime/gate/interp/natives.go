package interp

import (
	"iter"
	"reflect"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/symbols"
)

// natives returns what stands in for host symbols. Beside those of both engines the generic packages get from the host what cannot be
// written in Go.
func natives(env *rt.Env) *symbols.Natives {
	n := symbols.NewNatives(env)
	n.Add("slices.overlap", overlap)
	n.Add("maps.clone", cloneMap)
	n.Add("iter.pull", pull)
	n.Add("hash/maphash.appendComparable", appendComparable)
	return n
}

// overlap reports whether two non-empty slices of one type share memory.
func overlap(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	size := x.Type().Elem().Size()
	if size == 0 {
		return false
	}
	p, q := uintptr(x.UnsafePointer()), uintptr(y.UnsafePointer())
	return p < q+uintptr(y.Len())*size && q < p+uintptr(x.Len())*size
}

func cloneMap(m any) any {
	v := reflect.ValueOf(m)
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		out.SetMapIndex(it.Key(), it.Value())
	}
	return out.Interface()
}

// pull is iter.Pull for a sequence of nothing; the generic Pull is built upon it.
func pull(seq func(yield func() bool)) (next func() bool, stop func()) {
	step, stop := iter.Pull(func(yield func(struct{}) bool) {
		seq(func() bool { return yield(struct{}{}) })
	})
	return func() bool { _, ok := step(); return ok }, stop
}

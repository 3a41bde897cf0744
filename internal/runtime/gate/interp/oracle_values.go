package interp

import (
	"errors"
	"go/types"
	"reflect"
	"unsafe"
)

const (
	maxSampleSize = 64 << 10 // bytes of a value that is compared and hashed
	maxSamples    = 256      // of its leaves
)

// vary calls f with a value of t that is zero, and then again and again when one more leaf of it has got another value.
func (o *oracle) vary(t types.Type, f func(p unsafe.Pointer, changed *leaf)) {
	if o.sizes.Sizeof(t) > maxSampleSize {
		return
	}
	v := reflect.New(o.tt.layout(t))
	f(v.UnsafePointer(), nil)
	n := 0
	o.leaves(t, 0, false, func(l leaf) {
		other := otherThanZero(l.lay)
		if n++; n > maxSamples || l.blank || !other.IsValid() || len(o.faults) >= maxFaults {
			return
		}
		reflect.NewAt(l.lay, unsafe.Add(v.UnsafePointer(), l.off)).Elem().Set(other)
		f(v.UnsafePointer(), &l)
	})
}

var errSample = errors.New("sample")

// otherThanZero returns a value of a leaf's type that is not zero; none for an interface that asks for other methods than Error.
func otherThanZero(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1)
	case v.CanComplex():
		v.SetComplex(1)
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	case t.Kind() == reflect.String:
		v.SetString("other")
	case t.Kind() == reflect.Chan:
		v.Set(reflect.MakeChan(t, 0))
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
	case t.Kind() == reflect.UnsafePointer:
		v.SetPointer(unsafe.Pointer(new(int)))
	case t.Kind() == reflect.Interface && reflect.TypeOf(errSample).Implements(t):
		v.Set(reflect.ValueOf(errSample))
	default:
		return reflect.Value{}
	}
	return v
}

// checkEqual compares values that differ in one leaf, and equal ones.
func (o *oracle) checkEqual(t types.Type, rt reflect.Type) {
	equal := rtypeOf(rt).Equal
	if equal == nil {
		return
	}
	var last reflect.Value
	o.vary(t, func(p unsafe.Pointer, changed *leaf) {
		now := reflect.New(o.tt.layout(t))
		typedmemmove(rtypeOf(o.tt.layout(t)), now.UnsafePointer(), p)
		o.want(equal(p, now.UnsafePointer()) && equal(now.UnsafePointer(), p), "has values that are not equal to their copies")
		if changed != nil {
			o.want(!equal(p, last.UnsafePointer()) && !equal(last.UnsafePointer(), p), "has equal values that differ at byte %d", changed.off)
		}
		last = now
	})
}

// checkHasher compares the hashes of a map's keys with those of its twin, for two seeds.
func (o *oracle) checkHasher(key types.Type, m, twin *mapType) {
	o.vary(key, func(p unsafe.Pointer, _ *leaf) {
		for _, seed := range []uintptr{0, 12345} {
			o.want(m.Hasher(p, seed) == twin.Hasher(p, seed), "has another hash of its keys")
		}
	})
}

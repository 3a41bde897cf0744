package interp

import (
	"go/types"
	"math"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

func (c *compiler) slice(in *ssa.Slice) op {
	d, x := c.off(in), c.off(in.X)
	bound := func(v ssa.Value) *bound {
		if v == nil {
			return nil
		}
		return &bound{c.readInt(v.Type(), c.off(v)), isUnsigned(v.Type())}
	}
	b := bounds{bound(in.Low), bound(in.High), bound(in.Max)}
	switch t := in.X.Type().Underlying().(type) {
	case *types.Basic:
		return func(m unsafe.Pointer) {
			s := *(*string)(unsafe.Add(m, x))
			l, h := 0, len(s)
			if b.lo != nil {
				l = b.lo.of(m)
			}
			if b.hi != nil {
				h = b.hi.of(m)
			}
			if uint(l) > uint(h) || uint(h) > uint(len(s)) {
				b.outOfRange(m, len(s), len(s), true)
			}
			*(*string)(unsafe.Add(m, d)) = s[l:h]
		}
	case *types.Slice:
		size := c.layout(t.Elem()).Size
		return func(m unsafe.Pointer) {
			s := *(*sliceHeader)(unsafe.Add(m, x))
			*(*sliceHeader)(unsafe.Add(m, d)) = b.reslice(m, s, size, false)
		}
	case *types.Pointer:
		arr := t.Elem().Underlying().(*types.Array)
		size, n := c.layout(arr.Elem()).Size, int(arr.Len())
		if a, ok := in.X.(*ssa.Alloc); ok && a.Comment == "makeslice" {
			return makeConstant(d, x, n, b.hi)
		}
		return func(m unsafe.Pointer) {
			p := *(*unsafe.Pointer)(unsafe.Add(m, x))
			nilCheck(p)
			*(*sliceHeader)(unsafe.Add(m, d)) = b.reslice(m, sliceHeader{p, n, n}, size, true)
		}
	}
	fail("cannot slice " + in.X.Type().String())
	return nil
}

// The bounds of a slice expression; those that it does not name are nil.
type bounds struct{ lo, hi, mx *bound }

// A bound is one of the indices of a slice expression.
type bound struct {
	read     func(unsafe.Pointer) int64
	unsigned bool
}

// of returns the index; one that no int holds is negative, and out of range as well.
func (b *bound) of(m unsafe.Pointer) int { return int(b.read(m)) }

func (b *bound) negative(u uint64) bool { return b != nil && !b.unsigned && int64(u) < 0 }

// reslice slices s, the whole of an array when fixed.
func (b bounds) reslice(m unsafe.Pointer, s sliceHeader, size uintptr, fixed bool) sliceHeader {
	l, h, k := 0, s.len, s.cap
	if b.lo != nil {
		l = b.lo.of(m)
	}
	if b.hi != nil {
		h = b.hi.of(m)
	}
	if b.mx != nil {
		k = b.mx.of(m)
	}
	if uint(l) > uint(h) || uint(h) > uint(k) || uint(k) > uint(s.cap) {
		b.outOfRange(m, s.len, s.cap, fixed)
	}
	out := sliceHeader{s.data, h - l, k - l}
	if out.cap > 0 {
		out.data = unsafe.Add(s.data, uintptr(l)*size)
	}
	return out
}

// outOfRange panics as natively for indices that are out of range: Go itself checks them, as they are, on a slice of nothing of the same
// length.
//
//go:noinline
func (b bounds) outOfRange(m unsafe.Pointer, length, capacity int, fixed bool) {
	lo, hi, mx := b.lo, b.hi, b.mx
	l, h := uint64(0), uint64(length)
	signed := true // an int and a uint64 take different words for negative numbers
	read := func(b *bound, u *uint64) {
		if b != nil {
			*u = uint64(b.read(m))
			if b.unsigned && *u > math.MaxInt {
				signed = false
			}
		}
	}
	read(lo, &l)
	read(hi, &h)
	if mx == nil && fixed && h > uint64(length) && !hi.negative(h) {
		like := errSliceLen
		if !signed {
			like = errSliceLenU
		}
		panic(boundsLike(like(), h, length))
	}
	ghost := make([]struct{}, length, capacity)
	if mx == nil {
		if signed {
			_ = ghost[int(l):int(h)]
		}
		_ = ghost[l:h]
	}
	k := uint64(0)
	read(mx, &k)
	if fixed && k > uint64(capacity) && !mx.negative(k) {
		like := errSliceMaxLen
		if !signed {
			like = errSliceMaxLenU
		}
		panic(boundsLike(like(), k, length))
	}
	if signed {
		_ = ghost[int(l):int(h):int(k)]
	}
	_ = ghost[l:h:k]
	fail("slice bounds out of range") // whatever else, never go on with such bounds
}

// makeConstant is make with a constant capacity, which go/ssa writes as a slice of a new array.
func makeConstant(d, x uintptr, capacity int, length *bound) op {
	return func(m unsafe.Pointer) {
		n := length.of(m)
		switch {
		case n < 0 && !length.unsigned:
			panic(errMakeLen())
		case uint(n) > uint(capacity):
			panic(errMakeCap())
		}
		*(*sliceHeader)(unsafe.Add(m, d)) = sliceHeader{*(*unsafe.Pointer)(unsafe.Add(m, x)), n, capacity}
	}
}

func (c *compiler) makeSlice(in *ssa.MakeSlice) op {
	d := c.off(in)
	rt := c.layout(in.Type().Underlying().(*types.Slice).Elem())
	n, k := c.readInt(in.Len.Type(), c.off(in.Len)), c.readInt(in.Cap.Type(), c.off(in.Cap))
	limit := int64(math.MaxInt64)
	if rt.Size > 0 {
		limit = 1 << 46 / int64(rt.Size)
	}
	return func(m unsafe.Pointer) {
		l, h := n(m), k(m)
		switch {
		case l < 0 || l > limit:
			panic(errMakeLen())
		case h < l || h > limit:
			panic(errMakeCap())
		}
		*(*sliceHeader)(unsafe.Add(m, d)) = sliceHeader{unsafeNewArray(rt, int(h)), int(l), int(h)}
	}
}

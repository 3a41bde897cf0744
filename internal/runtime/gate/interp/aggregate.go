package interp

import (
	"fmt"
	"go/types"
	"math"
	"strconv"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

func (c *compiler) fieldAddr(in *ssa.FieldAddr) op {
	d, x := c.off(in), c.off(in.X)
	st := in.X.Type().Underlying().(*types.Pointer).Elem()
	o := c.fieldOffset(st, in.Field)
	return func(m unsafe.Pointer) {
		p := *at[unsafe.Pointer](m, x)
		if p == nil {
			nilPanic()
		}
		*at[unsafe.Pointer](m, d) = unsafe.Add(p, o)
	}
}

func (c *compiler) indexAddr(in *ssa.IndexAddr) op {
	d, x := c.off(in), c.off(in.X)
	i := c.readIndex(in.Index)
	switch t := in.X.Type().Underlying().(type) {
	case *types.Slice:
		size := c.layout(t.Elem()).Size
		if isInt(in.Index.Type()) {
			io := c.off(in.Index)
			return func(m unsafe.Pointer) {
				s := at[sliceHeader](m, x)
				n := *at[int](m, io)
				if uint(n) >= uint(s.len) {
					indexPanic(n, s.len)
				}
				*at[unsafe.Pointer](m, d) = unsafe.Add(s.data, uintptr(n)*size)
			}
		}
		return func(m unsafe.Pointer) {
			s := at[sliceHeader](m, x)
			*at[unsafe.Pointer](m, d) = unsafe.Add(s.data, uintptr(i(m, s.len))*size)
		}
	case *types.Pointer:
		arr := t.Elem().Underlying().(*types.Array)
		size, n := c.layout(arr.Elem()).Size, int(arr.Len())
		return func(m unsafe.Pointer) {
			p := *at[unsafe.Pointer](m, x)
			nilCheck(p)
			*at[unsafe.Pointer](m, d) = unsafe.Add(p, uintptr(i(m, n))*size)
		}
	}
	fail("cannot index " + in.X.Type().String())
	return nil
}

func isInt(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Int
}

// readIndex returns a reader of an index that checks it against a length.
func (c *compiler) readIndex(v ssa.Value) func(m unsafe.Pointer, n int) int {
	read := c.readInt(v.Type(), c.off(v))
	if isUnsigned(v.Type()) {
		return func(m unsafe.Pointer, n int) int {
			u := uint64(read(m))
			if u >= uint64(n) {
				_ = make([]struct{}, n)[u] // panics with the index as it is
			}
			return int(u)
		}
	}
	return func(m unsafe.Pointer, n int) int {
		i := int(read(m))
		if uint(i) >= uint(n) {
			indexPanic(i, n)
		}
		return i
	}
}

//go:noinline
func indexPanic(i, n int) {
	s := make([]struct{}, n)
	_ = s[i]
}

func (c *compiler) index(in *ssa.Index) op {
	d, x := c.off(in), c.off(in.X)
	i := c.readIndex(in.Index)
	switch t := in.X.Type().Underlying().(type) {
	case *types.Basic: // a string
		return func(m unsafe.Pointer) {
			s := *at[string](m, x)
			*at[byte](m, d) = s[i(m, len(s))]
		}
	case *types.Array:
		rt, n := c.layout(t.Elem()), int(t.Len())
		return func(m unsafe.Pointer) {
			src := unsafe.Add(m, x+uintptr(i(m, n))*rt.Size)
			copyTo(rt, unsafe.Add(m, d), src)
		}
	}
	fail("cannot index " + in.X.Type().String())
	return nil
}

func (c *compiler) slice(in *ssa.Slice) op {
	d, x := c.off(in), c.off(in.X)
	bound := func(v ssa.Value) *bound {
		if v == nil {
			return nil
		}
		return &bound{c.readInt(v.Type(), c.off(v)), isUnsigned(v.Type())}
	}
	lo, hi, mx := bound(in.Low), bound(in.High), bound(in.Max)
	switch t := in.X.Type().Underlying().(type) {
	case *types.Basic:
		return func(m unsafe.Pointer) {
			s := *at[string](m, x)
			l, h := 0, len(s)
			if lo != nil {
				l = lo.of(m)
			}
			if hi != nil {
				h = hi.of(m)
			}
			if uint(l) > uint(h) || uint(h) > uint(len(s)) {
				boundsPanic(m, len(s), len(s), true, lo, hi, nil)
			}
			*at[string](m, d) = s[l:h]
		}
	case *types.Slice:
		size := c.layout(t.Elem()).Size
		return func(m unsafe.Pointer) {
			s := *at[sliceHeader](m, x)
			*at[sliceHeader](m, d) = reslice(m, s, size, false, lo, hi, mx)
		}
	case *types.Pointer:
		arr := t.Elem().Underlying().(*types.Array)
		size, n := c.layout(arr.Elem()).Size, int(arr.Len())
		if a, ok := in.X.(*ssa.Alloc); ok && a.Comment == "makeslice" {
			return makeConstant(d, x, n, hi)
		}
		return func(m unsafe.Pointer) {
			p := *at[unsafe.Pointer](m, x)
			nilCheck(p)
			*at[sliceHeader](m, d) = reslice(m, sliceHeader{p, n, n}, size, true, lo, hi, mx)
		}
	}
	fail("cannot slice " + in.X.Type().String())
	return nil
}

// A bound is one of the indices of a slice expression.
type bound struct {
	read     func(unsafe.Pointer) int64
	unsigned bool
}

// of returns the index; one that no int holds is negative, and out of range as well.
func (b *bound) of(m unsafe.Pointer) int { return int(b.read(m)) }

func (b *bound) negative(u uint64) bool { return b != nil && !b.unsigned && int64(u) < 0 }

func (b *bound) print(u uint64) string {
	if b.negative(u) {
		return strconv.FormatInt(int64(u), 10)
	}
	return strconv.FormatUint(u, 10)
}

// reslice slices s, the whole of an array when fixed.
func reslice(m unsafe.Pointer, s sliceHeader, size uintptr, fixed bool, lo, hi, mx *bound) sliceHeader {
	l, h, k := 0, s.len, s.cap
	if lo != nil {
		l = lo.of(m)
	}
	if hi != nil {
		h = hi.of(m)
	}
	if mx != nil {
		k = mx.of(m)
	}
	if uint(l) > uint(h) || uint(h) > uint(k) || uint(k) > uint(s.cap) {
		boundsPanic(m, s.len, s.cap, fixed, lo, hi, mx)
	}
	out := sliceHeader{s.data, h - l, k - l}
	if out.cap > 0 {
		out.data = unsafe.Add(s.data, uintptr(l)*size)
	}
	return out
}

// boundsPanic panics as natively for indices that are out of range: Go itself checks them, as they are, on a slice of nothing of the same
// length.
//
//go:noinline
func boundsPanic(m unsafe.Pointer, length, capacity int, fixed bool, lo, hi, mx *bound) {
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
	if mx == nil && fixed {
		text := fmt.Sprintf("[:%s]", hi.print(h))
		switch {
		case hi != nil && h > uint64(length) && !hi.negative(h):
			text += fmt.Sprintf(" with length %d", length)
		case hi != nil && hi.negative(h):
		case lo.negative(l):
			text = fmt.Sprintf("[%s:]", lo.print(l))
		default:
			text = fmt.Sprintf("[%s:%d]", lo.print(l), h)
		}
		panic(plainError("runtime error: slice bounds out of range " + text))
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
		panic(plainError(fmt.Sprintf("runtime error: slice bounds out of range [::%s] with length %d", mx.print(k), length)))
	}
	if signed {
		_ = ghost[int(l):int(h):int(k)]
	}
	_ = ghost[l:h:k]
	panic(plainError("runtime error: slice bounds out of range")) // whatever else, never go on with such bounds
}

// makeConstant is make with a constant capacity, which go/ssa writes as a slice of a new array.
func makeConstant(d, x uintptr, capacity int, length *bound) op {
	return func(m unsafe.Pointer) {
		n := length.of(m)
		switch {
		case n < 0 && !length.unsigned:
			panic(plainError("runtime error: makeslice: len out of range"))
		case uint(n) > uint(capacity):
			panic(plainError("runtime error: makeslice: cap out of range"))
		}
		*at[sliceHeader](m, d) = sliceHeader{*at[unsafe.Pointer](m, x), n, capacity}
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
			panic(plainError("runtime error: makeslice: len out of range"))
		case h < l || h > limit:
			panic(plainError("runtime error: makeslice: cap out of range"))
		}
		*at[sliceHeader](m, d) = sliceHeader{unsafeNewArray(rt, int(h)), int(l), int(h)}
	}
}

func (c *compiler) makeMap(in *ssa.MakeMap) op {
	d := c.off(in)
	rt := c.real(in.Type())
	if in.Reserve == nil {
		return func(m unsafe.Pointer) { *at[unsafe.Pointer](m, d) = makemap(rt, 0) }
	}
	n := c.readInt(in.Reserve.Type(), c.off(in.Reserve))
	return func(m unsafe.Pointer) {
		k := min(max(n(m), 0), 1<<16) // a hint: natively a large one is no promise either
		*at[unsafe.Pointer](m, d) = makemap(rt, int(k))
	}
}

func (c *compiler) lookup(in *ssa.Lookup) op {
	mt := in.X.Type().Underlying().(*types.Map)
	rt, elem := c.real(in.X.Type()), c.layout(mt.Elem())
	x, k := c.off(in.X), c.off(in.Index)
	if in.CommaOk {
		parts := c.tuple(in)
		d, ok := parts[0], parts[1]
		return func(m unsafe.Pointer) {
			p := mapaccess(rt, *at[unsafe.Pointer](m, x), unsafe.Add(m, k))
			*at[bool](m, ok) = p != nil
			if p != nil {
				copyTo(elem, unsafe.Add(m, d), p)
			} else {
				typedmemclr(elem, unsafe.Add(m, d))
			}
		}
	}
	d := c.off(in)
	assigned := isAssigned(in)
	return func(m unsafe.Pointer) {
		table := *at[unsafe.Pointer](m, x)
		if assigned && (table == nil || maplen(table) == 0) { // natively no lookup: what is wrong with the key the assignment finds
			typedmemclr(elem, unsafe.Add(m, d))
			return
		}
		if p := mapaccess(rt, table, unsafe.Add(m, k)); p != nil {
			copyTo(elem, unsafe.Add(m, d), p)
		} else {
			typedmemclr(elem, unsafe.Add(m, d))
		}
	}
}

// isAssigned reports whether a lookup is part of an assignment to the same element, as in m[k] += 1.
func isAssigned(in *ssa.Lookup) bool {
	uses := in.X.Referrers()
	if uses == nil { // a constant: the nil map
		return false
	}
	for _, use := range *uses {
		if u, ok := use.(*ssa.MapUpdate); ok && u.Map == in.X && u.Key == in.Index && u.Pos() == in.Pos() {
			return true
		}
	}
	return false
}

func (c *compiler) mapUpdate(in *ssa.MapUpdate) op {
	rt, mc := c.real(in.Map.Type()), c.mc
	x, k, v := c.off(in.Map), c.off(in.Key), c.off(in.Value)
	return func(m unsafe.Pointer) {
		if mc.orders != nil {
			mc.noteKey(rt, *at[unsafe.Pointer](m, x), unsafe.Add(m, k))
		}
		mapassign(rt, *at[unsafe.Pointer](m, x), unsafe.Add(m, k), unsafe.Add(m, v))
	}
}

package interp

import (
	"go/types"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

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
	switch t := in.X.Type().Underlying().(type) {
	case *types.Basic: // a string
		if isInt(in.Index.Type()) {
			i, more := c.indexOf(in.Index)
			return func(m unsafe.Pointer) {
				*(*byte)(unsafe.Add(m, d)) = (*(*string)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, i))+more]
			}
		}
		i := c.readIndex(in.Index)
		return func(m unsafe.Pointer) {
			s := *(*string)(unsafe.Add(m, x))
			*(*byte)(unsafe.Add(m, d)) = s[i(m, len(s))]
		}
	case *types.Array:
		i := c.readIndex(in.Index)
		rt, n := c.layout(t.Elem()), int(t.Len())
		return func(m unsafe.Pointer) {
			src := unsafe.Add(m, x+uintptr(i(m, n))*rt.Size)
			copyTo(rt, unsafe.Add(m, d), src)
		}
	}
	fail("cannot index " + in.X.Type().String())
	return nil
}

func (c *compiler) makeMap(in *ssa.MakeMap) op {
	d := c.off(in)
	rt := c.real(in.Type())
	if in.Reserve == nil {
		return func(m unsafe.Pointer) { *(*unsafe.Pointer)(unsafe.Add(m, d)) = makemap(rt, 0) }
	}
	n := c.readInt(in.Reserve.Type(), c.off(in.Reserve))
	return func(m unsafe.Pointer) {
		k := min(max(n(m), 0), 1<<16) // a hint: natively a large one is no promise either
		*(*unsafe.Pointer)(unsafe.Add(m, d)) = makemap(rt, int(k))
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
			p := mapaccess(rt, *(*unsafe.Pointer)(unsafe.Add(m, x)), unsafe.Add(m, k))
			*(*bool)(unsafe.Add(m, ok)) = p != nil
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
		table := *(*unsafe.Pointer)(unsafe.Add(m, x))
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
			mc.noteKey(rt, *(*unsafe.Pointer)(unsafe.Add(m, x)), unsafe.Add(m, k))
		}
		mapassign(rt, *(*unsafe.Pointer)(unsafe.Add(m, x)), unsafe.Add(m, k), unsafe.Add(m, v))
	}
}

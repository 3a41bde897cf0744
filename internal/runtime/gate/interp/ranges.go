package interp

import (
	"go/types"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// This file compiles ranges over strings and maps. go/ssa makes loops of all others.

// A stringIter visits the runes of a string.
type stringIter struct {
	s    string
	next int
}

func (c *compiler) rangeInstr(in *ssa.Range) op {
	d, x := c.off(in), c.off(in.X)
	if _, ok := in.X.Type().Underlying().(*types.Basic); ok {
		return func(m unsafe.Pointer) { *at[*stringIter](m, d) = &stringIter{s: *at[string](m, x)} }
	}
	rt, mc := c.real(in.X.Type()), c.mc
	return func(m unsafe.Pointer) { *at[*mapIter](m, d) = mc.rangeMap(rt, *at[unsafe.Pointer](m, x)) }
}

func (c *compiler) next(in *ssa.Next) op {
	x := c.off(in.Iter)
	parts := c.tuple(in)
	tup := in.Type().(*types.Tuple)
	useKey, useVal := valid(tup.At(1).Type()), valid(tup.At(2).Type())
	if in.IsString {
		return nextRune(x, parts, useKey, useVal)
	}
	ok, d0, d1 := parts[0], parts[1], parts[2]
	mt := in.Iter.(*ssa.Range).X.Type().Underlying().(*types.Map)
	key, elem := c.layout(mt.Key()), c.layout(mt.Elem())
	return func(m unsafe.Pointer) {
		it := *at[*mapIter](m, x)
		k, v := it.keys.next(it)
		*at[bool](m, ok) = k != nil
		if k == nil {
			return
		}
		if useKey {
			copyTo(key, unsafe.Add(m, d0), k)
		}
		if useVal {
			copyTo(elem, unsafe.Add(m, d1), v)
		}
	}
}

func nextRune(x uintptr, parts []uintptr, useKey, useVal bool) op {
	ok, d0, d1 := parts[0], parts[1], parts[2]
	return func(m unsafe.Pointer) {
		it := *at[*stringIter](m, x)
		*at[bool](m, ok) = it.next < len(it.s)
		if it.next >= len(it.s) {
			return
		}
		r, width := utf8.DecodeRuneInString(it.s[it.next:])
		if useKey {
			*at[int](m, d0) = it.next
		}
		if useVal {
			*at[rune](m, d1) = r
		}
		it.next += width
	}
}

func valid(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return !ok || b.Kind() != types.Invalid
}

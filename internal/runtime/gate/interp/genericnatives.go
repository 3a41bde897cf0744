package interp

import (
	"cmp"
	"go/types"
	"slices"
	"sort"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// Functions of package slices are compiled from their source as the program's own are. Where what the elements are allows it, the ones
// here are the toolchain's instead, and so is every result, of NaN and of equal elements too.

// genericNative compiles a call of a generic function that is called natively; nil stands for any other call.
func (c *compiler) genericNative(callee *ssa.Function, cc *ssa.CallCommon, v ssa.Value) op {
	origin := callee.Origin()
	if origin == nil || origin.Object() == nil || origin.Object().Pkg() == nil || c.mc.work != nil {
		return nil
	}
	name := origin.Object().Name()
	switch origin.Object().Pkg().Path() {
	case "cmp":
		if b, ok := cc.Args[0].Type().Underlying().(*types.Basic); ok && name == "Compare" {
			return c.compareNative(b, cc, v)
		}
	case "slices":
		switch name {
		case "SortFunc":
			return c.sortFunc(cc, sort.Sort)
		case "SortStableFunc":
			return c.sortFunc(cc, sort.Stable)
		case "Reverse":
			return c.reverse(cc)
		}
		return c.sliceNative(name, cc, v)
	}
	return nil
}

// reverse compiles a call of slices.Reverse.
func (c *compiler) reverse(cc *ssa.CallCommon) op {
	x := c.off(cc.Args[0])
	elem := c.layout(cc.Args[0].Type().Underlying().(*types.Slice).Elem())
	return func(m unsafe.Pointer) {
		s := newSorting((*sliceHeader)(unsafe.Add(m, x)), elem)
		for i, j := 0, s.n-1; i < j; i, j = i+1, j-1 {
			s.Swap(i, j)
		}
	}
}

// sliceNative compiles a call of a function of package slices whose first argument is a slice of a basic type.
func (c *compiler) sliceNative(name string, cc *ssa.CallCommon, v ssa.Value) op {
	if len(cc.Args) == 0 {
		return nil
	}
	list, ok := cc.Args[0].Type().Underlying().(*types.Slice)
	if !ok {
		return nil
	}
	b, ok := list.Elem().Underlying().(*types.Basic)
	if !ok {
		return nil
	}
	args := c.args(cc.Args)
	results := func() []argument { return c.resultSlots(v, cc.Signature()) }
	switch b.Kind() {
	case types.Int, types.Int64:
		return sliceCall[int](name, args, results)
	case types.Uint, types.Uint64, types.Uintptr:
		return sliceCall[uint](name, args, results)
	case types.Int32:
		return sliceCall[int32](name, args, results)
	case types.Uint8:
		return sliceCall[uint8](name, args, results)
	case types.Float64:
		return sliceCall[float64](name, args, results)
	case types.String:
		return sliceCall[string](name, args, results)
	}
	return nil
}

func sliceCall[T cmp.Ordered](name string, args []argument, results func() []argument) op {
	x := args[0].off
	switch name {
	case "Sort":
		return func(m unsafe.Pointer) { slices.Sort(*(*[]T)(unsafe.Add(m, x))) }
	case "IsSorted":
		r := results()[0].off
		return func(m unsafe.Pointer) { *(*bool)(unsafe.Add(m, r)) = slices.IsSorted(*(*[]T)(unsafe.Add(m, x))) }
	case "Max":
		r := results()[0].off
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, r)) = slices.Max(*(*[]T)(unsafe.Add(m, x))) }
	case "Min":
		r := results()[0].off
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, r)) = slices.Min(*(*[]T)(unsafe.Add(m, x))) }
	case "Contains":
		y, r := args[1].off, results()[0].off
		return func(m unsafe.Pointer) {
			*(*bool)(unsafe.Add(m, r)) = slices.Contains(*(*[]T)(unsafe.Add(m, x)), *(*T)(unsafe.Add(m, y)))
		}
	case "Index":
		y, r := args[1].off, results()[0].off
		return func(m unsafe.Pointer) {
			*(*int)(unsafe.Add(m, r)) = slices.Index(*(*[]T)(unsafe.Add(m, x)), *(*T)(unsafe.Add(m, y)))
		}
	case "Equal":
		y, r := args[1].off, results()[0].off
		return func(m unsafe.Pointer) {
			*(*bool)(unsafe.Add(m, r)) = slices.Equal(*(*[]T)(unsafe.Add(m, x)), *(*[]T)(unsafe.Add(m, y)))
		}
	case "Compare":
		y, r := args[1].off, results()[0].off
		return func(m unsafe.Pointer) {
			*(*int)(unsafe.Add(m, r)) = slices.Compare(*(*[]T)(unsafe.Add(m, x)), *(*[]T)(unsafe.Add(m, y)))
		}
	case "BinarySearch":
		y, to := args[1].off, results()
		return func(m unsafe.Pointer) {
			i, found := slices.BinarySearch(*(*[]T)(unsafe.Add(m, x)), *(*T)(unsafe.Add(m, y)))
			*(*int)(unsafe.Add(m, to[0].off)), *(*bool)(unsafe.Add(m, to[1].off)) = i, found
		}
	}
	return nil
}

// compareNative compiles a call of cmp.Compare.
func (c *compiler) compareNative(b *types.Basic, cc *ssa.CallCommon, v ssa.Value) op {
	args := c.args(cc.Args)
	switch b.Kind() {
	case types.Int, types.Int64:
		return compareCall[int](args, c.resultSlots(v, cc.Signature()))
	case types.Float64:
		return compareCall[float64](args, c.resultSlots(v, cc.Signature()))
	case types.String:
		return compareCall[string](args, c.resultSlots(v, cc.Signature()))
	}
	return nil
}

func compareCall[T cmp.Ordered](args, results []argument) op {
	x, y, r := args[0].off, args[1].off, results[0].off
	return func(m unsafe.Pointer) {
		*(*int)(unsafe.Add(m, r)) = cmp.Compare(*(*T)(unsafe.Add(m, x)), *(*T)(unsafe.Add(m, y)))
	}
}

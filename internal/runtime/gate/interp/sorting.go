package interp

import (
	"go/types"
	"reflect"
	"sort"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// slices.SortFunc and slices.SortStableFunc are, for elements of any type, what sort.Sort and sort.Stable are: the toolchain generates both from one text. So
// a comparison function sees the same elements in the same order as natively, whatever it answers.

// A sorting sorts a slice by a comparison function of the program.
type sorting struct {
	base    unsafe.Pointer
	n       int
	elem    *rtype
	class   class
	compare func(a, b unsafe.Pointer) int
	spare   unsafe.Pointer // of one element; nil for the classes that swap does not need it for
}

func newSorting(list *sliceHeader, elem *rtype) *sorting {
	s := &sorting{base: list.data, n: list.len, elem: elem, class: classOf(elem)}
	if s.class != class8 && s.class != classPointer && s.class != classString {
		s.spare = unsafeNew(elem)
	}
	return s
}

func (s *sorting) Len() int { return s.n }

func (s *sorting) at(i int) unsafe.Pointer { return unsafe.Add(s.base, uintptr(i)*s.elem.Size) }

func (s *sorting) Less(i, j int) bool { return s.compare(s.at(i), s.at(j)) < 0 }

func (s *sorting) Swap(i, j int) {
	a, b := s.at(i), s.at(j)
	switch s.class {
	case class8:
		x, y := (*uint64)(a), (*uint64)(b)
		*x, *y = *y, *x
	case classPointer:
		x, y := (*unsafe.Pointer)(a), (*unsafe.Pointer)(b)
		*x, *y = *y, *x
	case classString:
		x, y := (*string)(a), (*string)(b)
		*x, *y = *y, *x
	default:
		typedmemmove(s.elem, s.spare, a)
		typedmemmove(s.elem, a, b)
		typedmemmove(s.elem, b, s.spare)
	}
}

// sortFunc compiles a call of slices.SortFunc or slices.SortStableFunc.
func (c *compiler) sortFunc(cc *ssa.CallCommon, do func(sort.Interface)) op {
	mc := c.mc
	sig := cc.Args[1].Type().Underlying().(*types.Signature)
	elem := c.layout(sig.Params().At(0).Type())
	x, cmp := c.off(cc.Args[0]), c.off(cc.Args[1])
	compareBy := c.comparer(sig, elem)
	return func(m unsafe.Pointer) {
		s := newSorting((*sliceHeader)(unsafe.Add(m, x)), elem)
		if s.n < 2 {
			return
		}
		s.compare = compareBy(m, *(*unsafe.Pointer)(unsafe.Add(m, cmp)))
		mc.deferring = nil
		mc.depth += hostWeight
		do(s)
		mc.depth -= hostWeight
	}
}

// comparer returns what makes a comparison of two elements, given by pointers, of a function value of the program's.
func (c *compiler) comparer(sig *types.Signature, elem *rtype) func(m, fn unsafe.Pointer) func(a, b unsafe.Pointer) int {
	mc := c.mc
	ft := mc.types.of(noReceiver(sig))
	code := mc.head(ft).code
	args := []argument{{c.alloc(elem), elem}, {c.alloc(elem), elem}}
	number := rtypeOf(reflect.TypeFor[int]())
	results := []argument{{c.alloc(number), number}}
	callHost := c.valueCaller(ft, args, results)
	return func(m, fn unsafe.Pointer) func(a, b unsafe.Pointer) int {
		if fn != nil && mc.isClosure(fn, code) {
			cl := (*closure)(fn)
			return func(a, b unsafe.Pointer) int { return cl.compare(elem, a, b) }
		}
		return func(a, b unsafe.Pointer) int {
			nilCheck(fn)
			copyTo(elem, unsafe.Add(m, args[0].off), a)
			copyTo(elem, unsafe.Add(m, args[1].off), b)
			callHost(m, fn)
			return *(*int)(unsafe.Add(m, results[0].off))
		}
	}
}

// compare calls a comparison function with copies of the elements at a and b.
func (c *closure) compare(elem *rtype, a, b unsafe.Pointer) int {
	f := c.f
	if !f.ready {
		f.prepare()
	}
	m := f.newFrame()
	if len(c.free) > 0 {
		c.setFree(m)
	}
	copyTo(elem, unsafe.Add(m, f.params[0].off), a)
	copyTo(elem, unsafe.Add(m, f.params[1].off), b)
	f.run(m)
	r := *(*int)(unsafe.Add(m, f.results[0].off))
	f.release(m)
	return r
}

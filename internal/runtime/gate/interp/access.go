package interp

import (
	"go/token"
	"go/types"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// A location is memory that an instruction loads from or stores to. Its address is computed with the access.
type location struct {
	form    locationForm
	base    uintptr    // in the frame: of the pointer, or of the slice
	outer   uintptr    // in the frame: index of the slice, where base is a slice of slices
	index   uintptr    // in the frame, of an int
	more    int        // what is added to the index
	length  []struct{} // as long as the array
	size    uintptr    // of an element
	off     uintptr    // of the place within what the pointer points to, or within the element
	address func(m unsafe.Pointer) unsafe.Pointer
}

type locationForm uint8

const (
	behindPointer locationForm = iota // base, off
	ofElement                         // base, index, more, size, off
	ofRow                             // base, outer, index, size: s[outer][index]
	ofArray                           // base, index, length, size, off
	behindLoaded                      // address of the pointer, off
	computed                          // address
)

// leastFault is where memory begins: what a nil pointer and a smaller offset lead to faults as natively.
const leastFault = 4096

// place returns what v points to.
func (c *compiler) place(v ssa.Value) location {
	if in, ok := v.(ssa.Instruction); ok && c.folded[in] {
		switch v := v.(type) {
		case *ssa.FieldAddr:
			return c.field(v)
		case *ssa.IndexAddr:
			return c.element(v)
		case *ssa.UnOp: // a pointer that is loaded
			return location{form: behindLoaded, address: c.place(v.X).addressOf()}
		}
	}
	return location{form: behindPointer, base: c.off(v)}
}

// field returns the place of a field.
func (c *compiler) field(in *ssa.FieldAddr) location {
	p := c.place(in.X)
	st := in.X.Type().Underlying().(*types.Pointer).Elem()
	off := c.fieldOffset(st, in.Field)
	switch {
	case p.form == computed:
		base := p.address
		p.address = func(m unsafe.Pointer) unsafe.Pointer { return unsafe.Add(base(m), off) }
	case p.form == ofRow:
		base := p.addressOf()
		return location{form: computed, address: func(m unsafe.Pointer) unsafe.Pointer { return unsafe.Add(base(m), off) }}
	case (p.form == behindPointer || p.form == behindLoaded) && p.off+uintptr(c.layout(st).Size) >= leastFault:
		base := p.addressOf()
		return location{form: computed, address: func(m unsafe.Pointer) unsafe.Pointer { return unsafe.Add(base(m), off) }}
	default:
		p.off += off
	}
	return p
}

// element returns the place of an element of a slice or an array.
func (c *compiler) element(in *ssa.IndexAddr) location {
	load, _ := in.X.(*ssa.UnOp)
	loaded := load != nil && c.folded[load]
	switch t := in.X.Type().Underlying().(type) {
	case *types.Slice:
		size := c.layout(t.Elem()).Size
		switch {
		case !isInt(in.Index.Type()):
			return indexed(c.off(in.X), c.readIndex(in.Index), size)
		case loaded:
			return elementOf(c.place(load.X), c.off(in.Index), size)
		}
		i, more := c.indexOf(in.Index)
		return location{form: ofElement, base: c.off(in.X), index: i, more: more, size: size}
	case *types.Pointer:
		arr := t.Elem().Underlying().(*types.Array)
		size, n := c.layout(arr.Elem()).Size, int(arr.Len())
		base := c.place(in.X)
		if isInt(in.Index.Type()) {
			return elementOfArray(base, c.off(in.Index), size, make([]struct{}, n))
		}
		i, at := c.readIndex(in.Index), base.addressOf()
		return location{form: computed, address: func(m unsafe.Pointer) unsafe.Pointer {
			return unsafe.Add(at(m), uintptr(i(m, n))*size)
		}}
	}
	fail("cannot index " + in.X.Type().String())
	return location{}
}

// indexOf returns where an index stands, and what is to be added to it.
func (c *compiler) indexOf(v ssa.Value) (off uintptr, more int) {
	sum, ok := v.(*ssa.BinOp)
	if !ok || !c.folded[sum] {
		return c.off(v), 0
	}
	more = int(sum.Y.(*ssa.Const).Int64())
	if sum.Op == token.SUB {
		more = -more
	}
	return c.off(sum.X), more
}

// indexed is the element of the slice at x whose index is read by i.
func indexed(x uintptr, i func(m unsafe.Pointer, n int) int, size uintptr) location {
	return location{form: computed, address: func(m unsafe.Pointer) unsafe.Pointer {
		s := (*sliceHeader)(unsafe.Add(m, x))
		return unsafe.Add(s.data, uintptr(i(m, s.len))*size)
	}}
}

// elementOf is an element of the slice that stands at a place.
func elementOf(slice location, i, size uintptr) location {
	p := location{form: computed}
	switch x, off := slice.base, slice.off; {
	case slice.form == behindPointer:
		p.address = func(m unsafe.Pointer) unsafe.Pointer {
			s := (*sliceHeader)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(m, x)), off))
			n := *(*int)(unsafe.Add(m, i))
			checkIndex(s, n)
			return unsafe.Add(s.data, uintptr(n)*size)
		}
	case slice.form == ofElement && off == 0 && slice.more == 0 && slice.size == unsafe.Sizeof(sliceHeader{}):
		return location{form: ofRow, base: x, outer: slice.index, index: i, size: size}
	default:
		at := slice.addressOf()
		p.address = func(m unsafe.Pointer) unsafe.Pointer {
			s := (*sliceHeader)(at(m))
			n := *(*int)(unsafe.Add(m, i))
			checkIndex(s, n)
			return unsafe.Add(s.data, uintptr(n)*size)
		}
	}
	return p
}

// checkIndex panics as natively when s has no element n: Go itself checks it.
func checkIndex(s *sliceHeader, n int) { _ = (*(*[]struct{})(unsafe.Pointer(s)))[n] }

// elementOfArray is an element of the array that stands at a place.
func elementOfArray(array location, i, size uintptr, length []struct{}) location {
	switch x, off := array.base, array.off; array.form {
	case behindPointer:
		return location{form: ofArray, base: x, off: off, index: i, size: size, length: length}
	case ofArray: // of arrays
		outer, outerSize, outerLength := array.index, array.size, array.length
		return location{form: computed, address: func(m unsafe.Pointer) unsafe.Pointer {
			a := checked(*(*unsafe.Pointer)(unsafe.Add(m, x)))
			j := *(*int)(unsafe.Add(m, outer))
			_ = outerLength[j]
			k := *(*int)(unsafe.Add(m, i))
			_ = length[k]
			return unsafe.Add(a, uintptr(j)*outerSize+uintptr(k)*size+off)
		}}
	}
	at := array.addressOf()
	return location{form: computed, address: func(m unsafe.Pointer) unsafe.Pointer {
		a := at(m)
		k := *(*int)(unsafe.Add(m, i))
		_ = length[k]
		return unsafe.Add(a, uintptr(k)*size)
	}}
}

// checked returns p, which must not be nil.
func checked(p unsafe.Pointer) unsafe.Pointer {
	_ = *(*byte)(p)
	return p
}

// addressOf returns what computes the address of a place.
func (p location) addressOf() func(m unsafe.Pointer) unsafe.Pointer {
	x, i, size, off := p.base, p.index, p.size, p.off
	switch p.form {
	case behindPointer:
		return func(m unsafe.Pointer) unsafe.Pointer {
			return unsafe.Add(checked(*(*unsafe.Pointer)(unsafe.Add(m, x))), off)
		}
	case ofElement:
		more := p.more
		return func(m unsafe.Pointer) unsafe.Pointer {
			s := (*sliceHeader)(unsafe.Add(m, x))
			n := *(*int)(unsafe.Add(m, i)) + more
			checkIndex(s, n)
			return unsafe.Add(s.data, uintptr(n)*size+off)
		}
	case ofRow:
		outer := p.outer
		return func(m unsafe.Pointer) unsafe.Pointer {
			s := &(*(*[]sliceHeader)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, outer))]
			n := *(*int)(unsafe.Add(m, i))
			checkIndex(s, n)
			return unsafe.Add(s.data, uintptr(n)*size)
		}
	case ofArray:
		length := p.length
		return func(m unsafe.Pointer) unsafe.Pointer {
			a := checked(*(*unsafe.Pointer)(unsafe.Add(m, x)))
			n := *(*int)(unsafe.Add(m, i))
			_ = length[n]
			return unsafe.Add(a, uintptr(n)*size+off)
		}
	case behindLoaded:
		at := p.address
		return func(m unsafe.Pointer) unsafe.Pointer { return unsafe.Add(checked(*(*unsafe.Pointer)(at(m))), off) }
	}
	return p.address
}

// addressOp stores the address of a place in the frame.
func (p location) addressOp(d uintptr) op {
	x, off := p.base, p.off
	switch p.form {
	case behindPointer:
		return func(m unsafe.Pointer) {
			*(*unsafe.Pointer)(unsafe.Add(m, d)) = unsafe.Add(checked(*(*unsafe.Pointer)(unsafe.Add(m, x))), off)
		}
	case ofElement:
		i, more, size := p.index, p.more, p.size
		return func(m unsafe.Pointer) {
			s := (*sliceHeader)(unsafe.Add(m, x))
			n := *(*int)(unsafe.Add(m, i)) + more
			checkIndex(s, n)
			*(*unsafe.Pointer)(unsafe.Add(m, d)) = unsafe.Add(s.data, uintptr(n)*size+off)
		}
	}
	at := p.addressOf()
	return func(m unsafe.Pointer) { *(*unsafe.Pointer)(unsafe.Add(m, d)) = at(m) }
}

func (c *compiler) fieldAddr(in *ssa.FieldAddr) op { return c.field(in).addressOp(c.off(in)) }

func (c *compiler) indexAddr(in *ssa.IndexAddr) op { return c.element(in).addressOp(c.off(in)) }

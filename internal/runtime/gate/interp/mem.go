package interp

import "unsafe"

// An access class says how values of a type are copied: natively where Go has a type of that form, so that the
// compiler emits what the collector needs, else through the runtime.
type class uint8

const (
	classZero class = iota
	class1
	class2
	class4
	class8
	class16 // without pointers
	classPointer
	classString
	classSlice
	classIface
	classBytes // without pointers, any size
	classAny
)

func classOf(t *rtype) class {
	switch {
	case t.Size == 0:
		return classZero
	case t.PtrBytes == 0:
		switch t.Size {
		case 1:
			return class1
		case 2:
			return class2
		case 4:
			return class4
		case 8:
			return class8
		case 16:
			return class16
		}
		return classBytes
	case t.Size == wordSize:
		return classPointer
	case t.Kind == kindString:
		return classString
	case t.Kind == kindSlice:
		return classSlice
	case t.Kind == kindInterface:
		return classIface
	}
	return classAny
}

// Copying between places is written once a class; dst and src are offsets in the frame.

func moveOp(t *rtype, dst, src uintptr) op {
	switch classOf(t) {
	case classZero:
		return func(unsafe.Pointer) {}
	case class1:
		return move[uint8](dst, src)
	case class2:
		return move[uint16](dst, src)
	case class4:
		return move[uint32](dst, src)
	case class8:
		return move[uint64](dst, src)
	case class16:
		return move[[2]uint64](dst, src)
	case classPointer:
		return move[unsafe.Pointer](dst, src)
	case classString:
		return move[string](dst, src)
	case classSlice:
		return move[[]byte](dst, src)
	case classIface:
		return move[any](dst, src)
	}
	return func(m unsafe.Pointer) { typedmemmove(t, unsafe.Add(m, dst), unsafe.Add(m, src)) }
}

func move[T any](dst, src uintptr) op {
	return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, dst)) = *(*T)(unsafe.Add(m, src)) }
}

// Loading and storing is written once for places of each form.

// loadOp copies from a place.
func loadOp(t *rtype, d uintptr, p location) op {
	switch classOf(t) {
	case class1:
		return load[uint8](d, p)
	case class2:
		return load[uint16](d, p)
	case class4:
		return load[uint32](d, p)
	case class8:
		return load[uint64](d, p)
	case class16:
		return load[[2]uint64](d, p)
	case classPointer:
		return load[unsafe.Pointer](d, p)
	case classString:
		return load[string](d, p)
	case classSlice:
		return load[[]byte](d, p)
	case classIface:
		return load[any](d, p)
	}
	at := p.addressOf()
	if t.Size == 0 {
		return func(m unsafe.Pointer) { at(m) }
	}
	return func(m unsafe.Pointer) { typedmemmove(t, unsafe.Add(m, d), at(m)) }
}

func load[T any](d uintptr, p location) op {
	x, i, off := p.base, p.index, p.off
	whole := p.size == unsafe.Sizeof(*new(T)) && off == 0
	switch {
	case p.form == behindPointer && off == 0:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = **(**T)(unsafe.Add(m, x)) }
	case p.form == behindPointer:
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(m, x)), off))
		}
	case p.form == ofElement && whole && p.more == 0:
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(m, d)) = (*(*[]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, i))]
		}
	case p.form == ofElement && whole:
		more := p.more
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(m, d)) = (*(*[]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, i))+more]
		}
	case p.form == ofElement && p.more == 0:
		size := p.size
		return func(m unsafe.Pointer) {
			s := (*sliceHeader)(unsafe.Add(m, x))
			n := *(*int)(unsafe.Add(m, i))
			_ = (*(*[]struct{})(unsafe.Pointer(s)))[n]
			*(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(s.data, uintptr(n)*size+off))
		}
	case p.form == ofRow && whole:
		outer := p.outer
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(m, d)) = (*(*[][]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, outer))][*(*int)(unsafe.Add(m, i))]
		}
	case p.form == ofArray && whole:
		length := p.length
		return func(m unsafe.Pointer) {
			a := checked(*(*unsafe.Pointer)(unsafe.Add(m, x)))
			n := *(*int)(unsafe.Add(m, i))
			_ = length[n]
			*(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(a, uintptr(n)*unsafe.Sizeof(*new(T))))
		}
	}
	if at := p.address; p.form == behindLoaded {
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(*(*unsafe.Pointer)(at(m)), off)) }
	}
	at := p.addressOf()
	return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(at(m)) }
}

// storeOp copies to a place.
func storeOp(t *rtype, p location, x uintptr) op {
	switch classOf(t) {
	case class1:
		return store[uint8](p, x)
	case class2:
		return store[uint16](p, x)
	case class4:
		return store[uint32](p, x)
	case class8:
		return store[uint64](p, x)
	case class16:
		return store[[2]uint64](p, x)
	case classPointer:
		return store[unsafe.Pointer](p, x)
	case classString:
		return store[string](p, x)
	case classSlice:
		return store[[]byte](p, x)
	case classIface:
		return store[any](p, x)
	}
	at := p.addressOf()
	if t.Size == 0 {
		return func(m unsafe.Pointer) { at(m) }
	}
	return func(m unsafe.Pointer) { typedmemmove(t, at(m), unsafe.Add(m, x)) }
}

func store[T any](p location, v uintptr) op {
	x, i, off := p.base, p.index, p.off
	whole := p.size == unsafe.Sizeof(*new(T)) && off == 0
	switch {
	case p.form == behindPointer && off == 0:
		return func(m unsafe.Pointer) { **(**T)(unsafe.Add(m, x)) = *(*T)(unsafe.Add(m, v)) }
	case p.form == behindPointer:
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(m, x)), off)) = *(*T)(unsafe.Add(m, v))
		}
	case p.form == ofElement && whole && p.more == 0:
		return func(m unsafe.Pointer) {
			(*(*[]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, i))] = *(*T)(unsafe.Add(m, v))
		}
	case p.form == ofElement && whole:
		more := p.more
		return func(m unsafe.Pointer) {
			(*(*[]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, i))+more] = *(*T)(unsafe.Add(m, v))
		}
	case p.form == ofElement && p.more == 0:
		size := p.size
		return func(m unsafe.Pointer) {
			s := (*sliceHeader)(unsafe.Add(m, x))
			n := *(*int)(unsafe.Add(m, i))
			_ = (*(*[]struct{})(unsafe.Pointer(s)))[n]
			*(*T)(unsafe.Add(s.data, uintptr(n)*size+off)) = *(*T)(unsafe.Add(m, v))
		}
	case p.form == ofRow && whole:
		outer := p.outer
		return func(m unsafe.Pointer) {
			(*(*[][]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, outer))][*(*int)(unsafe.Add(m, i))] = *(*T)(unsafe.Add(m, v))
		}
	case p.form == ofArray && whole:
		length := p.length
		return func(m unsafe.Pointer) {
			a := checked(*(*unsafe.Pointer)(unsafe.Add(m, x)))
			n := *(*int)(unsafe.Add(m, i))
			_ = length[n]
			*(*T)(unsafe.Add(a, uintptr(n)*unsafe.Sizeof(*new(T)))) = *(*T)(unsafe.Add(m, v))
		}
	}
	at := p.addressOf()
	return func(m unsafe.Pointer) { *(*T)(at(m)) = *(*T)(unsafe.Add(m, v)) }
}

// copyTo copies a value between two places given as pointers, neither nil.
func copyTo(t *rtype, dst, src unsafe.Pointer) {
	switch classOf(t) {
	case classZero:
	case class1:
		*(*uint8)(dst) = *(*uint8)(src)
	case class2:
		*(*uint16)(dst) = *(*uint16)(src)
	case class4:
		*(*uint32)(dst) = *(*uint32)(src)
	case class8:
		*(*uint64)(dst) = *(*uint64)(src)
	case classPointer:
		*(*unsafe.Pointer)(dst) = *(*unsafe.Pointer)(src)
	case classString:
		*(*string)(dst) = *(*string)(src)
	case classIface:
		*(*any)(dst) = *(*any)(src)
	default:
		typedmemmove(t, dst, src)
	}
}

// nilCheck panics as Go does when p is nil.
func nilCheck(p unsafe.Pointer) { _ = *(*byte)(p) }

//go:noinline
func nilPanic() {
	var p *int
	sink(*p)
}

//go:noinline
func sink(int) {}

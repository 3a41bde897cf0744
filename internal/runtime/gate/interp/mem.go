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

// loadOp copies from where the pointer at p points to.
func loadOp(t *rtype, dst, p uintptr) op {
	switch classOf(t) {
	case classZero:
		return func(m unsafe.Pointer) { nilCheck(*(*unsafe.Pointer)(unsafe.Add(m, p))) }
	case class1:
		return load[uint8](dst, p)
	case class2:
		return load[uint16](dst, p)
	case class4:
		return load[uint32](dst, p)
	case class8:
		return load[uint64](dst, p)
	case class16:
		return load[[2]uint64](dst, p)
	case classPointer:
		return load[unsafe.Pointer](dst, p)
	case classString:
		return load[string](dst, p)
	case classSlice:
		return load[[]byte](dst, p)
	case classIface:
		return load[any](dst, p)
	}
	return func(m unsafe.Pointer) {
		src := *(*unsafe.Pointer)(unsafe.Add(m, p))
		nilCheck(src)
		typedmemmove(t, unsafe.Add(m, dst), src)
	}
}

func load[T any](dst, p uintptr) op {
	return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, dst)) = **(**T)(unsafe.Add(m, p)) }
}

// storeOp copies to where the pointer at p points to.
func storeOp(t *rtype, p, src uintptr) op {
	switch classOf(t) {
	case classZero:
		return func(m unsafe.Pointer) { nilCheck(*(*unsafe.Pointer)(unsafe.Add(m, p))) }
	case class1:
		return store[uint8](p, src)
	case class2:
		return store[uint16](p, src)
	case class4:
		return store[uint32](p, src)
	case class8:
		return store[uint64](p, src)
	case class16:
		return store[[2]uint64](p, src)
	case classPointer:
		return store[unsafe.Pointer](p, src)
	case classString:
		return store[string](p, src)
	case classSlice:
		return store[[]byte](p, src)
	case classIface:
		return store[any](p, src)
	}
	return func(m unsafe.Pointer) {
		dst := *(*unsafe.Pointer)(unsafe.Add(m, p))
		nilCheck(dst)
		typedmemmove(t, dst, unsafe.Add(m, src))
	}
}

func store[T any](p, src uintptr) op {
	return func(m unsafe.Pointer) { **(**T)(unsafe.Add(m, p)) = *(*T)(unsafe.Add(m, src)) }
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
func nilCheck(p unsafe.Pointer) {
	if p == nil {
		nilPanic()
	}
}

//go:noinline
func nilPanic() {
	var p *int
	sink(*p)
}

//go:noinline
func sink(int) {}

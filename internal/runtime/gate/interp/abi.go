package interp

import (
	"reflect"
	"unsafe"
)

// This file mirrors what the Go runtime knows of a type (internal/abi of the Go version in go.mod; TestLayout compares).
// Program types are made as true run-time types, so that fmt, encoding/json, errors and sort treat their values, fields
// and methods exactly as they do natively. Packages reflect and runtime offer all of it but named types and methods.

type rtype struct {
	Size, PtrBytes          uintptr
	Hash                    uint32
	TFlag                   uint8
	Align, FieldAlign, Kind uint8
	Equal                   func(a, b unsafe.Pointer) bool
	GCData                  *byte
	Str, PtrToThis          int32
}

const (
	flagUncommon     = 1 << 0
	flagExtraStar    = 1 << 1
	flagNamed        = 1 << 2
	flagMaskOnDemand = 1 << 4
	flagDirectIface  = 1 << 5
	wordSize         = unsafe.Sizeof(uintptr(0))
)

type uncommonType struct {
	PkgPath        int32
	Mcount, Xcount uint16
	Moff           uint32
	_              uint32
}

type methodEntry struct{ Name, Mtyp, Ifn, Tfn int32 }

type imethodEntry struct{ Name, Typ int32 }

type ptrType struct {
	rtype
	Elem *rtype
}

type sliceType struct {
	rtype
	Elem *rtype
}

type arrayType struct {
	rtype
	Elem, Slice *rtype
	Len         uintptr
}

type chanType struct {
	rtype
	Elem *rtype
	Dir  int
}

type funcType struct {
	rtype
	InCount, OutCount uint16
}

type interfaceType struct {
	rtype
	PkgPath *byte
	Methods []imethodEntry
}

type mapType struct {
	rtype
	Key, Elem, Group *rtype
	Hasher           func(unsafe.Pointer, uintptr) uintptr
	GroupSize        uintptr
	SlotSize         uintptr
	ElemOff          uintptr
	Flags            uint32
}

type structType struct {
	rtype
	PkgPath *byte
	Fields  []structField
}

type structField struct {
	Name   *byte
	Typ    *rtype
	Offset uintptr
}

type itabHeader struct {
	Inter, Type *rtype
}

type eface struct {
	typ  unsafe.Pointer // *rtype, or *itab where the interface has methods
	data unsafe.Pointer
}

type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// rtypeOf returns the run-time type behind t.
func rtypeOf(t reflect.Type) *rtype {
	return (*rtype)((*eface)(unsafe.Pointer(&t)).data)
}

// reflectOf is the inverse of rtypeOf.
func reflectOf(t *rtype) reflect.Type {
	z := reflect.TypeFor[int]()
	(*eface)(unsafe.Pointer(&z)).data = unsafe.Pointer(t)
	return z
}

func (t *rtype) direct() bool { return t.TFlag&flagDirectIface != 0 }

//go:linkname addReflectOff reflect.addReflectOff
//go:noescape
func addReflectOff(ptr unsafe.Pointer) int32

//go:linkname unsafeNew reflect.unsafe_New
func unsafeNew(t *rtype) unsafe.Pointer

//go:linkname unsafeNewArray reflect.unsafe_NewArray
func unsafeNewArray(t *rtype, n int) unsafe.Pointer

//go:linkname typedmemmove reflect.typedmemmove
//go:noescape
func typedmemmove(t *rtype, dst, src unsafe.Pointer)

//go:linkname typedmemclr reflect.typedmemclr
//go:noescape
func typedmemclr(t *rtype, ptr unsafe.Pointer)

//go:linkname typedslicecopy reflect.typedslicecopy
//go:noescape
func typedslicecopy(t *rtype, dst, src sliceHeader) int

//go:linkname growslice reflect.growslice
//go:noescape
func growslice(t *rtype, old sliceHeader, num int) sliceHeader

//go:linkname mapaccess reflect.mapaccess
//go:noescape
func mapaccess(t *rtype, m, key unsafe.Pointer) unsafe.Pointer

//go:linkname mapassign reflect.mapassign0
//go:noescape
func mapassign(t *rtype, m, key, val unsafe.Pointer)

//go:linkname mapdelete reflect.mapdelete
//go:noescape
func mapdelete(t *rtype, m, key unsafe.Pointer)

//go:linkname maplen reflect.maplen
//go:noescape
func maplen(m unsafe.Pointer) int

//go:linkname mapclear reflect.mapclear
//go:noescape
func mapclear(t *rtype, m unsafe.Pointer)

//go:linkname makemap reflect.makemap
func makemap(t *rtype, n int) unsafe.Pointer

// encodeName returns a name as run-time types store it. The bytes must stay reachable, which types.kept ensures.
func encodeName(name, tag string, exported, embedded bool, pkgPath int32) []byte {
	var flags byte
	if exported {
		flags |= 1
	}
	if tag != "" {
		flags |= 2
	}
	if pkgPath != 0 {
		flags |= 4
	}
	if embedded {
		flags |= 8
	}
	b := appendVarint([]byte{flags}, len(name))
	b = append(b, name...)
	if tag != "" {
		b = append(appendVarint(b, len(tag)), tag...)
	}
	if pkgPath != 0 {
		b = append(b, (*[4]byte)(unsafe.Pointer(&pkgPath))[:]...)
	}
	return b
}

func appendVarint(b []byte, n int) []byte {
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}

// A block is a run-time type with its uncommon part and its methods, in the order in which the runtime expects them.
type block[T, M any] struct {
	t T
	u uncommonType
	m M
}

// newBlock allocates a run-time type of form T with room for n methods.
func newBlock[T any](n int) (t *T, u *uncommonType, methods []methodEntry) {
	switch {
	case n <= 4:
		b := new(block[T, [4]methodEntry])
		t, u, methods = &b.t, &b.u, b.m[:n]
	case n <= 16:
		b := new(block[T, [16]methodEntry])
		t, u, methods = &b.t, &b.u, b.m[:n]
	case n <= 64:
		b := new(block[T, [64]methodEntry])
		t, u, methods = &b.t, &b.u, b.m[:n]
	case n <= 256:
		b := new(block[T, [256]methodEntry])
		t, u, methods = &b.t, &b.u, b.m[:n]
	default:
		fail("a type has more than 256 methods")
	}
	u.Moff = uint32(unsafe.Sizeof(*u))
	return t, u, methods
}

// A funcForm is a function type: its parameters and results follow its uncommon part.
type funcForm struct {
	funcType
	u    uncommonType
	args [40]*rtype
}

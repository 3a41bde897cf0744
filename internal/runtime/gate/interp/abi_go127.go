//go:build go1.27 && !go1.28

package interp

import "unsafe"

// All of this is declared in internal/abi, reflect and runtime of this Go version; TestLayout compares it with their source.

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
	flagRegular      = 1 << 3
	flagMaskOnDemand = 1 << 4
	flagDirectIface  = 1 << 5
)

const (
	kindInterface = 20
	kindSlice     = 23
	kindString    = 24
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
	KeysOff          uintptr
	KeyStride        uintptr
	ElemsOff         uintptr
	ElemStride       uintptr
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

// closureHead is what reflect.MakeFunc makes (reflect.makeFuncImpl): a function value that the host can call natively.
type closureHead struct {
	code    uintptr
	stack   unsafe.Pointer
	argLen  uintptr
	regPtrs [2]uint8
	ftyp    unsafe.Pointer
	fn      unsafe.Pointer // of type func([]reflect.Value) []reflect.Value: points to closure.call
}

// typeAssertionError mirrors runtime.TypeAssertionError, whose text is the one that programs know.
type typeAssertionError struct {
	iface, concrete, asserted *rtype
	missing                   string
}

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

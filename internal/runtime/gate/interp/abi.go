package interp

import (
	"reflect"
	"unsafe"

	_ "github.com/recurgentd/recurgentd/internal/runtime/gate/goversion" // says so when the Go version is not known
)

// Program types are made as true run-time types, so that fmt, encoding/json, errors and sort treat their values, fields
// and methods exactly as they do natively. Packages reflect and runtime offer all of it but named types and methods. What the
// Go runtime knows of a type is mirrored in one file for each Go version: docs/upgrading-go.md.

const wordSize = unsafe.Sizeof(uintptr(0))

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

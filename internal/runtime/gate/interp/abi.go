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

// encodeName returns a name as run-time types store it. The bytes must stay reachable: from a type, or by addReflectOff.
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

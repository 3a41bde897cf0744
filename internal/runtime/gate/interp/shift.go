package interp

import (
	"go/token"
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

func (c *compiler) shift(in *ssa.BinOp, d, x, y uintptr) op {
	count := c.shiftCount(in.Y.Type(), y)
	left := in.Op == token.SHL
	switch c.mc.types.layout(in.X.Type()).Kind() {
	case reflect.Int:
		return shiftOp[int](left, d, x, count)
	case reflect.Int8:
		return shiftOp[int8](left, d, x, count)
	case reflect.Int16:
		return shiftOp[int16](left, d, x, count)
	case reflect.Int32:
		return shiftOp[int32](left, d, x, count)
	case reflect.Int64:
		return shiftOp[int64](left, d, x, count)
	case reflect.Uint:
		return shiftOp[uint](left, d, x, count)
	case reflect.Uint8:
		return shiftOp[uint8](left, d, x, count)
	case reflect.Uint16:
		return shiftOp[uint16](left, d, x, count)
	case reflect.Uint32:
		return shiftOp[uint32](left, d, x, count)
	case reflect.Uint64:
		return shiftOp[uint64](left, d, x, count)
	case reflect.Uintptr:
		return shiftOp[uintptr](left, d, x, count)
	}
	fail("no shift " + in.String())
	return nil
}

func shiftOp[T integer](left bool, d, x uintptr, count func(unsafe.Pointer) uint64) op {
	if left {
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) << count(m) }
	}
	return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) >> count(m) }
}

// shiftCount reads a shift count; a negative one panics as natively.
func (c *compiler) shiftCount(t types.Type, off uintptr) func(unsafe.Pointer) uint64 {
	read := c.readInt(t, off)
	if isUnsigned(t) {
		return func(m unsafe.Pointer) uint64 { return uint64(read(m)) }
	}
	return func(m unsafe.Pointer) uint64 {
		n := read(m)
		if n < 0 {
			_ = int64(1) << n // panics: negative shift amount
		}
		return uint64(n)
	}
}

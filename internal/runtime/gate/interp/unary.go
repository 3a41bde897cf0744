package interp

import (
	"go/token"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

func (c *compiler) unop(in *ssa.UnOp) op {
	if unread(in) {
		at := c.place(in.X).addressOf()
		return func(m unsafe.Pointer) { at(m) }
	}
	if in.Op == token.MUL && !isLoopState(in.X) {
		return loadOp(c.layout(in.Type()), c.off(in), c.place(in.X))
	}
	d, x := c.off(in), c.off(in.X)
	switch in.Op {
	case token.MUL:
		return exhaust(d, x)
	case token.NOT:
		return func(m unsafe.Pointer) { *(*bool)(unsafe.Add(m, d)) = !*(*bool)(unsafe.Add(m, x)) }
	case token.ARROW:
		return c.receive(in)
	}
	return negate(in.Op, c.mc.types.layout(in.Type()).Kind(), d, x)
}

func negate(tok token.Token, k reflect.Kind, d, x uintptr) op {
	switch k {
	case reflect.Int:
		return intUnary[int](tok, d, x)
	case reflect.Int8:
		return intUnary[int8](tok, d, x)
	case reflect.Int16:
		return intUnary[int16](tok, d, x)
	case reflect.Int32:
		return intUnary[int32](tok, d, x)
	case reflect.Int64:
		return intUnary[int64](tok, d, x)
	case reflect.Uint:
		return intUnary[uint](tok, d, x)
	case reflect.Uint8:
		return intUnary[uint8](tok, d, x)
	case reflect.Uint16:
		return intUnary[uint16](tok, d, x)
	case reflect.Uint32:
		return intUnary[uint32](tok, d, x)
	case reflect.Uint64:
		return intUnary[uint64](tok, d, x)
	case reflect.Uintptr:
		return intUnary[uintptr](tok, d, x)
	case reflect.Float32:
		return minus[float32](d, x)
	case reflect.Float64:
		return minus[float64](d, x)
	case reflect.Complex64:
		return minus[complex64](d, x)
	case reflect.Complex128:
		return minus[complex128](d, x)
	}
	fail("no unary " + tok.String())
	return nil
}

func intUnary[T integer](tok token.Token, d, x uintptr) op {
	if tok == token.XOR {
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = ^*(*T)(unsafe.Add(m, x)) }
	}
	return minus[T](d, x)
}

func minus[T number](d, x uintptr) op {
	return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = -*(*T)(unsafe.Add(m, x)) }
}

package interp

import (
	"go/token"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// assignment compiles x op= y for what stands at a place.
func (c *compiler) assignment(in *ssa.BinOp, p location) op {
	tok, y := in.Op, c.off(in.Y)
	switch c.mc.types.layout(in.Type()).Kind() {
	case reflect.Float32:
		return assign[float32](tok, p, y)
	case reflect.Float64:
		return assign[float64](tok, p, y)
	}
	switch c.layout(in.Type()).Size { // signed numbers wrap as unsigned ones do
	case 1:
		return assignBits[uint8](tok, p, y)
	case 2:
		return assignBits[uint16](tok, p, y)
	case 4:
		return assignBits[uint32](tok, p, y)
	}
	return assignBits[uint64](tok, p, y)
}

func assignBits[T uint8 | uint16 | uint32 | uint64](tok token.Token, p location, y uintptr) op {
	at := p.addressOf()
	switch tok {
	case token.AND:
		return func(m unsafe.Pointer) { *(*T)(at(m)) &= *(*T)(unsafe.Add(m, y)) }
	case token.OR:
		return func(m unsafe.Pointer) { *(*T)(at(m)) |= *(*T)(unsafe.Add(m, y)) }
	case token.XOR:
		return func(m unsafe.Pointer) { *(*T)(at(m)) ^= *(*T)(unsafe.Add(m, y)) }
	case token.AND_NOT:
		return func(m unsafe.Pointer) { *(*T)(at(m)) &^= *(*T)(unsafe.Add(m, y)) }
	}
	return assign[T](tok, p, y)
}

func assign[T number](tok token.Token, p location, y uintptr) op {
	x, i, off, at := p.base, p.index, p.off, p.addressOf()
	element := p.form == ofElement && p.more == 0 && p.off == 0 && p.size == unsafe.Sizeof(*new(T))
	switch {
	case p.form == behindPointer && tok == token.ADD:
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(m, x)), off)) += *(*T)(unsafe.Add(m, y))
		}
	case p.form == behindPointer && tok == token.SUB:
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(m, x)), off)) -= *(*T)(unsafe.Add(m, y))
		}
	case element && tok == token.ADD:
		return func(m unsafe.Pointer) {
			(*(*[]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, i))] += *(*T)(unsafe.Add(m, y))
		}
	case tok == token.ADD:
		return func(m unsafe.Pointer) { *(*T)(at(m)) += *(*T)(unsafe.Add(m, y)) }
	case tok == token.SUB:
		return func(m unsafe.Pointer) { *(*T)(at(m)) -= *(*T)(unsafe.Add(m, y)) }
	}
	return func(m unsafe.Pointer) { *(*T)(at(m)) *= *(*T)(unsafe.Add(m, y)) }
}

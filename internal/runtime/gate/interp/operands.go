package interp

import (
	"cmp"
	"go/token"
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// This file compiles arithmetic and branches of which one operand is loaded for nothing else.

// loaded returns the load that is folded into what uses v; nil when v stands in the frame.
func (c *compiler) loaded(v ssa.Value) *ssa.UnOp {
	if load, ok := v.(*ssa.UnOp); ok && c.folded[load] {
		return load
	}
	return nil
}

// takesLoaded reports whether an operation can load an operand itself.
func takesLoaded(in *ssa.BinOp) bool {
	if in.Op != token.ADD && in.Op != token.SUB && in.Op != token.MUL {
		return false
	}
	b, ok := in.Type().Underlying().(*types.Basic)
	return ok && (b.Kind() == types.Int || b.Kind() == types.Int64 || b.Kind() == types.Uint64 || b.Kind() == types.Float64)
}

// withLoaded compiles such an operation; nil when both operands stand in the frame.
func (c *compiler) withLoaded(in *ssa.BinOp) op {
	tok, x, load := in.Op, in.X, c.loaded(in.Y)
	if load == nil {
		if load = c.loaded(in.X); load == nil {
			return nil
		}
		if x = in.Y; tok == token.SUB {
			tok = token.SUB_ASSIGN // stands for the difference the other way round
		}
	}
	d, at := c.off(in), c.place(load.X)
	if isBasic(in.Type(), types.IsFloat) {
		return loadedOp[float64](tok, d, c.off(x), at)
	}
	return loadedOp[uint64](tok, d, c.off(x), at) // signed numbers wrap as unsigned ones do
}

func loadedOp[T uint64 | float64](tok token.Token, d, x uintptr, p location) op {
	if p.form == behindPointer {
		return fieldOp[T](tok, d, x, p)
	}
	at := p.addressOf()
	switch tok {
	case token.ADD:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) + *(*T)(at(m)) }
	case token.SUB:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) - *(*T)(at(m)) }
	case token.MUL:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) * *(*T)(at(m)) }
	}
	return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(at(m)) - *(*T)(unsafe.Add(m, x)) }
}

func fieldOp[T uint64 | float64](tok token.Token, d, x uintptr, p location) op {
	y, off := p.base, p.off
	switch tok {
	case token.ADD:
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) + *(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(m, y)), off))
		}
	case token.SUB:
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) - *(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(m, y)), off))
		}
	case token.MUL:
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) * *(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(m, y)), off))
		}
	}
	return func(m unsafe.Pointer) {
		*(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(m, y)), off)) - *(*T)(unsafe.Add(m, x))
	}
}

// branchesLoaded reports whether a branch can load an operand of its comparison itself. It may say no for yes, which is wrong for NaN only.
func (c *compiler) branchesLoaded(in *ssa.BinOp) bool {
	k := c.mc.types.layout(in.X.Type()).Kind()
	return isInteger(k) || k == reflect.Bool || k == reflect.String
}

// branchLoaded compiles a branch on the comparison of what is loaded with y.
func (c *compiler) branchLoaded(load *ssa.UnOp, tok token.Token, y ssa.Value, yes, no *codeBlock) ending {
	switch tok {
	case token.NEQ:
		tok, yes, no = token.EQL, no, yes
	case token.GTR:
		tok, yes, no = token.LEQ, no, yes
	case token.GEQ:
		tok, yes, no = token.LSS, no, yes
	}
	p, at := c.place(load.X), c.off(y)
	switch c.mc.types.layout(y.Type()).Kind() {
	case reflect.Int, reflect.Int64:
		return onLoaded[int64](tok, p, at, yes, no)
	case reflect.Int8:
		return onLoaded[int8](tok, p, at, yes, no)
	case reflect.Int16:
		return onLoaded[int16](tok, p, at, yes, no)
	case reflect.Int32:
		return onLoaded[int32](tok, p, at, yes, no)
	case reflect.Uint8, reflect.Bool:
		return onLoaded[uint8](tok, p, at, yes, no)
	case reflect.Uint16:
		return onLoaded[uint16](tok, p, at, yes, no)
	case reflect.Uint32:
		return onLoaded[uint32](tok, p, at, yes, no)
	case reflect.String:
		return onLoaded[string](tok, p, at, yes, no)
	}
	return onLoaded[uint64](tok, p, at, yes, no)
}

func onLoaded[T cmp.Ordered](tok token.Token, p location, y uintptr, yes, no *codeBlock) ending {
	at := p.addressOf()
	x, i := p.base, p.index
	element := p.form == ofElement && p.more == 0 && p.off == 0 && p.size == unsafe.Sizeof(*new(T))
	switch {
	case element && tok == token.LSS:
		return func(m unsafe.Pointer) *codeBlock {
			if (*(*[]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, i))] < *(*T)(unsafe.Add(m, y)) {
				return yes
			}
			return no
		}
	case element && tok == token.LEQ:
		return func(m unsafe.Pointer) *codeBlock {
			if (*(*[]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, i))] <= *(*T)(unsafe.Add(m, y)) {
				return yes
			}
			return no
		}
	case element:
		return func(m unsafe.Pointer) *codeBlock {
			if (*(*[]T)(unsafe.Add(m, x)))[*(*int)(unsafe.Add(m, i))] == *(*T)(unsafe.Add(m, y)) {
				return yes
			}
			return no
		}
	case tok == token.LSS:
		return func(m unsafe.Pointer) *codeBlock {
			if *(*T)(at(m)) < *(*T)(unsafe.Add(m, y)) {
				return yes
			}
			return no
		}
	case tok == token.LEQ:
		return func(m unsafe.Pointer) *codeBlock {
			if *(*T)(at(m)) <= *(*T)(unsafe.Add(m, y)) {
				return yes
			}
			return no
		}
	}
	return func(m unsafe.Pointer) *codeBlock {
		if *(*T)(at(m)) == *(*T)(unsafe.Add(m, y)) {
			return yes
		}
		return no
	}
}

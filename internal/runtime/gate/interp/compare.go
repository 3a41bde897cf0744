package interp

import (
	"cmp"
	"go/token"
	"go/types"
	"reflect"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/tokens"
	"golang.org/x/tools/go/ssa"
)

// branches reports whether a branch can make that comparison itself.
func (c *compiler) branches(in *ssa.BinOp) bool {
	switch in.Op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
	default:
		return false
	}
	switch in.X.Type().Underlying().(type) {
	case *types.Interface:
		return false
	case *types.Slice, *types.Map, *types.Signature, *types.Pointer, *types.Chan:
		return true
	}
	k := c.mc.types.layout(in.X.Type()).Kind()
	return k == reflect.Bool || isInteger(k) || k == reflect.Float32 || k == reflect.Float64 || k == reflect.String
}

// branch compiles the end of a block that goes on with yes or no.
func (c *compiler) branch(cond ssa.Value, yes, no *codeBlock) ending {
	if load := c.loaded(cond); load != nil {
		at := c.place(load.X).addressOf()
		return func(m unsafe.Pointer) *codeBlock {
			if *(*bool)(at(m)) {
				return yes
			}
			return no
		}
	}
	in, ok := cond.(*ssa.BinOp)
	if !ok || !c.folded[in] {
		x := c.off(cond)
		return func(m unsafe.Pointer) *codeBlock {
			if *(*bool)(unsafe.Add(m, x)) {
				return yes
			}
			return no
		}
	}
	if load := c.loaded(in.X); load != nil {
		return c.branchLoaded(load, in.Op, in.Y, yes, no)
	}
	if load := c.loaded(in.Y); load != nil {
		return c.branchLoaded(load, tokens.Mirrored(in.Op), in.X, yes, no)
	}
	x, y := c.off(in.X), c.off(in.Y)
	switch c.mc.types.layout(in.X.Type()).Kind() {
	case reflect.Int, reflect.Int64:
		return branchOn[int64](in.Op, x, y, yes, no)
	case reflect.Int8:
		return branchOn[int8](in.Op, x, y, yes, no)
	case reflect.Int16:
		return branchOn[int16](in.Op, x, y, yes, no)
	case reflect.Int32:
		return branchOn[int32](in.Op, x, y, yes, no)
	case reflect.Uint8, reflect.Bool:
		return branchOn[uint8](in.Op, x, y, yes, no)
	case reflect.Uint16:
		return branchOn[uint16](in.Op, x, y, yes, no)
	case reflect.Uint32:
		return branchOn[uint32](in.Op, x, y, yes, no)
	case reflect.Float32:
		return branchOn[float32](in.Op, x, y, yes, no)
	case reflect.Float64:
		return branchOn[float64](in.Op, x, y, yes, no)
	case reflect.String:
		return branchOn[string](in.Op, x, y, yes, no)
	}
	return branchOn[uint64](in.Op, x, y, yes, no) // the first word of slices, maps, functions, which are compared with nil
}

func branchOn[T cmp.Ordered](tok token.Token, x, y uintptr, yes, no *codeBlock) ending {
	switch tok {
	case token.EQL:
		return func(m unsafe.Pointer) *codeBlock {
			if *(*T)(unsafe.Add(m, x)) == *(*T)(unsafe.Add(m, y)) {
				return yes
			}
			return no
		}
	case token.NEQ:
		return func(m unsafe.Pointer) *codeBlock {
			if *(*T)(unsafe.Add(m, x)) != *(*T)(unsafe.Add(m, y)) {
				return yes
			}
			return no
		}
	case token.LSS:
		return func(m unsafe.Pointer) *codeBlock {
			if *(*T)(unsafe.Add(m, x)) < *(*T)(unsafe.Add(m, y)) {
				return yes
			}
			return no
		}
	case token.LEQ:
		return func(m unsafe.Pointer) *codeBlock {
			if *(*T)(unsafe.Add(m, x)) <= *(*T)(unsafe.Add(m, y)) {
				return yes
			}
			return no
		}
	case token.GTR:
		return branchOn[T](token.LSS, y, x, yes, no)
	}
	return branchOn[T](token.LEQ, y, x, yes, no)
}

package interp

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// harmless reports whether an instruction does nothing but give its value: it cannot panic, and changes no memory.
func (c *compiler) harmless(in ssa.Instruction) bool {
	switch in := in.(type) {
	case *ssa.Phi, *ssa.Extract, *ssa.Field, *ssa.ChangeType, *ssa.DebugRef, *ssa.Jump, *ssa.If, *ssa.Return:
		return true
	case *ssa.BinOp:
		return harmlessOp(in) && c.harmlessOperand(in.X) && c.harmlessOperand(in.Y)
	case *ssa.UnOp:
		if in.Op == token.MUL {
			return c.neverNil(in.X) && !isLoopState(in.X)
		}
		return in.Op != token.ARROW
	case *ssa.FieldAddr:
		return c.known[in] || c.neverNil(in.X)
	case *ssa.Convert:
		return isBasic(in.X.Type(), types.IsNumeric) && isBasic(in.Type(), types.IsNumeric)
	case *ssa.Call:
		return isView(in)
	}
	return false
}

// harmlessOperand reports whether an operand is not loaded by what uses it, or cannot fail to be.
func (c *compiler) harmlessOperand(v ssa.Value) bool {
	load := c.loaded(v)
	return load == nil || c.harmless(load)
}

func harmlessOp(in *ssa.BinOp) bool {
	switch in.Op {
	case token.QUO, token.REM:
		return isBasic(in.X.Type(), types.IsFloat|types.IsComplex)
	case token.SHL, token.SHR:
		_, constant := in.Y.(*ssa.Const)
		return constant || isUnsigned(in.Y.Type())
	case token.EQL, token.NEQ:
		return comparesQuietly(in.X.Type()) && comparesQuietly(in.Y.Type())
	}
	return true // + of strings allocates, which no program sees
}

// comparesQuietly reports whether values of a type have an equality that cannot panic.
func comparesQuietly(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Interface, *types.Struct, *types.Array:
		return false
	}
	return true
}

func isBasic(t types.Type, info types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&info != 0
}

// neverNil reports whether a pointer always points to a variable.
func (c *compiler) neverNil(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.Alloc, *ssa.Global:
		return true
	case *ssa.FieldAddr:
		return c.known[v] || c.neverNil(v.X)
	}
	return false
}

// isView reports whether a call only reads a part of its operand's own value: the length of a string, the length or the capacity of
// a slice. It needs no operation, as the part stands in the frame already.
func isView(in *ssa.Call) bool {
	if !isBuiltin(in, "len") && !isBuiltin(in, "cap") {
		return false
	}
	t := in.Call.Args[0].Type().Underlying()
	if _, ok := t.(*types.Slice); ok {
		return true
	}
	return isBasic(t, types.IsString)
}

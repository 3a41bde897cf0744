package gate

import (
	"go/ast"
	"go/token"
	"go/types"
)

// This file says what the types of an expression mean for the order in which the toolchain evaluates it. It asks about expressions of the
// program alone, before anything in them has moved: what moved has no type yet.

// arrayLength reports whether a call is len or cap of an array.
func (o *orderer) arrayLength(call *ast.CallExpr) bool {
	f, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok || f.Obj != nil || f.Name != "len" && f.Name != "cap" || len(call.Args) != 1 {
		return false
	}
	t := o.c.info.TypeOf(call.Args[0])
	if t == nil {
		return false
	}
	t = t.Underlying()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem().Underlying()
	}
	_, ok = t.(*types.Array)
	return ok
}

// keepsType reports whether a variable that is declared with an expression of && and || has the type that the expression has in its place:
// comparisons alone take any boolean type there.
func (o *orderer) keepsType(e ast.Expr) bool {
	return o.plainBool(e) || o.typed(e)
}

// plainBool reports whether an expression is of type bool, or of no type yet, as in a condition.
func (o *orderer) plainBool(e ast.Expr) bool {
	b, ok := o.c.info.TypeOf(e).(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// typed reports whether an expression of a boolean type has it of its own.
func (o *orderer) typed(e ast.Expr) bool {
	switch x := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		return (x.Op == token.LAND || x.Op == token.LOR) && (o.typed(x.X) || o.typed(x.Y))
	case *ast.UnaryExpr:
		return x.Op == token.ARROW || o.typed(x.X)
	}
	return o.c.info.Types[e].Value == nil
}

// copiesText reports whether a call converts a string to bytes or runes, which the toolchain does in order with calls, as no other conversion.
func (o *orderer) copiesText(call *ast.CallExpr) bool {
	if len(call.Args) != 1 || !o.c.info.Types[call.Fun].IsType() {
		return false
	}
	arg := o.c.info.Types[call.Args[0]]
	if arg.Type == nil || arg.Value != nil {
		return false
	}
	from, isText := arg.Type.Underlying().(*types.Basic)
	_, toSlice := o.c.info.TypeOf(call).Underlying().(*types.Slice)
	return toSlice && isText && from.Info()&types.IsString != 0
}

// pointerShaped reports whether an interface holds values of a type directly. The toolchain asserts such a type late, any other in order with
// calls.
func pointerShaped(t types.Type) bool {
	if t == nil {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer, *types.Chan, *types.Map, *types.Signature:
		return true
	case *types.Struct:
		return u.NumFields() == 1 && pointerShaped(u.Field(0).Type())
	case *types.Array:
		return u.Len() == 1 && pointerShaped(u.Elem())
	}
	return false
}

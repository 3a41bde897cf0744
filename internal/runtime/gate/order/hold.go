package order

import (
	"go/ast"
	"go/token"
	"go/types"
)

// holdAs moves an expression of type t into a variable, and returns the variable. If the type cannot be written, it records a failure and returns the
// expression.
func (o *orderer) holdAs(x ast.Expr, t types.Type, moved *[]ast.Stmt) ast.Expr {
	def, use := o.variable(x.Pos())
	if t == nil || o.ownType(x) || types.Identical(t, types.Default(t)) && types.Identical(t, o.defaultOf(x)) {
		*moved = append(*moved, define(def, x))
		return use
	}
	to := o.typeExpr(types.Default(t), x.Pos())
	if to == nil {
		o.fail(x.Pos())
		return x
	}
	spec := &ast.ValueSpec{Names: []*ast.Ident{def}, Type: to, Values: []ast.Expr{x}}
	*moved = append(*moved, &ast.DeclStmt{Decl: &ast.GenDecl{TokPos: x.Pos(), Tok: token.VAR, Specs: []ast.Spec{spec}}})
	return use
}

func define(def *ast.Ident, x ast.Expr) ast.Stmt {
	return &ast.AssignStmt{Lhs: []ast.Expr{def}, TokPos: x.Pos(), Tok: token.DEFINE, Rhs: []ast.Expr{x}}
}

// ownType reports whether the type of an expression does not depend on its use. That of comparisons, of shifts of constants, and of what consists of
// them, does.
func (o *orderer) ownType(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return o.ownType(x.X)
	case *ast.UnaryExpr:
		return x.Op == token.AND || x.Op == token.ARROW || o.ownType(x.X)
	case *ast.BinaryExpr:
		switch {
		case comparison(x.Op):
			return false
		case x.Op == token.SHL || x.Op == token.SHR:
			return o.ownType(x.X)
		}
		return o.ownType(x.X) || o.ownType(x.Y)
	case *ast.BasicLit:
		return false
	case *ast.Ident, *ast.SelectorExpr:
		tv, known := o.info.Types[x]
		return !known || tv.Value == nil && !tv.IsNil()
	case *ast.CallExpr:
		if !o.info.Types[x.Fun].IsBuiltin() {
			return true
		}
		switch o.builtinName(x) { // with untyped arguments their result is untyped
		case "complex", "real", "imag", "min", "max":
			return false
		}
	}
	return true
}

// defaultOf returns the type of a variable that is declared with e, an expression without a type of its own; nil if that is not certain.
func (o *orderer) defaultOf(e ast.Expr) types.Type {
	if x, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && comparison(x.Op) {
		return types.Typ[types.Bool]
	}
	return nil
}

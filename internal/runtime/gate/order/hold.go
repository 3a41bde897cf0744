package order

import (
	"go/ast"
	"go/token"
	"go/types"
)

// holdAs moves an expression of type t into a variable, and returns the variable; the expression itself where its type cannot be written.
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

// ownType reports whether an expression has its type of its own, whatever it is used for. Comparisons, shifts of constants and what
// consists of them have not.
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
		switch o.builtinName(x) { // of constants and shifts they make what is asked of them
		case "complex", "real", "imag", "min", "max":
			return false
		}
	}
	return true
}

// defaultOf returns the type that a variable gets which is declared with an expression without a type of its own; nil where that
// is not sure.
func (o *orderer) defaultOf(e ast.Expr) types.Type {
	if x, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && comparison(x.Op) {
		return types.Typ[types.Bool]
	}
	return nil
}

package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Compilers for some processors compute a product and the sum that contains it in one operation. It rounds once, so the
// result differs from that of two operations. They also divide by a power of two by multiplying. The language forbids
// both if the product or quotient is converted explicitly, even to its own type. Package rewrite therefore converts
// each of them, so that a program computes the same everywhere.

// numbers is the set of kinds of fractional numbers that a type has or that a type parameter can have.
type numbers struct{ real, complex bool }

// numbersOf returns the kinds of fractional numbers that values of the type may be.
func numbersOf(t types.Type) (n numbers) {
	switch u := types.Unalias(t).Underlying().(type) {
	case *types.Basic:
		return numbers{u.Info()&types.IsFloat != 0, u.Info()&types.IsComplex != 0}
	case *types.Interface: // of a type parameter
		for e := range u.EmbeddedTypes() {
			n = n.or(numbersOf(e))
		}
	case *types.Union:
		for term := range u.Terms() {
			n = n.or(numbersOf(term.Type()))
		}
	}
	return n
}

func (n numbers) or(m numbers) numbers { return numbers{n.real || m.real, n.complex || m.complex} }

// rounds reports whether the result of an operation must be rounded explicitly.
func (n numbers) rounds(op token.Token) bool {
	return (op == token.MUL || op == token.QUO) && (n.real || n.complex)
}

// unfused returns an expression that rounds a product or quotient, or nil for any other operation and for constants.
func (w *writer) unfused(e *ast.BinaryExpr) ast.Expr {
	v := w.info.Types[e]
	if v.Value != nil || v.Type == nil {
		return nil
	}
	return w.rounded(e, v.Type)
}

// rounded does the same for an operation with a known type. The expression may be one that the text adds.
func (w *writer) rounded(e *ast.BinaryExpr, t types.Type) ast.Expr {
	n := numbersOf(t)
	if !n.rounds(e.Op) {
		return nil
	}
	operation := map[token.Token]string{token.MUL: "Product", token.QUO: "Quotient"}[e.Op]
	basic, _ := types.Unalias(t).(*types.Basic)
	switch {
	case basic != nil && basic.Kind() == types.Float64:
		return w.call(e, "Float64", e)
	case basic != nil && basic.Kind() == types.Float32:
		return w.call(e, "Float32", e)
	case !n.complex:
		return w.call(e, "Rounded", e)
	case isTypeParam(t):
		return w.call(e, operation+"Of", e.X, e.Y)
	}
	return w.call(e, operation, e.X, e.Y)
}

// isTypeParam reports whether t is a type parameter.
func isTypeParam(t types.Type) bool {
	_, is := types.Unalias(t).(*types.TypeParam)
	return is
}

// call returns a call, at the position of a node, of a function of package support or a conversion to a type of it.
func (w *writer) call(in ast.Node, name string, args ...ast.Expr) *ast.CallExpr {
	return &ast.CallExpr{Fun: &ast.Ident{NamePos: in.Pos(), Name: w.support(name)}, Lparen: in.Pos(), Args: args,
		Rparen: in.End()}
}

// unfusedAssign returns a statement that does the same as x *= y or x /= y, but rounds, or nil for any other statement.
func (w *writer) unfusedAssign(s *ast.AssignStmt) ast.Stmt {
	op, method := token.MUL, "Multiply"
	switch s.Tok {
	case token.MUL_ASSIGN:
	case token.QUO_ASSIGN:
		op, method = token.QUO, "Divide"
	default:
		return nil
	}
	x, y := s.Lhs[0], s.Rhs[0]
	t := w.info.TypeOf(x)
	if !numbersOf(t).rounds(op) {
		return nil
	}
	if w.repeatable(x) {
		value := w.rounded(&ast.BinaryExpr{X: x, OpPos: s.TokPos, Op: op,
			Y: &ast.ParenExpr{Lparen: y.Pos(), X: y, Rparen: y.End()}}, t)
		return &ast.AssignStmt{Lhs: s.Lhs, TokPos: s.TokPos, Tok: token.ASSIGN, Rhs: []ast.Expr{value}}
	}
	// An element of a map has no address.
	if at, ok := ast.Unparen(x).(*ast.IndexExpr); ok && overMap(w.info.TypeOf(at.X)) {
		elements := w.call(x, "In", at.X)
		return &ast.ExprStmt{X: &ast.CallExpr{Fun: &ast.SelectorExpr{X: elements,
			Sel: &ast.Ident{NamePos: s.TokPos, Name: method}}, Lparen: s.TokPos, Args: []ast.Expr{at.Index, y},
			Rparen: s.End()}}
	}
	return &ast.ExprStmt{X: w.call(s, method, &ast.UnaryExpr{OpPos: x.Pos(), Op: token.AND, X: x}, y)}
}

// repeatable reports whether an expression can be evaluated twice instead of once: it calls and receives nothing.
func (w *writer) repeatable(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident, *ast.BasicLit:
		return true
	case *ast.ParenExpr:
		return w.repeatable(e.X)
	case *ast.SelectorExpr:
		return w.repeatable(e.X)
	case *ast.StarExpr:
		return w.repeatable(e.X)
	case *ast.IndexExpr:
		return w.repeatable(e.X) && w.repeatable(e.Index)
	case *ast.BinaryExpr:
		return w.repeatable(e.X) && w.repeatable(e.Y)
	case *ast.UnaryExpr:
		return e.Op != token.ARROW && w.repeatable(e.X)
	case *ast.CallExpr: // a conversion, or the length of something
		of := w.info.Types[ast.Unparen(e.Fun)]
		return (of.IsType() || of.IsBuiltin() && w.isLength(e.Fun)) && w.repeatable(e.Args[0])
	}
	return false
}

// isLength reports whether fun is the built-in len. Other built-ins may have effects.
func (w *writer) isLength(fun ast.Expr) bool {
	id, ok := ast.Unparen(fun).(*ast.Ident)
	return ok && id.Name == "len"
}

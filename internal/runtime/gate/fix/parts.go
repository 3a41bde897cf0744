package fix

import (
	"go/ast"
	"go/token"
	"slices"
)

// isTruncated reports whether a float64 counts whole units while the program handles the rest separately: d.Minutes()
// of a duration, or a / b in a program that also takes a % b.
func (m *fixer) isTruncated(x ast.Expr) bool {
	if v := m.variable(x); v != nil {
		if def, value := m.definition(v); value != nil && m.setOnce(v, def) {
			x = value
		}
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.BinaryExpr:
		return x.Op == token.QUO && m.hasRemainder(x.X, x.Y)
	case *ast.CallExpr:
		s, ok := x.Fun.(*ast.SelectorExpr)
		return ok && isDuration(m.Info.TypeOf(s.X)) && slices.Contains([]string{"Hours", "Minutes", "Seconds"},
			s.Sel.Name)
	}
	return false
}

// firstOfText returns s if the expression is s[0] of a string s, where the first character is meant, or nil.
func (m *fixer) firstOfText(x ast.Expr) ast.Expr {
	if ix, ok := ast.Unparen(x).(*ast.IndexExpr); ok && isString(m.Info.TypeOf(ix.X)) && isNumber(ix.Index, "0") {
		return ix.X
	}
	return nil
}

// byteOfText reports whether an expression is a byte of a string, or a variable set to one, that is appended to a
// string.
func (m *fixer) byteOfText(x ast.Expr) bool {
	sum, ok := m.parents[x].(*ast.AssignStmt)
	if _, value := m.definition(m.variable(x)); value != nil {
		x = value
	}
	ix, indexed := ast.Unparen(x).(*ast.IndexExpr)
	return ok && sum.Tok == token.ADD_ASSIGN && indexed && isString(m.Info.TypeOf(ix.X)) &&
		m.Info.Types[ix.Index].Value == nil
}

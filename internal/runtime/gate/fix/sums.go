package fix

import (
	"go/ast"
	"go/token"
	"go/types"
)

// counted repairs m[k] += v where m is a JSON object and v a float64 or a string. A missing member counts as the zero
// value, as in a typed map. It applies only in a program that uses no other numbers in JSON.
func (m *fixer) counted(n *ast.AssignStmt) bool {
	t, op := m.Info.TypeOf(n.Rhs[0]), n.Tok.String()[:1]
	if n.Tok != token.ADD_ASSIGN && (n.Tok != token.SUB_ASSIGN || isString(t)) || !m.isMember(n.Lhs[0]) ||
		m.otherNumbers() {
		return false
	}
	if decodedAs(t) != "number" && decodedAs(t) != "string" {
		return false
	}
	x, like := m.text(n.Lhs[0]), m.like(t)
	return m.useHost("a member of JSON that is missing counts as "+like,
		m.replace(n, x+" = recurgent.Or("+x+", "+like+").("+m.typeText(t)+") "+op+" ("+m.text(n.Rhs[0])+")"))
}

// stepped repairs m[k]++ where m is a JSON object, in a program that does not format numbers, for which 1 and 1.0 are
// the same.
func (m *fixer) stepped(_ types.Error, path []ast.Node, _ []string) bool {
	n, ok := nearest[*ast.IncDecStmt](path, nil)
	if !ok || !m.isMember(n.X) || m.otherNumbers() || uses(m.file, "fmt") || uses(m.file, "strconv") ||
		uses(m.file, "Marshal") {
		return false
	}
	x := m.text(n.X)
	return m.useHost("a member of JSON that is missing counts as 0.0",
		m.replace(n, x+" = recurgent.Or("+x+", 0.0).(float64) "+n.Tok.String()[:1]+" 1"))
}

// isMember reports whether an expression is an element of a map with values of type any and has the same value whenever
// it is evaluated.
func (m *fixer) isMember(x ast.Expr) bool {
	ix, ok := x.(*ast.IndexExpr)
	if !ok || !m.isPlain(ix) {
		return false
	}
	object, ok := m.Info.TypeOf(ix.X).Underlying().(*types.Map)
	return ok && isEmptyInterface(object.Elem())
}

// otherNumbers reports whether the program asserts values of type any to numbers other than float64, switches on their
// type, or compares them. 1 and 1.0 would differ there.
func (m *fixer) otherNumbers() bool {
	found := uses(m.file, "DeepEqual")
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			found = found || (n.Op == token.EQL || n.Op == token.NEQ) && (m.isLoose(n.X, n.Y) || m.isLoose(n.Y, n.X))
		case *ast.SwitchStmt:
			found = found || n.Tag != nil && isEmptyInterface(m.Info.TypeOf(n.Tag))
		case *ast.TypeAssertExpr:
			t := m.Info.TypeOf(n.Type)
			found = found || n.Type != nil && isKind(t, types.IsNumeric) && !isBasic(t, types.Float64)
		case *ast.TypeSwitchStmt:
			found = true
		}
		return !found
	})
	return found
}

// isLoose reports whether x is of type any and with may be a number other than a float64.
func (m *fixer) isLoose(x, with ast.Expr) bool {
	t := m.Info.TypeOf(with)
	return isEmptyInterface(m.Info.TypeOf(x)) && !isName(with, "nil") &&
		(isEmptyInterface(t) || isKind(t, types.IsNumeric) && !isFloat(t))
}

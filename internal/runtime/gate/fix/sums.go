package fix

import (
	"go/ast"
	"go/token"
	"go/types"
)

// counted fixes m[k] += v of an object of JSON and a float64 or a text: what is missing there counts as nothing, as in a map of numbers or texts. It does in a
// program that knows no other numbers in JSON.
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

// stepped fixes m[k]++ of an object of JSON in a program that writes no texts of its numbers: there 1 and 1.0 are one number.
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

// isMember reports whether an expression is a member of a map of values of type any, and the same whenever it is evaluated.
func (m *fixer) isMember(x ast.Expr) bool {
	ix, ok := x.(*ast.IndexExpr)
	if !ok || !m.isPlain(ix) {
		return false
	}
	object, ok := m.Info.TypeOf(ix.X).Underlying().(*types.Map)
	return ok && isEmptyInterface(object.Elem())
}

// otherNumbers reports whether the program takes values of type any for other numbers than float64, asks which they are, or compares them: 1 is no 1.0 there.
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

// isLoose reports whether a value of type any is compared with what may be a number of the program's.
func (m *fixer) isLoose(x, with ast.Expr) bool {
	t := m.Info.TypeOf(with)
	return isEmptyInterface(m.Info.TypeOf(x)) && !isName(with, "nil") &&
		(isEmptyInterface(t) || isKind(t, types.IsNumeric) && !isFloat(t))
}

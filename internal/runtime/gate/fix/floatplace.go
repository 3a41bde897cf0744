package fix

import (
	"go/ast"
	"go/token"
	"go/types"
)

// inFloatPlace reports whether the result of a sum, difference or product has to be a float64 at its place, as in
// total += price * count.
func (m *fixer) inFloatPlace(n *ast.BinaryExpr) bool {
	if n.Op != token.ADD && n.Op != token.SUB && n.Op != token.MUL {
		return false
	}
	x := ast.Expr(n)
	for {
		switch p := m.parents[x].(type) {
		case *ast.ParenExpr:
			x = p
			continue
		case *ast.BinaryExpr:
			switch p.Op {
			case token.ADD, token.SUB, token.MUL, token.QUO:
			default:
				return false
			}
			if isFloat(m.Info.TypeOf(p.X)) || isFloat(m.Info.TypeOf(p.Y)) {
				return true
			}
			x = p
			continue
		}
		return isFloat(m.wanted(x))
	}
}

// bothFloats takes a JSON number and an int for float64.
func (m *fixer) bothFloats(json, whole ast.Expr) bool {
	text := m.converted(json, types.Typ[types.Float64])
	if text == "" || m.quotient(whole) {
		return false
	}
	return m.useHost(clip(m.text(json))+" is a float64 here", m.replace(json, text),
		m.replace(whole, "float64("+m.text(ast.Unparen(whole))+")"))
}

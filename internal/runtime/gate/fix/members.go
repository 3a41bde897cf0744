package fix

import (
	"go/ast"
	"go/types"
)

// isCounted reports whether the value is decoded JSON, or an int that the program stored next to it. In a memory that
// was stored between two calls, that int is decoded JSON too.
func (m *fixer) isCounted(x ast.Expr, t types.Type) (origin, bool) {
	from, ok := m.isJSON(x)
	ix, member := ast.Unparen(x).(*ast.IndexExpr)
	if !ok && member && from&ofInts != 0 && from&ofProgram == 0 && from != ofInts && t != nil &&
		types.Identical(t, types.Typ[types.Int]) && m.setsOnly(ix) {
		return from &^ ofInts, true
	}
	return from, ok
}

// setsOnly reports whether the program sets no member of the object other than this one.
func (m *fixer) setsOnly(ix *ast.IndexExpr) bool {
	v, only := m.variable(ix.X), true
	if v == nil {
		return false
	}
	for _, id := range m.usesOf(v) {
		if p, ok := m.parents[id].(*ast.IndexExpr); ok && p.X == id && m.isSet(p) {
			only = only && m.text(p.Index) == m.text(ix.Index)
		}
	}
	return only
}

// makes reports whether the program converts a value of the type to any somewhere.
func (m *fixer) makes(t types.Type) bool {
	if m.makesOf == nil {
		m.makesOf = map[types.Type]bool{}
	}
	found, known := m.makesOf[t]
	if known {
		return found
	}
	defer func() { m.makesOf[t] = found }()
	ast.Inspect(m.file, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		if !ok || found {
			return !found
		}
		if tv := m.Info.Types[x]; tv.Type != nil && tv.IsValue() && types.Identical(types.Default(tv.Type), t) {
			switch to := m.wanted(x); {
			case m.returns(m.parents[x]): // returned with its own type
			case to != nil:
				found = types.IsInterface(to)
			default:
				_, element := m.parents[x].(*ast.CompositeLit)
				found = element
			}
		}
		return !found
	})
	return found
}

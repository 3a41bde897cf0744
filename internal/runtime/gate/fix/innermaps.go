package fix

import (
	"go/ast"
	"go/types"
)

// innerMaps makes the inner map before m[a][b] is set, in a program that makes m and none of the maps in it: setting
// would panic.
func (m *fixer) innerMaps() {
	if uses(m.file, "recover") || m.jumps() {
		return
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		as, ok := n.(*ast.AssignStmt)
		if !ok || as.Tok.String() != ":=" || len(as.Lhs) != 1 || m.checker.Spent() {
			return true
		}
		v := m.variable(as.Lhs[0])
		if v == nil {
			return true
		}
		outer, ok := v.Type().Underlying().(*types.Map)
		if !ok {
			return true
		}
		if _, ok := outer.Elem().Underlying().(*types.Map); !ok || !m.madeWithout(as.Rhs[0]) {
			return true
		}
		edits := m.makings(v, m.typeText(outer.Elem()))
		m.fix("a map within a map is made before its keys are set", edits...)
		return true
	})
}

// madeWithout reports whether an expression makes an empty map.
func (m *fixer) madeWithout(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.CallExpr:
		return isName(x.Fun, "make")
	case *ast.CompositeLit:
		return len(x.Elts) == 0
	}
	return false
}

// makings returns the edits that make the inner maps of a variable, or none if it is used in a way that may have made
// them.
func (m *fixer) makings(v *types.Var, typ string) (edits []edit) {
	for _, id := range m.usesOf(v) {
		switch p := m.parents[id].(type) {
		case *ast.RangeStmt, *ast.ReturnStmt, *ast.KeyValueExpr, *ast.CompositeLit:
		case *ast.CallExpr:
			if !isName(p.Fun, "len") {
				return nil
			}
		case *ast.IndexExpr:
			if p.X != id || m.isSet(p) {
				return nil
			}
			inner, ok := m.parents[p].(*ast.IndexExpr)
			if !ok || inner.X != ast.Expr(p) || !m.isSet(inner) {
				continue
			}
			st, ok := m.parents[inner].(ast.Stmt)
			if !ok || !m.inBlock(st) || !m.isPlain(p) {
				return nil
			}
			edits = append(edits, m.before(st, "if "+m.text(p)+" == nil {\n"+m.text(p)+" = "+typ+"{}\n}\n"))
		default:
			return nil
		}
	}
	return edits
}

package fix

import (
	"go/ast"
	"go/types"
	"slices"
)

// shared reports whether a change of the list or object may have to be seen elsewhere, where what is converted is a copy: the program has it twice, changes it
// without a variable, or changes the elements of what is no argument.
func (m *fixer) shared(n *ast.TypeAssertExpr) bool {
	if x := m.text(n.X); m.countText(x) > 1 {
		return true
	}
	var name ast.Expr
	switch p := m.parents[n].(type) {
	case *ast.AssignStmt:
		name = p.Lhs[0]
	case *ast.ValueSpec:
		name = p.Names[0]
	case *ast.RangeStmt, *ast.ReturnStmt, *ast.IndexExpr:
		return false
	case *ast.CallExpr:
		_, stands := m.parents[p].(*ast.ExprStmt)
		return stands || m.ownFunction(p) && m.origin(n.X) != ofArguments
	default:
		return true
	}
	v := m.variable(name)
	if v == nil {
		return !isName(name, "_")
	}
	return m.origin(n.X) != ofArguments && m.changed(v, m.text(n.X))
}

// countText counts the expressions of that text that are read, but for comparisons with nil.
func (m *fixer) countText(text string) (times int) {
	ast.Inspect(m.file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || m.text(e) != text {
			return true
		}
		switch p := m.parents[n].(type) {
		case *ast.AssignStmt:
			if slices.Contains(p.Lhs, e) {
				return false
			}
		case *ast.BinaryExpr:
			if isName(p.Y, "nil") {
				return false
			}
		}
		times++
		return false
	})
	return times
}

// changed reports whether the program changes elements of the variable, has it under another name, or hands it to what may change it.
func (m *fixer) changed(v *types.Var, place string) bool {
	found := false
	element := func(e ast.Expr) {
		ix, ok := ast.Unparen(e).(*ast.IndexExpr)
		found = found || ok && m.variable(ix.X) == v
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				element(l)
				found = found || len(n.Rhs) == len(n.Lhs) && m.variable(n.Rhs[i]) == v && m.text(l) != place
			}
		case *ast.IncDecStmt:
			element(n.X)
		case *ast.CallExpr:
			_, stands := m.parents[n].(*ast.ExprStmt)
			found = found || (stands || m.ownFunction(n)) && slices.ContainsFunc(n.Args, func(a ast.Expr) bool { return m.variable(a) == v })
		}
		return !found
	})
	return found
}

// ownFunction reports whether a call is one of a function of the program.
func (m *fixer) ownFunction(c *ast.CallExpr) bool {
	switch f := ast.Unparen(c.Fun).(type) {
	case *ast.Ident:
		_, builtin := m.Info.Uses[f].(*types.Builtin)
		return !builtin
	case *ast.SelectorExpr:
		obj := m.Info.Uses[f.Sel]
		return obj == nil || obj.Pkg() == m.Pkg
	}
	return true
}

package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// shared reports whether a change of the list or object may have to be visible elsewhere, where the conversion would
// make a copy: the program reads it in several places or under several names, or changes it. A list that Run takes from
// the arguments once may be changed.
func (m *fixer) shared(n *ast.TypeAssertExpr) bool {
	if m.countText(m.text(n.X)) > 1 {
		return true
	}
	once := m.origin(n.X) == ofArguments && m.once(n)
	if e, ok := m.Info.TypeOf(
		n.Type).(interface{ Elem() types.Type }); ok && !once && jsonKind(e.Elem()) != "" && !isWhole(e.Elem()) {
		return true
	}
	var name ast.Expr
	switch p := m.parents[n].(type) {
	case *ast.AssignStmt:
		name = p.Lhs[max(0, slices.Index(p.Rhs, ast.Expr(n)))]
	case *ast.ValueSpec:
		name = p.Names[max(0, slices.Index(p.Values, ast.Expr(n)))]
	default:
		return !once && !m.reads(n, "") || once && m.stands(n)
	}
	if isName(name, "_") {
		return false
	}
	v := m.variable(name)
	return v == nil || !once && !m.onlyRead(v, m.text(n.X))
}

// once reports whether Run evaluates a node at most once.
func (m *fixer) once(n ast.Node) bool {
	for p := m.parents[n]; p != nil; p = m.parents[p] {
		switch p := p.(type) {
		case *ast.ForStmt, *ast.FuncLit:
			return false
		case *ast.RangeStmt:
			if n.Pos() > p.X.End() {
				return false
			}
		case *ast.FuncDecl:
			return p.Name.Name == "Run" && p.Recv == nil
		}
	}
	return false
}

// stands reports whether a value is passed to a call that is a statement, or used in any way that is not known to be
// harmless.
func (m *fixer) stands(n ast.Expr) bool {
	switch p := m.parents[n].(type) {
	case *ast.RangeStmt, *ast.ReturnStmt, *ast.IndexExpr:
		return false
	case *ast.CallExpr:
		_, stands := m.parents[p].(*ast.ExprStmt)
		return stands
	}
	return true
}

// countText counts the places that read the expression with that text, except comparisons with nil.
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

// onlyRead reports whether the program does not change the elements of a variable's value, and stores it only at the
// given place.
func (m *fixer) onlyRead(v *types.Var, place string) bool {
	for id, obj := range m.Info.Uses {
		if obj == v && !m.reads(id, place) {
			return false
		}
	}
	return true
}

// reads reports whether an expression is only read at its place: whatever reads it neither changes nor keeps the value.
func (m *fixer) reads(x ast.Expr, place string) bool {
	switch p := m.parents[x].(type) {
	case *ast.RangeStmt, *ast.BinaryExpr:
		return true
	case *ast.KeyValueExpr, *ast.CompositeLit, *ast.ReturnStmt:
		return m.returns(p)
	case *ast.IndexExpr:
		return p.X == x && !m.isSet(p)
	case *ast.AssignStmt:
		i := slices.Index(p.Rhs, x)
		return i < 0 || len(p.Lhs) == len(p.Rhs) && place != "" && m.text(p.Lhs[i]) == place
	case *ast.CallExpr:
		switch m.text(p.Fun) {
		case "len":
			return true
		case "append":
			return p.Args[0] == x || p.Ellipsis.IsValid()
		}
		_, stands := m.parents[p].(*ast.ExprStmt)
		id, builtin := p.Fun.(*ast.Ident)
		return !stands && !m.ownFunction(p) && (!builtin || id.Name != "copy")
	}
	return false
}

// returns reports whether a node is the value that Run returns, or part of a literal in it.
func (m *fixer) returns(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.KeyValueExpr, *ast.CompositeLit:
		return m.returns(m.parents[n])
	case *ast.ReturnStmt:
		_, run := m.resultsOf(n)
		return run
	}
	return false
}

// isSet reports whether an expression is assigned to or its address taken.
func (m *fixer) isSet(x ast.Expr) bool {
	switch p := m.parents[x].(type) {
	case *ast.AssignStmt:
		return slices.Contains(p.Lhs, x)
	case *ast.RangeStmt:
		return p.X != x
	case *ast.IncDecStmt:
		return true
	case *ast.UnaryExpr:
		return p.Op == token.AND
	}
	return false
}

// ownFunction reports whether a call may be one of the program's own functions.
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

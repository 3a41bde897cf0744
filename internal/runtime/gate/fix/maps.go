package fix

import (
	"go/ast"
	"go/types"
	"slices"
)

// fieldInMap repairs m[k].n++ and m[k].n = v in a map of structs: the struct is taken out, changed and stored again.
func (m *fixer) fieldInMap(_ types.Error, path []ast.Node, _ []string) bool {
	if len(m.edits) > 0 || m.jumps() {
		return false // the new variable needs a unique name
	}
	var stmt ast.Stmt
	var set ast.Expr
	var value ast.Node
	for _, n := range path {
		if as, ok := n.(*ast.AssignStmt); ok && len(as.Lhs) == 1 && len(as.Rhs) == 1 && stmt == nil {
			stmt, set, value = as, as.Lhs[0], as.Rhs[0]
		} else if step, ok := n.(*ast.IncDecStmt); ok && stmt == nil {
			stmt, set, value = step, step.X, &ast.BadExpr{}
		}
	}
	if stmt == nil {
		return false
	}
	s, ok := set.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	member, ok := s.X.(*ast.IndexExpr)
	if !ok || member.Pos() != stmt.Pos() || !m.isPlain(member) || m.changes(value) || !m.inBlock(stmt) {
		return false
	}
	name, place := m.unused("entry", "element"), m.text(member)
	return m.fix("a struct in a map is taken out, changed and put back", m.replace(member, name+" := "+place+"\n"+name),
		m.after(stmt, "\n"+place+" = "+name))
}

// isPlain reports whether an expression has the same value whenever it is evaluated between two statements.
func (m *fixer) isPlain(x ast.Expr) bool {
	plain := true
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			plain = plain && (m.Info.Types[n.Fun].IsType() || m.helped(n))
		case *ast.FuncLit, *ast.UnaryExpr, *ast.StarExpr:
			plain = false
		}
		return plain
	})
	return plain
}

// changes reports whether an expression may change the program's state: it calls one of the program's functions or
// passes one on.
func (m *fixer) changes(x ast.Node) bool {
	found := false
	ast.Inspect(x, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || found {
			return !found
		}
		found = m.ownFunction(c) || slices.ContainsFunc(c.Args, func(a ast.Expr) bool {
			_, isFunc := m.Info.TypeOf(a).(*types.Signature)
			return isFunc
		})
		return !found
	})
	return found
}

// inBlock reports whether statements can be inserted before and after a statement.
func (m *fixer) inBlock(s ast.Stmt) bool {
	switch m.parents[s].(type) {
	case *ast.BlockStmt, *ast.CaseClause:
		return true
	}
	return false
}

// nilMaps initialises a map that is declared without a value and only has keys set: setting a key of a nil map panics.
// If the map is returned, this also avoids a null where an object is declared.
func (m *fixer) nilMaps() {
	// A program that recovers may rely on the panic, and one about null may want it.
	if uses(m.file, "recover") || m.terms.Null || aboutNull().MatchString(m.src) {
		return
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) > 0 || spec.Type == nil || m.checker.Spent() {
			return true
		}
		v := m.variable(spec.Names[0])
		if v == nil {
			return true
		}
		if _, isMap := v.Type().Underlying().(*types.Map); isMap && m.onlyKeysSet(v) {
			m.fix("a map is made before its keys are set", m.after(spec, " = "+m.text(ast.Unparen(spec.Type))+"{}"))
		}
		return true
	})
}

// onlyKeysSet reports whether the program sets keys of a map, and otherwise only uses it in ways in which an empty map
// and a nil map are the same.
func (m *fixer) onlyKeysSet(v *types.Var) bool {
	set := false
	for _, id := range m.usesOf(v) {
		switch p := m.parents[id].(type) {
		case *ast.IndexExpr:
			if p.X != id {
				return false
			}
			set = set || m.isSet(p)
		case *ast.RangeStmt:
			if p.X != id {
				return false
			}
		case *ast.CallExpr:
			if !isName(p.Fun, "len") && !isName(p.Fun, "delete") {
				return false
			}
		case *ast.ReturnStmt:
			if _, run := m.resultsOf(p); !run || m.terms.Returns != "object" {
				return false
			}
		default:
			return false
		}
	}
	return set
}

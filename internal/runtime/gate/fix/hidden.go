package fix

import (
	"go/ast"
	"go/types"
)

// setBesideNew repairs count, err := f() in a block that does not read count, where one further out is read later: err
// is declared alone.
func (m *fixer) setBesideNew(as *ast.AssignStmt, used map[types.Object]bool) bool {
	if !m.inBlock(as) || m.jumps() {
		return false
	}
	declared, set := "", false
	for _, l := range as.Lhs {
		id, ok := l.(*ast.Ident)
		if !ok {
			return false
		}
		v, isNew := m.Info.Defs[id].(*types.Var)
		if !isNew {
			continue
		}
		if used[v] {
			if uses(as.Rhs[0], id.Name) || len(as.Rhs) != 1 {
				return false
			}
			declared += "var " + id.Name + " " + m.typeText(v.Type()) + "\n"
			continue
		}
		_, outer := v.Parent().Parent().LookupParent(v.Name(), v.Pos())
		o, ok := outer.(*types.Var)
		if isError(v.Type()) || isBasic(v.Type(), types.Bool) {
			return false // an error that is not checked stays an error
		}
		if !ok || o.Parent() == m.Pkg.Scope() || !types.Identical(o.Type(), v.Type()) || !m.readAfter(o, as) {
			return false
		}
		set = true
	}
	at := m.offset(as.TokPos)
	edits := []edit{{at, at + 2, "="}}
	if declared != "" {
		edits = append(edits, m.before(as, declared))
	}
	return set && m.fix("a variable further out is set, not declared anew", edits...)
}

// readAfter reports whether the program reads a variable after a statement.
func (m *fixer) readAfter(v *types.Var, st ast.Stmt) bool {
	for _, id := range m.usesOf(v) {
		if id.Pos() <= st.End() {
			continue
		}
		as, sets := m.parents[id].(*ast.AssignStmt)
		if !sets || len(as.Lhs) != 1 || as.Lhs[0] != ast.Expr(id) || as.Tok.String() != "=" {
			return true
		}
	}
	return false
}

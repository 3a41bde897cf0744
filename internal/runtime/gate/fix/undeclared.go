package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// undeclared declares a variable where it is first set, as in total = 0 of a total that nothing declares. All uses lie
// behind, in the block of that statement.
func (m *fixer) undeclared(id *ast.Ident) bool {
	f, ok := m.enclosing(id).(*ast.FuncDecl)
	if !ok || len(m.edits) > 0 {
		return false
	}
	first := m.firstSet(f, id.Name)
	if first == nil || m.misspells(f, first, id.Name) {
		return false
	}
	within := m.parents[first]
	if s, isIf := within.(*ast.IfStmt); isIf && s.Init != ast.Stmt(first) || !isIf && !m.inBlock(first) {
		return false
	}
	scope := m.Pkg.Scope().Innermost(first.Pos())
	for _, l := range first.Lhs {
		name, ok := l.(*ast.Ident)
		if !ok {
			return false
		}
		// := sets a variable of the same block, and declares one of another block anew.
		if v := m.variable(name); v != nil && v.Parent() != scope {
			return false
		}
	}
	good, read := true, false
	ast.Inspect(f, func(n ast.Node) bool {
		use, ok := n.(*ast.Ident)
		if !ok || use.Name != id.Name || m.Info.ObjectOf(use) != nil || m.isMemberName(use) {
			return good
		}
		good = good && use.Pos() >= first.Pos() && within.Pos() <= use.Pos() && use.End() <= within.End()
		as, set := m.parents[use].(*ast.AssignStmt)
		read = read || !set || !slices.Contains(as.Lhs, ast.Expr(use))
		return good
	})
	at := m.offset(first.TokPos)
	// A name that is only set may be a misspelled one.
	return good && read && m.fix(id.Name+" is declared where it is first set", edit{at, at + 1, ":="})
}

// misspells reports whether a function has a variable that a name with a slip may mean, and that may hold what the
// statement sets the name to.
func (m *fixer) misspells(f *ast.FuncDecl, as *ast.AssignStmt, name string) bool {
	var of types.Type
	for i, l := range as.Lhs {
		if isName(l, name) && len(as.Lhs) == len(as.Rhs) {
			of = m.Info.TypeOf(as.Rhs[i])
		}
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return !found
		}
		v, ok := m.Info.ObjectOf(id).(*types.Var)
		found = found || ok && !v.IsField() && oneSlip(plainName(v.Name()), plainName(name)) &&
			(of == nil || types.AssignableTo(types.Default(of), v.Type()))
		return !found
	})
	return found
}

// oneSlip reports whether two names are the same but for one letter that is added, left out, another one, or swapped
// with the next. Names of one or two letters have to be the same.
func oneSlip(a, b string) bool {
	if a == b {
		return true
	}
	if min(len(a), len(b)) < 3 {
		return false
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// isMemberName reports whether a name is that of a member or a key of a literal.
func (m *fixer) isMemberName(id *ast.Ident) bool {
	switch p := m.parents[id].(type) {
	case *ast.SelectorExpr:
		return p.Sel == id
	case *ast.KeyValueExpr:
		return p.Key == ast.Expr(id)
	}
	return false
}

// firstSet returns the first statement of a function that sets a name without declaring it, or nil.
func (m *fixer) firstSet(f *ast.FuncDecl, name string) (first *ast.AssignStmt) {
	ast.Inspect(f, func(n ast.Node) bool {
		as, ok := n.(*ast.AssignStmt)
		if !ok || first != nil || as.Tok != token.ASSIGN {
			return first == nil
		}
		for _, l := range as.Lhs {
			if isName(l, name) && m.Info.ObjectOf(l.(*ast.Ident)) == nil {
				first = as
			}
		}
		return first == nil
	})
	return first
}

// declaredInBranches declares a variable before an if whose branches each declare it for themselves, where it is used
// behind.
func (m *fixer) declaredInBranches(id *ast.Ident) bool {
	if len(m.edits) > 0 || m.jumps() {
		return false
	}
	st := m.statementOf(id)
	if st == nil {
		return false
	}
	var branches *ast.IfStmt
	for _, s := range m.siblings(st) {
		if s, ok := s.(*ast.IfStmt); ok && s.End() < st.Pos() {
			branches = s
		}
	}
	if branches == nil {
		return false
	}
	var of types.Type
	edits, good := []edit{}, true
	for s := ast.Stmt(branches); s != nil && good; {
		var body *ast.BlockStmt
		switch b := s.(type) {
		case *ast.IfStmt:
			body, s = b.Body, b.Else
			good = s != nil
		case *ast.BlockStmt:
			body, s = b, nil
		}
		as := definitionIn(body, id.Name)
		if as == nil {
			good = good && ends(body)
			continue
		}
		t := m.Info.TypeOf(as.Lhs[0])
		good = good && t != nil && (of == nil || types.Identical(of, t))
		of = t
		at := m.offset(as.TokPos)
		edits = append(edits, edit{at, at + 2, "="})
	}
	if !good || of == nil || basic(of) != nil && basic(of).Kind() == types.Invalid {
		return false
	}
	return m.fix(id.Name+" is declared before its branches", append(edits,
		m.before(branches, "var "+id.Name+" "+m.typeText(of)+"\n"))...)
}

// definitionIn returns the statement of a block that defines a name alone, or nil.
func definitionIn(b *ast.BlockStmt, name string) *ast.AssignStmt {
	for _, s := range b.List {
		if as, ok := s.(*ast.AssignStmt); ok && as.Tok == token.DEFINE && len(as.Lhs) == 1 && isName(as.Lhs[0], name) {
			return as
		}
	}
	return nil
}

// ends reports whether a block leaves the function or the turn of its loop.
func ends(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	switch b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// statementOf returns the statement of a block that a node is a part of, or nil.
func (m *fixer) statementOf(n ast.Node) ast.Stmt {
	for p := n; p != nil; p = m.parents[p] {
		if s, ok := p.(ast.Stmt); ok && m.inBlock(s) {
			return s
		}
		if _, ok := p.(*ast.FuncDecl); ok {
			return nil
		}
	}
	return nil
}

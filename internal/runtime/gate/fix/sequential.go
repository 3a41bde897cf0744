package fix

//lint:file-ignore SA1019 a program with go statements may not have been type-checked yet, and which variable a name is the parser says

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// sequential removes go statements, locks and wait groups from a program without channels. Running one step after the
// other is one of the orders that they allow.
func (m *fixer) sequential(name string) bool {
	var edits []edit
	locks, possible := map[*ast.Object]bool{}, true
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		// Goroutines that communicate may depend on running at the same time.
		case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			possible = false
		case *ast.GoStmt:
			edits = append(edits, edit{m.offset(n.Pos()), m.offset(n.Call.Pos()), ""})
		case *ast.SelectorExpr:
			if isName(n.X, name) {
				decl := m.lock(n, locks)
				if possible = possible && decl != nil; possible {
					edits = append(edits, m.line(decl))
				}
			}
		}
		return possible
	})
	ast.Inspect(m.file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || !possible || !locks[id.Obj] || id.Obj.Pos() == id.Pos() {
			return possible
		}
		st := m.lockStep(id)
		if possible = st != nil; possible {
			edits = append(edits, m.line(st))
		}
		return possible
	})
	return possible && m.fix("a program has one goroutine: one step is made after the other", edits...)
}

// lock returns the declaration of a variable that is only a lock or a wait group, and records its name. It returns nil
// for any other use of the type.
func (m *fixer) lock(typ *ast.SelectorExpr, locks map[*ast.Object]bool) ast.Node {
	if !slices.Contains([]string{"WaitGroup", "Mutex", "RWMutex"}, typ.Sel.Name) {
		return nil
	}
	switch p := m.parents[typ].(type) {
	case *ast.ValueSpec:
		g, ok := m.parents[p].(*ast.GenDecl)
		if !ok || p.Type != ast.Expr(typ) || len(p.Values) > 0 || len(g.Specs) > 1 {
			return nil
		}
		for _, id := range p.Names {
			locks[id.Obj] = true
		}
		if d, local := m.parents[g].(*ast.DeclStmt); local {
			return d
		}
		return g
	case *ast.CompositeLit:
		n := ast.Node(p)
		if u, ok := m.parents[p].(*ast.UnaryExpr); ok && u.Op == token.AND {
			n = u
		}
		as, ok := m.parents[n].(*ast.AssignStmt)
		if !ok || as.Tok != token.DEFINE || len(as.Lhs) != 1 || len(as.Rhs) != 1 || len(p.Elts) > 0 {
			return nil
		}
		if id, ok := as.Lhs[0].(*ast.Ident); ok && id.Obj != nil {
			locks[id.Obj] = true
			return as
		}
	}
	return nil
}

// lockStep returns the statement that only waits for, locks, unlocks or counts with a lock, or nil for any other use of
// the name.
func (m *fixer) lockStep(id *ast.Ident) ast.Stmt {
	s, ok := m.parents[id].(*ast.SelectorExpr)
	if !ok || s.X != ast.Expr(id) ||
		!slices.Contains([]string{"Add", "Done", "Wait", "Lock", "Unlock", "RLock", "RUnlock"}, s.Sel.Name) {
		return nil
	}
	c, ok := m.parents[s].(*ast.CallExpr)
	if !ok || c.Fun != ast.Expr(s) {
		return nil
	}
	switch st := m.parents[c].(type) {
	case *ast.ExprStmt:
		return st
	case *ast.DeferStmt:
		return st
	}
	return nil
}

// outputs replaces writes to the standard outputs of the process by prints, and an exit of the process by a panic.
func (m *fixer) outputs(name string) {
	var edits []edit
	possible := true
	ast.Inspect(m.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !isName(s.X, name) || !possible {
			return possible
		}
		c, called := m.parents[s].(*ast.CallExpr)
		switch {
		case called && s.Sel.Name == "Exit" && c.Fun == ast.Expr(s):
			edits = append(edits, m.replace(c, `panic("the program ended itself")`))
		case called && (s.Sel.Name == "Stderr" || s.Sel.Name == "Stdout") && len(c.Args) > 1 &&
			c.Args[0] == ast.Expr(s) && strings.HasPrefix(m.text(c.Fun), "fmt.Fprint"):
			edits = append(edits, m.replace(c.Fun, "fmt."+printName(m.text(c.Fun))),
				edit{m.offset(s.Pos()), m.offset(c.Args[1].Pos()), ""})
		default:
			possible = false
		}
		return possible
	})
	if possible && !uses(m.file, "recover") {
		m.fix("there is no process", edits...)
	}
}

// printName returns the print function that corresponds to a function with a writer, such as Println for fmt.Fprintln.
func printName(fun string) string { return "P" + strings.TrimPrefix(fun, "fmt.Fp") }

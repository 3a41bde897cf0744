package rewrite

import (
	"go/ast"
	"go/token"
)

// useVariables adds a use of every unused variable: the gate accepts them, but the compiler does not.
func (w *writer) useVariables() {
	if len(w.unused) == 0 {
		return
	}
	ast.Inspect(w.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			n.List = w.useAfter(n.List)
		case *ast.CaseClause:
			n.Body = w.useAfter(n.Body)
		case *ast.CommClause:
			n.Body = w.useAfter(n.Body)
		case *ast.IfStmt:
			n.Body.List = append(w.uses(n.Init), n.Body.List...)
		case *ast.ForStmt:
			n.Body.List = append(w.uses(n.Init), n.Body.List...)
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				n.Body.List = append(w.useNames(n.Key, n.Value), n.Body.List...)
			}
		case *ast.SwitchStmt:
			w.useInClause(n.Body, n.Init)
		case *ast.TypeSwitchStmt:
			w.useInClause(n.Body, n.Init)
			if guard, ok := n.Assign.(*ast.AssignStmt); ok && w.unused[guard.Lhs[0].Pos()] {
				n.Assign = &ast.ExprStmt{X: guard.Rhs[0]}
			}
		}
		return true
	})
}

// useAfter adds uses after each statement that declares unused variables.
func (w *writer) useAfter(list []ast.Stmt) []ast.Stmt {
	var out []ast.Stmt
	for _, s := range list {
		out = append(append(out, s), w.uses(s)...)
	}
	return out
}

// useInClause adds uses of the variables that a switch declares to its first clause.
func (w *writer) useInClause(body *ast.BlockStmt, init ast.Stmt) {
	if len(body.List) > 0 {
		clause := body.List[0].(*ast.CaseClause)
		clause.Body = append(w.uses(init), clause.Body...)
	}
}

// uses returns uses of the unused variables that a statement declares.
func (w *writer) uses(s ast.Stmt) []ast.Stmt {
	switch s := s.(type) {
	case *ast.LabeledStmt:
		return w.uses(s.Stmt)
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return w.useNames(s.Lhs...)
		}
	case *ast.DeclStmt:
		var out []ast.Stmt
		if g, ok := s.Decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				for _, id := range spec.(*ast.ValueSpec).Names {
					out = append(out, w.useNames(id)...)
				}
			}
		}
		return out
	}
	return nil
}

// useNames returns uses of those names that are unused variables.
func (w *writer) useNames(names ...ast.Expr) []ast.Stmt {
	var out []ast.Stmt
	for _, name := range names {
		if id, ok := name.(*ast.Ident); ok && id.Name != "_" && w.unused[id.Pos()] {
			out = append(out, &ast.AssignStmt{Lhs: []ast.Expr{&ast.Ident{NamePos: id.Pos(), Name: "_"}},
				TokPos: id.Pos(), Tok: token.ASSIGN,
				Rhs: []ast.Expr{&ast.Ident{NamePos: id.Pos(), Name: id.Name}}})
		}
	}
	return out
}

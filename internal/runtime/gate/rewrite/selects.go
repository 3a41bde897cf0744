package rewrite

import "go/ast"

// inOrder returns a select of several cases as selects of one case within each other, so that the first that is ready is taken, as on the engine; nil for
// one that is in order as it is. A program has one goroutine: what is not ready when the select begins will never be.
func (w *writer) inOrder(s *ast.SelectStmt) ast.Stmt {
	var cases []*ast.CommClause
	var last []ast.Stmt // the default clause, or the last case
	for _, c := range s.Body.List {
		if c := c.(*ast.CommClause); c.Comm != nil {
			cases = append(cases, c)
		} else {
			last = []ast.Stmt{c}
		}
	}
	if len(cases) < 2 {
		return nil
	}
	for _, c := range cases {
		if !plainComm(c.Comm) {
			w.refuse("it has a select whose channels and values are more than names")
		}
	}
	var out *ast.SelectStmt
	for i := len(cases) - 1; i >= 0; i-- {
		if out != nil {
			last = []ast.Stmt{&ast.CommClause{Case: out.Select, Colon: out.Select, Body: []ast.Stmt{out}}}
		}
		at := cases[i].Case
		out = &ast.SelectStmt{Select: at, Body: &ast.BlockStmt{Lbrace: at, List: append([]ast.Stmt{cases[i]}, last...), Rbrace: s.Body.Rbrace}}
	}
	return out
}

// plainComm reports whether it makes no difference when the channel of a case, and what is sent, are evaluated.
func plainComm(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.SendStmt:
		return plain(s.Chan) && plain(s.Value)
	case *ast.ExprStmt:
		return plain(ast.Unparen(s.X).(*ast.UnaryExpr).X)
	case *ast.AssignStmt:
		return plain(ast.Unparen(s.Rhs[0]).(*ast.UnaryExpr).X)
	}
	return false
}

func plain(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.BasicLit:
		return true
	case *ast.UnaryExpr:
		_, literal := e.X.(*ast.BasicLit)
		return literal
	}
	return false
}

package rewrite

import (
	"go/ast"
)

// inOrder returns a select of several cases as selects of one case within each other, so that the first that is ready is taken; nil for
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
	before := w.evaluated(cases)
	var out *ast.SelectStmt
	for i := len(cases) - 1; i >= 0; i-- {
		if out != nil {
			last = []ast.Stmt{&ast.CommClause{Case: out.Select, Colon: out.Select, Body: []ast.Stmt{out}}}
		}
		out = &ast.SelectStmt{Select: s.Select, Body: &ast.BlockStmt{Lbrace: s.Select,
			List: append([]ast.Stmt{cases[i]}, last...), Rbrace: s.Body.Rbrace}}
	}
	return after(before, out)
}

// evaluated returns what evaluates the channels of the cases, and what they send, in their order: all of them are, whichever is taken. It has the cases take the values; it does nothing where
// they have names and constants alone.
func (w *writer) evaluated(cases []*ast.CommClause) (before []ast.Stmt) {
	simple := true
	for _, c := range cases {
		channel, sent := operands(c.Comm)
		simple = simple && plain(*channel) && (sent == nil || plain(*sent))
	}
	if simple {
		return nil
	}
	for _, c := range cases {
		channel, sent := operands(c.Comm)
		*channel = w.before(*channel, &before)
		if sent == nil {
			continue
		}
		if v := w.info.Types[*sent]; v.Value == nil && !v.IsNil() { // it may take its type from the channel
			*sent = &ast.CallExpr{Fun: w.call(*sent, "Sent", *channel), Lparen: (*sent).Pos(), Args: []ast.Expr{*sent},
				Rparen: (*sent).End()}
			*sent = w.before(*sent, &before)
		}
	}
	return before
}

// operands returns where a case has its channel, and what it sends; nil for one that receives.
func operands(s ast.Stmt) (channel, sent *ast.Expr) {
	switch s := s.(type) {
	case *ast.SendStmt:
		return &s.Chan, &s.Value
	case *ast.AssignStmt:
		return received(&s.Rhs[0]), nil
	}
	return received(&s.(*ast.ExprStmt).X), nil
}

func received(at *ast.Expr) *ast.Expr {
	for {
		switch e := (*at).(type) {
		case *ast.ParenExpr:
			at = &e.X
		case *ast.UnaryExpr:
			return &e.X
		}
	}
}

// after has a statement come after others, where a single one is needed that breaks and returns as it does.
func after(before []ast.Stmt, s ast.Stmt) ast.Stmt {
	for i := len(before) - 1; i >= 0; i-- {
		at := before[i].Pos()
		clause := &ast.CaseClause{Case: at, Colon: at, Body: []ast.Stmt{s}}
		s = &ast.SwitchStmt{Switch: at, Init: before[i], Body: &ast.BlockStmt{Lbrace: at, List: []ast.Stmt{clause},
			Rbrace: s.End()}}
	}
	return s
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

package rewrite

import (
	"go/ast"
)

// inOrder turns a select with several cases into nested selects with one case each, so that the first ready case in
// source order is taken. It returns nil if there is at most one case. A program has one goroutine, so what is not ready
// when the select begins will never be.
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
	for _, c := range cases {
		if send, ok := c.Comm.(*ast.SendStmt); ok {
			// where a select of several cases panics if the channel is closed
			c.Case, c.Colon, send.Arrow = s.Select, s.Select, s.Select
		}
	}
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

// evaluated returns statements that evaluate the channels and the sent values of all cases in order, as the language
// requires whichever case is taken, and makes the cases use the results. It returns nil if they are only names and
// constants.
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
		// An untyped value, such as a shift, takes its type from the channel.
		if v := w.info.Types[*sent]; v.Value == nil && !v.IsNil() {
			*sent = &ast.CallExpr{Fun: w.call(*sent, "Sent", *channel), Lparen: (*sent).Pos(), Args: []ast.Expr{*sent},
				Rparen: (*sent).End()}
			*sent = w.before(*sent, &before)
		}
	}
	return before
}

// operands returns the places of a case's channel and of the value that it sends, which is nil for a receive.
func operands(s ast.Stmt) (channel, sent *ast.Expr) {
	switch s := s.(type) {
	case *ast.SendStmt:
		return &s.Chan, &s.Value
	case *ast.AssignStmt:
		return received(&s.Rhs[0]), nil
	}
	return received(&s.(*ast.ExprStmt).X), nil
}

// received returns the place of the channel in a receive expression.
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

// after combines statements and a final one to a single statement in which break and return still work.
func after(before []ast.Stmt, s ast.Stmt) ast.Stmt {
	for i := len(before) - 1; i >= 0; i-- {
		at := before[i].Pos()
		clause := &ast.CaseClause{Case: at, Colon: at, Body: []ast.Stmt{s}}
		s = &ast.SwitchStmt{Switch: at, Init: before[i], Body: &ast.BlockStmt{Lbrace: at, List: []ast.Stmt{clause},
			Rbrace: s.End()}}
	}
	return s
}

// plain reports whether an expression is a name or a literal, whose evaluation has no effect.
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

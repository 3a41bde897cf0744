package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
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
	values := w.hoisted(cases)
	for _, c := range cases {
		c.Case = s.Select // a panic is the statement's
		for _, e := range operands(c.Comm) {
			*e = at(s.Select, *e)
		}
	}
	var out *ast.SelectStmt
	for i := len(cases) - 1; i >= 0; i-- {
		if out != nil {
			last = []ast.Stmt{&ast.CommClause{Case: out.Select, Colon: out.Select, Body: []ast.Stmt{out}}}
		}
		out = &ast.SelectStmt{Select: s.Select, Body: &ast.BlockStmt{Lbrace: s.Select, List: append([]ast.Stmt{cases[i]}, last...), Rbrace: s.Body.Rbrace}}
	}
	return within(values, out)
}

// hoisted puts what the cases evaluate into variables, where that makes a difference, and returns their declarations in the order of the text.
func (w *writer) hoisted(cases []*ast.CommClause) []*ast.AssignStmt {
	var all []*ast.Expr
	simple := true
	for _, c := range cases {
		for _, e := range operands(c.Comm) {
			simple = simple && plain(*e)
			all = append(all, e)
		}
	}
	if simple {
		return nil
	}
	var out []*ast.AssignStmt
	for _, e := range all {
		if tv := w.info.Types[*e]; tv.Value != nil || tv.IsNil() {
			continue
		}
		pos := (*e).Pos()
		name := prefix + "Value" + strconv.Itoa(len(out))
		out = append(out, &ast.AssignStmt{Lhs: []ast.Expr{&ast.Ident{NamePos: pos, Name: name}}, TokPos: pos, Tok: token.DEFINE, Rhs: []ast.Expr{w.settled(*e)}})
		*e = &ast.Ident{NamePos: pos, Name: name}
	}
	return out
}

// at returns a plain expression as if it stood there.
func at(pos token.Pos, e ast.Expr) ast.Expr {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return &ast.Ident{NamePos: pos, Name: e.Name}
	case *ast.BasicLit:
		return &ast.BasicLit{ValuePos: pos, Kind: e.Kind, Value: e.Value}
	}
	return e
}

// within returns the statement where the variables are declared. A switch around it keeps its label and what follows from its ends.
func within(values []*ast.AssignStmt, s ast.Stmt) ast.Stmt {
	for i := len(values) - 1; i >= 0; i-- {
		pos := values[i].Pos()
		s = &ast.SwitchStmt{Switch: pos, Init: values[i], Body: &ast.BlockStmt{Lbrace: pos, List: []ast.Stmt{&ast.CaseClause{Case: pos, Colon: pos, Body: []ast.Stmt{s}}}, Rbrace: s.End()}}
	}
	return s
}

// operands are what a select evaluates of a case before it chooses: the channel, and what is sent.
func operands(s ast.Stmt) []*ast.Expr {
	switch s := s.(type) {
	case *ast.SendStmt:
		return []*ast.Expr{&s.Chan, &s.Value}
	case *ast.ExprStmt:
		return []*ast.Expr{&ast.Unparen(s.X).(*ast.UnaryExpr).X}
	case *ast.AssignStmt:
		return []*ast.Expr{&ast.Unparen(s.Rhs[0]).(*ast.UnaryExpr).X}
	}
	return nil
}

// settled returns an expression that has the type elsewhere that it has here: a comparison, and a shift of a constant, may take theirs from what they stand in.
func (w *writer) settled(e ast.Expr) ast.Expr {
	if !w.contextual(e) {
		return e
	}
	basic, ok := w.info.TypeOf(e).(*types.Basic)
	if !ok {
		w.refuse("a comparison or a shift of a constant takes its type from what it stands in")
		return e
	}
	return &ast.CallExpr{Fun: &ast.Ident{NamePos: e.Pos(), Name: basic.Name()}, Lparen: e.Pos(), Args: []ast.Expr{e}, Rparen: e.End()}
}

func (w *writer) contextual(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		return e.Op != token.ARROW && e.Op != token.AND && w.contextual(e.X)
	case *ast.BinaryExpr:
		switch e.Op {
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return true
		case token.SHL, token.SHR:
			return w.info.Types[e.X].Value != nil || w.contextual(e.X)
		}
		return w.contextual(e.X) || w.contextual(e.Y)
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

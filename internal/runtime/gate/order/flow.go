package order

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

// flow is stmt for statements that contain other statements.
func (o *orderer) flow(s ast.Stmt) (moved []ast.Stmt, scoped bool) {
	switch s := s.(type) {
	case *ast.IfStmt:
		return o.condition(&s.Init, &s.Cond)
	case *ast.SwitchStmt:
		return o.switchStmt(s)
	case *ast.TypeSwitchStmt:
		return o.condition(&s.Init, guard(s))
	case *ast.RangeStmt:
		o.alone(&s.X, &moved)
	case *ast.ForStmt:
		o.loop(s, &moved)
	case *ast.SelectStmt:
		o.selectStmt(s, &moved)
	}
	return moved, false
}

// guard returns the place of the expression whose type a type switch tests.
func guard(s *ast.TypeSwitchStmt) *ast.Expr {
	var x ast.Expr
	switch a := s.Assign.(type) {
	case *ast.AssignStmt:
		x = a.Rhs[0]
	case *ast.ExprStmt:
		x = a.X
	}
	return &ast.Unparen(x).(*ast.TypeAssertExpr).X
}

// condition moves what the compiler evaluates early in an init statement, which may be nil, and in the expression after it.
func (o *orderer) condition(init *ast.Stmt, e *ast.Expr) (moved []ast.Stmt, scoped bool) {
	if *init != nil {
		moved, _ = o.stmt(*init)
	}
	var own []ast.Stmt
	o.alone(e, &own)
	if len(own) == 0 || *init == nil {
		return append(moved, own...), false
	}
	moved = append(append(moved, *init), own...)
	*init = nil
	return moved, true
}

// loop handles a for statement. A condition that needs statements before it moves into the body; a post statement that does becomes a call of a
// function literal.
func (o *orderer) loop(s *ast.ForStmt, moved *[]ast.Stmt) {
	if s.Init != nil {
		*moved, _ = o.stmt(s.Init)
	}
	if s.Post != nil {
		recovering := recovers(s.Post) // as long as its calls are in it
		if before, _ := o.stmt(s.Post); len(before) > 0 {
			if recovering {
				o.fail(s.Post.Pos())
			}
			s.Post = &ast.ExprStmt{X: called(s.Post, nil, append(before, s.Post))}
		}
	}
	var own []ast.Stmt
	if s.Cond != nil {
		o.alone(&s.Cond, &own)
	}
	if len(own) == 0 {
		return
	}
	stop := &ast.IfStmt{If: s.Cond.Pos(), Cond: not(s.Cond), Body: block(s.Cond, []ast.Stmt{&ast.BranchStmt{TokPos: s.Cond.Pos(), Tok: token.BREAK}})}
	s.Cond = nil
	s.Body.List = append(append(own, stop), block(s.Body, s.Body.List))
}

// recovers reports whether a statement calls recover. Such a statement cannot move into a function literal, where recover would have no effect.
func recovers(s ast.Node) bool {
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == "recover"
		return !found
	})
	return found
}

func not(e ast.Expr) ast.Expr {
	return &ast.UnaryExpr{OpPos: e.Pos(), Op: token.NOT, X: &ast.ParenExpr{Lparen: e.Pos(), X: e, Rparen: e.End()}}
}

// switchStmt moves what the compiler evaluates early in the tag before the switch. If a case expression needs statements before it too, a chain of ifs
// before the switch finds the number of the matching clause, and the switch is over that number.
func (o *orderer) switchStmt(s *ast.SwitchStmt) (moved []ast.Stmt, scoped bool) {
	mixed := false
	for _, c := range s.Body.List {
		for _, e := range c.(*ast.CaseClause).List {
			mixed = mixed || o.mixed(e)
		}
	}
	if !mixed {
		return o.condition(&s.Init, &s.Tag)
	}
	if s.Init != nil {
		moved, _ = o.stmt(s.Init)
		moved = append(moved, s.Init)
		s.Init = nil
	}
	t := o.typeOf(s.Tag)
	if s.Tag != nil {
		o.parts(&s.Tag, &moved)
		s.Tag = o.holdAs(s.Tag, t, &moved)
	}
	def, clause := o.variable(s.Pos())
	moved = append(moved, define(def, number(s, 0)))
	moved = append(moved, o.find(s, t, clause)...)
	s.Tag = clause
	return moved, true
}

// find returns the statements that set clause to the number of the matching clause, counted from 1. It stays 0 if no case matches.
func (o *orderer) find(s *ast.SwitchStmt, t types.Type, clause *ast.Ident) []ast.Stmt {
	var out []ast.Stmt
	last := &out
	for i, c := range s.Body.List {
		c := c.(*ast.CaseClause)
		for _, e := range c.List {
			if tag, ok := s.Tag.(*ast.Ident); ok {
				o.exprTo(&e, t, last)
				e = &ast.BinaryExpr{X: name(tag), OpPos: e.Pos(), Op: token.EQL, Y: &ast.ParenExpr{Lparen: e.Pos(), X: e, Rparen: e.End()}}
			} else {
				o.parts(&e, last)
			}
			set := &ast.AssignStmt{Lhs: []ast.Expr{name(clause)}, TokPos: e.Pos(), Tok: token.ASSIGN, Rhs: []ast.Expr{number(e, i+1)}}
			rest := block(e, nil)
			*last = append(*last, &ast.IfStmt{If: e.Pos(), Cond: &ast.ParenExpr{Lparen: e.Pos(), X: e, Rparen: e.End()}, Body: block(e, []ast.Stmt{set}), Else: rest})
			last = &rest.List
		}
		if c.List != nil {
			c.List = []ast.Expr{number(c, i+1)}
		}
	}
	return out
}

func number(at ast.Node, n int) ast.Expr {
	return &ast.BasicLit{ValuePos: at.Pos(), Kind: token.INT, Value: strconv.Itoa(n)}
}

func name(id *ast.Ident) *ast.Ident { return &ast.Ident{NamePos: id.Pos(), Name: id.Name} }

// selectStmt moves all channels and sent values before a select, in source order, if one of its cases both calls and reads.
func (o *orderer) selectStmt(s *ast.SelectStmt, moved *[]ast.Stmt) {
	var operands []*ast.Expr
	mixed := false
	for _, c := range s.Body.List {
		own := communication(c.(*ast.CommClause))
		operands = append(operands, own...)
		for i := range own {
			mixed = mixed || o.mixed(*own[0], *own[i])
		}
	}
	if !mixed {
		return
	}
	for _, e := range operands {
		if !o.settled(*e) {
			t := o.typeOf(*e)
			o.parts(e, moved)
			*e = o.holdAs(*e, t, moved)
		}
	}
}

// communication returns the places of a select case's operands: the channel and, for a send, the value.
func communication(c *ast.CommClause) []*ast.Expr {
	var x ast.Expr
	switch s := c.Comm.(type) {
	case *ast.SendStmt:
		return []*ast.Expr{&s.Chan, &s.Value}
	case *ast.ExprStmt:
		x = s.X
	case *ast.AssignStmt:
		x = s.Rhs[0]
	default:
		return nil
	}
	return []*ast.Expr{&ast.Unparen(x).(*ast.UnaryExpr).X}
}

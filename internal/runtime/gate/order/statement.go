package order

import (
	"go/ast"
	"go/token"
	"go/types"
)

// stmt moves what the compiler evaluates early out of a statement, and returns the statements that go before it. If scoped, these declare names of the
// statement's own scope, and have to be in a block with it.
func (o *orderer) stmt(s ast.Stmt) (moved []ast.Stmt, scoped bool) {
	if o.done[s] {
		return nil, false
	}
	o.done[s] = true
	switch s := s.(type) {
	case *ast.AssignStmt:
		shifts := o.shiftsEntry(s)
		o.assign(s, &moved)
		if shifts {
			o.insertFirst(s, &moved)
		}
	case *ast.IncDecStmt:
		o.alone(&s.X, &moved)
	case *ast.ExprStmt:
		o.alone(&s.X, &moved)
	case *ast.ReturnStmt:
		o.results(s, &moved)
	case *ast.DeferStmt: // the function and its arguments are evaluated now
		if o.mixed(s.Call) {
			o.call(s.Call, &moved)
		}
	case *ast.SendStmt:
		if o.mixed(s.Chan, s.Value) {
			o.expr(&s.Chan, &moved)
			o.exprTo(&s.Value, o.element(s.Chan), &moved)
		}
	case *ast.DeclStmt:
		o.variables(s, &moved)
	default:
		return o.flow(s)
	}
	return moved, false
}

// alone moves what the compiler evaluates early in the only expression of a statement.
func (o *orderer) alone(e *ast.Expr, moved *[]ast.Stmt) {
	if *e != nil && o.mixed(*e) {
		o.parts(e, moved)
	}
}

// values moves what the compiler evaluates early in expressions that become values of the given types; nil stands for any type.
func (o *orderer) values(list []ast.Expr, target func(i int) types.Type, moved *[]ast.Stmt) {
	if len(list) == 1 {
		o.parts(&list[0], moved)
		return
	}
	for i := range list {
		o.exprTo(&list[i], target(i), moved)
	}
}

func (o *orderer) results(s *ast.ReturnStmt, moved *[]ast.Stmt) {
	to := o.survey.results[s]
	if to == nil || !o.mixed(s.Results...) {
		return
	}
	o.values(s.Results, func(i int) types.Type { return to.At(i).Type() }, moved)
}

// assign moves what the compiler evaluates early in an assignment, first on its left side.
func (o *orderer) assign(a *ast.AssignStmt, moved *[]ast.Stmt) {
	all := a.Rhs
	if a.Tok != token.DEFINE {
		for _, l := range a.Lhs {
			if _, plain := ast.Unparen(l).(*ast.Ident); !plain || a.Tok != token.ASSIGN {
				all = append(all[:len(all):len(all)], l)
			}
		}
	}
	several, sides := o.severalFail(a), o.sidesFail(a)
	if !several && !sides && !o.mixed(all...) {
		return
	}
	values := o.typesOf(a.Rhs)
	if a.Tok != token.DEFINE {
		for i := range a.Lhs {
			o.parts(&a.Lhs[i], moved)
		}
	}
	plain := names(a.Lhs)
	switch {
	case len(a.Rhs) < len(a.Lhs):
		o.parts(&a.Rhs[0], moved)
		if !plain {
			o.tuple(a, moved)
		}
	case len(a.Lhs) == 1 && a.Tok != token.ASSIGN && a.Tok != token.DEFINE:
		o.expr(&a.Rhs[0], moved)
	case len(a.Lhs) == 1 && !plain:
		o.exprTo(&a.Rhs[0], o.typeOf(a.Lhs[0]), moved)
	default:
		o.values(a.Rhs, func(i int) types.Type { return o.info.TypeOf(a.Lhs[i]) }, moved)
	}
	if several {
		o.copyLater(a, values, moved)
	}
	if sides {
		o.firstSide(a, values[0], moved)
	}
}

// tuple moves an expression with several results into variables.
func (o *orderer) tuple(a *ast.AssignStmt, moved *[]ast.Stmt) {
	at := a.Rhs[0].Pos()
	first := &ast.AssignStmt{TokPos: at, Tok: token.DEFINE, Rhs: a.Rhs}
	_, call := ast.Unparen(a.Rhs[0]).(*ast.CallExpr)
	a.Rhs = nil
	for i, l := range a.Lhs {
		def, use := o.variable(at)
		first.Lhs = append(first.Lhs, def)
		a.Rhs = append(a.Rhs, use)
		t := o.info.TypeOf(l)
		if call || i == 0 || t == nil || types.IsInterface(t) || types.Identical(t, types.Typ[types.Bool]) {
			continue
		}
		to := o.typeExpr(t, at) // ok of v, ok may have any boolean type
		if to == nil {
			o.fail(at)
			continue
		}
		a.Rhs[i] = &ast.CallExpr{Fun: &ast.ParenExpr{Lparen: at, X: to, Rparen: at}, Lparen: at, Args: []ast.Expr{use}, Rparen: at}
	}
	*moved = append(*moved, first)
}

// variables moves what the compiler evaluates early before a group of declarations. Earlier declarations of the group move with it.
func (o *orderer) variables(s *ast.DeclStmt, moved *[]ast.Stmt) {
	g, ok := s.Decl.(*ast.GenDecl)
	if !ok || g.Tok != token.VAR {
		return
	}
	var pending []ast.Spec
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		var own []ast.Stmt
		if o.mixed(v.Values...) {
			o.values(v.Values, func(i int) types.Type { return o.info.TypeOf(v.Names[i]) }, &own)
		}
		if len(own) > 0 {
			if len(pending) > 0 {
				*moved = append(*moved, &ast.DeclStmt{Decl: &ast.GenDecl{TokPos: g.TokPos, Tok: token.VAR, Lparen: g.TokPos, Specs: pending, Rparen: g.TokPos}})
			}
			pending, *moved = nil, append(*moved, own...)
		}
		pending = append(pending, spec)
	}
	g.Specs = pending
}

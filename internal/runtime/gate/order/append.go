package order

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// This file follows ssagen's append (cmd/compile/internal/ssagen/ssa.go). Of x.list = append(x.list, v) the compiler stores the longer slice first and then
// the elements; a variable that does not fit registers it reads only then. So an x that is appended to its own list holds the longer list. The list
// is a field, an element of an array, or what a pointer points to; the compiler must see that both places are one (ir.SameSafeExpr, walk's safeExpr).

// storedAgain returns the statements that store the elements once more that natively are read behind such an assignment.
func (o *orderer) storedAgain(s ast.Stmt) (again []ast.Stmt) {
	if l, ok := s.(*ast.LabeledStmt); ok {
		return o.storedAgain(l.Stmt)
	}
	a, ok := s.(*ast.AssignStmt)
	if !ok || a.Tok != token.ASSIGN || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
		return nil
	}
	call, ok := ast.Unparen(a.Rhs[0]).(*ast.CallExpr)
	if !ok || o.builtinName(call) != "append" || call.Ellipsis.IsValid() || !o.samePart(a.Lhs[0], call.Args[0]) {
		return nil
	}
	list, ok := o.typeOf(a.Lhs[0]).Underlying().(*types.Slice)
	if !ok || open(list.Elem()) || inRegisters(list.Elem()) || !holdsList(list.Elem(), list.Elem()) {
		return nil
	}
	at := a.Pos()
	for i, arg := range call.Args[1:] {
		v, ok := ast.Unparen(arg).(*ast.Ident)
		if !ok || !types.Identical(o.typeOf(v), list.Elem()) {
			continue
		}
		if _, ok := o.info.Uses[v].(*types.Var); !ok {
			continue
		}
		length := &ast.CallExpr{Fun: &ast.Ident{NamePos: at, Name: "len"}, Lparen: at, Args: []ast.Expr{o.placeAgain(a.Lhs[0])}, Rparen: at}
		last := &ast.BinaryExpr{X: length, OpPos: at, Op: token.SUB, Y: number(a, len(call.Args)-1-i)}
		place := &ast.IndexExpr{X: o.placeAgain(a.Lhs[0]), Lbrack: at, Index: last, Rbrack: at}
		again = append(again, &ast.AssignStmt{Lhs: []ast.Expr{place}, TokPos: at, Tok: token.ASSIGN, Rhs: []ast.Expr{name(v)}})
	}
	if len(again) == 0 {
		return nil
	}
	if _, found := o.pkg.Scope().Innermost(at).LookupParent("len", at); found != types.Universe.Lookup("len") {
		o.fail(at)
	}
	o.changed = true
	return again
}

// unlisted refuses such an assignment where no statement can follow it: in the head of an if, a for or a switch.
func (o *orderer) unlisted(n ast.Node) bool {
	var init, post ast.Stmt
	switch n := n.(type) {
	case *ast.IfStmt:
		init = n.Init
	case *ast.ForStmt:
		init, post = n.Init, n.Post
	case *ast.SwitchStmt:
		init = n.Init
	case *ast.TypeSwitchStmt:
		init = n.Init
	}
	for _, s := range []ast.Stmt{init, post} {
		if o.storedAgain(s) != nil {
			o.fail(s.Pos())
		}
	}
	return true
}

// samePart reports whether two expressions are the same part of a variable or of what a variable points to.
func (o *orderer) samePart(x, y ast.Expr) bool {
	_, whole := ast.Unparen(x).(*ast.Ident)
	return !whole && o.samePlace(x, y)
}

// samePlace is samePart, and true also for one variable or one constant.
func (o *orderer) samePlace(x, y ast.Expr) bool {
	x, y = ast.Unparen(x), ast.Unparen(y)
	if v, w := o.info.Types[x].Value, o.info.Types[y].Value; v != nil && w != nil {
		return constant.Compare(v, token.EQL, w)
	}
	switch x := x.(type) {
	case *ast.Ident:
		y, ok := y.(*ast.Ident)
		v, isVar := o.info.Uses[x].(*types.Var)
		return ok && isVar && v == o.info.Uses[y]
	case *ast.SelectorExpr:
		y, ok := y.(*ast.SelectorExpr)
		return ok && o.info.Selections[x] != nil && o.info.Uses[x.Sel] == o.info.Uses[y.Sel] && o.samePlace(x.X, y.X)
	case *ast.StarExpr:
		y, ok := y.(*ast.StarExpr)
		return ok && o.samePlace(x.X, y.X)
	case *ast.IndexExpr:
		y, ok := y.(*ast.IndexExpr)
		_, isMap := under[*types.Map](o.typeOf(x.X))
		return ok && !isMap && o.samePlace(x.X, y.X) && o.samePlace(x.Index, y.Index)
	}
	return false
}

// placeAgain returns a copy of what samePlace accepts.
func (o *orderer) placeAgain(e ast.Expr) ast.Expr {
	switch x := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return &ast.SelectorExpr{X: o.placeAgain(x.X), Sel: name(x.Sel)}
	case *ast.StarExpr:
		return &ast.ParenExpr{Lparen: x.Pos(), X: &ast.StarExpr{Star: x.Star, X: o.placeAgain(x.X)}, Rparen: x.End()}
	case *ast.IndexExpr:
		return &ast.IndexExpr{X: o.placeAgain(x.X), Lbrack: x.Lbrack, Index: o.placeAgain(x.Index), Rbrack: x.Rbrack}
	case *ast.Ident:
		return name(x)
	}
	return e
}

// holdsList reports whether a value of type t has within it a slice of elements.
func holdsList(t, elem types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Slice:
		return types.Identical(t.Elem(), elem)
	case *types.Array:
		return holdsList(t.Elem(), elem)
	case *types.Struct:
		for f := range t.Fields() {
			if holdsList(f.Type(), elem) {
				return true
			}
		}
	}
	return false
}

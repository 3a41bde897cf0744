package order

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// constantsFirst moves the static entries of a map literal before the others, as the compiler does. It matters where two keys are equal: the later
// entry wins.
func (o *orderer) constantsFirst(x *ast.CompositeLit) {
	m, ok := under[*types.Map](o.typeOf(x))
	if !ok {
		return
	}
	rank := func(e ast.Expr) int {
		if o.staticEntry(e, m) {
			return 0
		}
		return 1
	}
	byRank := func(a, b ast.Expr) int { return rank(a) - rank(b) }
	if !slices.IsSortedFunc(x.Elts, byRank) {
		x.Elts = slices.Clone(x.Elts)
		slices.SortStableFunc(x.Elts, byRank)
		o.changed = true
	}
}

func (o *orderer) staticEntry(e ast.Expr, m *types.Map) bool {
	kv, ok := e.(*ast.KeyValueExpr)
	return ok && o.static(kv.Key, m.Key()) && o.static(kv.Value, m.Elem())
}

// static reports whether the compiler lays out an expression, used as a value of type to, in the program's data: a constant, nil, or a struct or array
// of these. A constant that is converted to an interface is not static.
func (o *orderer) static(e ast.Expr, to types.Type) bool {
	tv := o.info.Types[e]
	if tv.IsNil() {
		return true
	}
	if to != nil && types.IsInterface(to) {
		return false
	}
	lit, ok := ast.Unparen(e).(*ast.CompositeLit)
	if !ok || !aggregate(tv.Type) {
		return tv.Value != nil
	}
	for i, elem := range lit.Elts {
		kv, keyed := elem.(*ast.KeyValueExpr)
		if keyed {
			elem = kv.Value
		}
		if !o.static(elem, o.elementOf(tv.Type, i, kv)) {
			return false
		}
	}
	return true
}

// literal moves what the compiler evaluates early in a composite literal.
func (o *orderer) literal(x *ast.CompositeLit, e *ast.Expr, moved *[]ast.Stmt) {
	if m, ok := under[*types.Map](o.typeOf(x)); ok {
		o.mapLiteral(x, m, e, moved)
		return
	}
	o.elements(x, func(e *ast.Expr, to types.Type) { o.exprTo(e, to, moved) })
}

// elements calls do for each value of a struct, array or slice literal, with the type of its field or element.
func (o *orderer) elements(x *ast.CompositeLit, do func(e *ast.Expr, to types.Type)) {
	t := o.typeOf(x)
	if p, ok := under[*types.Pointer](t); ok { // {} short for &T{}
		t = p.Elem()
	}
	for i := range x.Elts {
		at := &x.Elts[i]
		kv, keyed := x.Elts[i].(*ast.KeyValueExpr)
		if keyed {
			at = &kv.Value
		}
		do(at, o.elementOf(t, i, kv))
	}
}

// elementOf returns the type of element or field i of a struct, array or slice.
func (o *orderer) elementOf(t types.Type, i int, kv *ast.KeyValueExpr) types.Type {
	if s, ok := under[*types.Struct](t); ok {
		if kv == nil {
			return s.Field(i).Type()
		}
		if f := o.info.Uses[kv.Key.(*ast.Ident)]; f != nil {
			return f.Type()
		}
		return nil
	}
	if s, ok := under[interface {
		types.Type
		Elem() types.Type
	}](t); ok {
		return s.Elem()
	}
	return nil
}

// mapLiteral replaces a map literal by one of its constant entries, followed by assignments of the others.
func (o *orderer) mapLiteral(x *ast.CompositeLit, m *types.Map, e *ast.Expr, moved *[]ast.Stmt) {
	o.constantsFirst(x)
	first := slices.IndexFunc(x.Elts, func(e ast.Expr) bool { return !o.staticEntry(e, m) })
	if first < 0 {
		return
	}
	entries, t := x.Elts[first:], o.typeOf(x)
	x.Elts = x.Elts[:first:first]
	var lit ast.Expr = x
	o.complete(&lit, t)
	id := o.holdAs(lit, t, moved)
	for _, entry := range entries {
		kv := entry.(*ast.KeyValueExpr)
		o.complete(&kv.Key, m.Key())
		o.complete(&kv.Value, m.Elem())
		o.key(&kv.Key, m, moved)
		o.exprTo(&kv.Value, m.Elem(), moved)
		if held, ok := id.(*ast.Ident); ok {
			to := &ast.IndexExpr{X: name(held), Lbrack: kv.Pos(), Index: kv.Key, Rbrack: kv.Colon}
			*moved = append(*moved, &ast.AssignStmt{Lhs: []ast.Expr{to}, TokPos: kv.Colon, Tok: token.ASSIGN, Rhs: []ast.Expr{kv.Value}})
		}
	}
	*e = id
}

// complete adds the type to a literal that leaves it out.
func (o *orderer) complete(e *ast.Expr, t types.Type) {
	lit, ok := (*e).(*ast.CompositeLit)
	if !ok || lit.Type != nil {
		return
	}
	if p, ok := under[*types.Pointer](t); ok {
		*e = &ast.UnaryExpr{OpPos: lit.Pos(), Op: token.AND, X: lit}
		t = p.Elem()
	}
	if lit.Type = o.typeExpr(t, lit.Pos()); lit.Type == nil {
		o.fail(lit.Pos())
	}
}

package order

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/goversion"
)

// expr moves what the compiler evaluates early in an operand, possibly the whole operand.
func (o *orderer) expr(e *ast.Expr, moved *[]ast.Stmt) {
	t := o.typeOf(*e)
	if o.parts(e, moved) {
		*e = o.holdAs(*e, t, moved)
	}
}

// exprTo is expr for an operand that becomes a value of type to; nil stands for any type. The compiler converts most values to interfaces by their
// address, and so copies values without an address early.
func (o *orderer) exprTo(e *ast.Expr, to types.Type, moved *[]ast.Stmt) {
	t, static := o.typeOf(*e), o.static(*e, nil)
	reads := o.effects(*e).reads
	o.expr(e, moved)
	if to != nil && types.IsInterface(to) && t != nil && !types.IsInterface(t) && !static && reads && byAddress(t) {
		o.addressed(e, t, moved)
	}
}

// addressed moves a value into a variable unless it has an address.
func (o *orderer) addressed(e *ast.Expr, t types.Type, moved *[]ast.Stmt) {
	if !o.addressable(*e) {
		*e = o.holdAs(*e, t, moved)
	}
}

// parts moves what the compiler evaluates early in the operands of an expression. It reports whether the compiler evaluates the expression itself
// early, ahead of the operands beside it. This switch is the table of the compiler's order.
func (o *orderer) parts(e *ast.Expr, moved *[]ast.Stmt) (ahead bool) {
	if *e == nil || o.settled(*e) {
		return false
	}
	switch x := (*e).(type) {
	case *ast.ParenExpr:
		return o.parts(&x.X, moved)
	case *ast.UnaryExpr:
		if x.Op == token.AND {
			o.parts(&x.X, moved)
			return false
		}
		o.expr(&x.X, moved)
		return x.Op == token.ARROW
	case *ast.BinaryExpr:
		return o.binary(x, e, moved)
	case *ast.StarExpr:
		o.expr(&x.X, moved)
	case *ast.SelectorExpr:
		if o.info.Selections[x] != nil {
			o.expr(&x.X, moved)
		}
	case *ast.IndexExpr:
		return o.index(x, moved)
	case *ast.SliceExpr:
		for _, part := range []*ast.Expr{&x.X, &x.Low, &x.High, &x.Max} {
			o.expr(part, moved)
		}
		return true
	case *ast.TypeAssertExpr:
		late := assertedLate(o.typeOf(x))
		o.expr(&x.X, moved)
		return !late
	case *ast.CompositeLit:
		o.literal(x, e, moved)
	case *ast.CallExpr:
		return o.call(x, moved)
	}
	return false
}

func (o *orderer) binary(x *ast.BinaryExpr, e *ast.Expr, moved *[]ast.Stmt) (ahead bool) {
	if x.Op == token.LAND || x.Op == token.LOR {
		return o.logical(x, e, moved)
	}
	left, right := o.typeOf(x.X), o.typeOf(x.Y)
	if !comparison(x.Op) {
		left, right = nil, nil
	}
	readsX, readsY := o.effects(x.X).reads, o.effects(x.Y).reads
	o.exprTo(&x.X, right, moved)
	o.exprTo(&x.Y, left, moved)
	if aggregate(left) && aggregate(right) {
		if readsX {
			o.addressed(&x.X, left, moved)
		}
		if readsY {
			o.addressed(&x.Y, right, moved)
		}
	}
	return false
}

// logical replaces && and || by an if statement if something moves out of the right side.
func (o *orderer) logical(x *ast.BinaryExpr, e *ast.Expr, moved *[]ast.Stmt) (ahead bool) {
	t := o.typeOf(x)
	o.expr(&x.X, moved)
	var then []ast.Stmt
	o.expr(&x.Y, &then)
	if len(then) == 0 {
		return true
	}
	r := o.holdAs(x.X, t, moved)
	id, ok := r.(*ast.Ident)
	if !ok {
		return false // the failure is recorded
	}
	then = append(then, &ast.AssignStmt{Lhs: []ast.Expr{name(id)}, TokPos: x.OpPos, Tok: token.ASSIGN, Rhs: []ast.Expr{x.Y}})
	var cond ast.Expr = name(id)
	if x.Op == token.LOR {
		cond = not(cond)
	}
	*moved = append(*moved, &ast.IfStmt{If: x.OpPos, Cond: cond, Body: block(x.Y, then)})
	*e = id
	return false
}

func (o *orderer) index(x *ast.IndexExpr, moved *[]ast.Stmt) (ahead bool) {
	if o.info.Types[x.Index].IsType() {
		return false // an instance of a generic function
	}
	m, ok := under[*types.Map](o.typeOf(x.X))
	o.expr(&x.X, moved)
	if !ok {
		o.expr(&x.Index, moved)
		return false
	}
	ahead = o.keyFromBytes(x.Index)
	o.key(&x.Index, m, moved)
	return ahead
}

// emptyArray sets the index of an array without elements to zero. Every index panics there, and the message of some compilers names 0 where they keep
// such arrays in registers.
func (o *orderer) emptyArray(x *ast.IndexExpr) {
	if !goversion.EmptyIndexIsZero {
		return
	}
	t := o.typeOf(x.X)
	if o.info.Types[x.X].IsType() { // a generic type
		return
	}
	if p, ok := under[*types.Pointer](t); ok {
		t = p.Elem()
	}
	a, ok := under[*types.Array](t)
	if !ok || a.Len() > 0 || !inRegisters(a) || o.survey.places[x] || o.info.Types[x.Index].Value != nil {
		return
	}
	if name := o.typeName(types.Universe.Lookup("int"), x.Pos()); name != nil {
		index := &ast.CallExpr{Fun: name, Lparen: x.Lbrack, Args: []ast.Expr{x.Index}, Rparen: x.Rbrack}
		x.Index = &ast.BinaryExpr{X: number(x, 0), OpPos: x.Lbrack, Op: token.MUL, Y: index}
		o.changed = true
	}
}

// key moves what the compiler evaluates early in the key of a map operation.
func (o *orderer) key(e *ast.Expr, m *types.Map, moved *[]ast.Stmt) {
	t, reads, static := o.typeOf(*e), o.effects(*e).reads, o.static(*e, nil)
	o.exprTo(e, m.Key(), moved)
	if !reads || static || t == nil {
		return
	}
	boxed := types.IsInterface(m.Key()) && !types.IsInterface(t)
	switch passing := keyPassing(m); {
	case passing == keyCopied, boxed:
		*e = o.holdAs(*e, t, moved)
	case passing == keyByAddress:
		o.addressed(e, t, moved)
	}
}

// keyFromBytes reports whether a map's key is made from string(bytes). The compiler does not copy these bytes but looks the key up early.
func (o *orderer) keyFromBytes(e ast.Expr) bool {
	switch x := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		return o.converts(x, isBytes, isText)
	case *ast.CompositeLit:
		return slices.ContainsFunc(x.Elts, func(e ast.Expr) bool {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			return o.keyFromBytes(e)
		})
	}
	return false
}

// call moves what the compiler evaluates early in the operands of a call.
func (o *orderer) call(x *ast.CallExpr, moved *[]ast.Stmt) (ahead bool) {
	fun := o.info.Types[x.Fun]
	switch {
	case fun.IsType():
		ahead = o.converts(x, isText, isBytes)
		o.exprTo(&x.Args[0], fun.Type, moved)
		return ahead
	case fun.IsBuiltin():
		return o.builtin(x, moved)
	}
	sig, _ := under[*types.Signature](fun.Type)
	o.expr(&x.Fun, moved)
	o.spread(x, moved)
	for i := range x.Args {
		o.exprTo(&x.Args[i], parameter(sig, i, x), moved)
	}
	return sig == nil || sig.Results().Len() == 1
}

// spread moves the results of a call that is the only argument of another call into variables.
func (o *orderer) spread(x *ast.CallExpr, moved *[]ast.Stmt) {
	if len(x.Args) != 1 {
		return
	}
	results, ok := o.typeOf(x.Args[0]).(*types.Tuple)
	if !ok {
		return
	}
	o.parts(&x.Args[0], moved)
	def := &ast.AssignStmt{TokPos: x.Pos(), Tok: token.DEFINE, Rhs: x.Args}
	x.Args = nil
	for range results.Len() {
		d, use := o.variable(x.Pos())
		def.Lhs, x.Args = append(def.Lhs, d), append(x.Args, use)
	}
	*moved = append(*moved, def)
}

func (o *orderer) builtin(x *ast.CallExpr, moved *[]ast.Stmt) (ahead bool) {
	switch name := o.builtinName(x); name {
	case "len", "cap":
		if array(o.typeOf(x.Args[0])) {
			return true // its operand stays: without its call the length would be a constant, and the operand would not be evaluated
		}
		if runes, ok := ast.Unparen(x.Args[0]).(*ast.CallExpr); ok && o.converts(runes, isText, isRunes) {
			o.parts(&x.Args[0], moved) // the compiler counts the runes without the conversion
			return true
		}
	case "append":
		s, _ := under[*types.Slice](o.typeOf(x.Args[0]))
		for i := range x.Args {
			var to types.Type
			if s != nil && i > 0 && !x.Ellipsis.IsValid() {
				to = s.Elem()
			}
			o.exprTo(&x.Args[i], to, moved)
		}
		return true
	case "delete":
		o.expr(&x.Args[0], moved)
		if m, ok := under[*types.Map](o.typeOf(x.Args[0])); ok {
			o.key(&x.Args[1], m, moved)
			return false
		}
	case "panic":
		o.exprTo(&x.Args[0], types.NewInterfaceType(nil, nil), moved)
		return false
	}
	for i := range x.Args {
		o.expr(&x.Args[i], moved)
	}
	return true
}

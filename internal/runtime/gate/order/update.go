package order

import (
	"go/ast"
	"go/token"
	"go/types"
)

// This file follows walkAssign of cmd/compile/internal/walk/assign.go. The compiler takes a[i] += b[j] for a[i] = a[i] + b[j], and so reads the place
// before the value. Of m[a[i]] = b[j] and m[a[i]] += b[j] it evaluates the value before the key (order.go, mapAssign), but not if it divides. go/ssa
// takes both the other way round. If both sides fail, the first one's panic is reported.

// sidesFail reports whether an operation with assignment, or an assignment to an entry of a map, can panic with different messages, depending on which side
// is evaluated first.
func (o *orderer) sidesFail(a *ast.AssignStmt) bool {
	if len(a.Lhs) != 1 {
		return false
	}
	entry := o.entry(a.Lhs[0])
	switch a.Tok {
	case token.DEFINE:
		return false
	case token.ASSIGN:
		if !entry {
			return false
		}
	case token.QUO_ASSIGN, token.REM_ASSIGN:
		if entry {
			return false
		}
	}
	place, value := o.panics(a.Lhs[0]), o.panics(a.Rhs[0])
	return place != 0 && value != 0 && place|value != atNil
}

// entry reports whether an expression is an entry of a map.
func (o *orderer) entry(e ast.Expr) bool {
	x, ok := ast.Unparen(e).(*ast.IndexExpr)
	if !ok {
		return false
	}
	_, isMap := under[*types.Map](o.typeOf(x.X))
	return isMap
}

// firstSide moves the parts of such a statement that the compiler evaluates first. T is the value's type.
func (o *orderer) firstSide(a *ast.AssignStmt, t types.Type, moved *[]ast.Stmt) {
	if !o.entry(a.Lhs[0]) {
		o.readFirst(a, moved)
	} else if o.panics(a.Rhs[0]) != 0 {
		a.Rhs[0] = o.holdAs(a.Rhs[0], t, moved)
	}
}

// readFirst writes a[i] += v as a[i] = a[i] + (v). Operands of the place that are more than a name move, so that they are evaluated once.
func (o *orderer) readFirst(a *ast.AssignStmt, moved *[]ast.Stmt) {
	o.copyComputed(&a.Lhs[0], moved)
	o.copyLowered(&a.Rhs[0], true, moved)
	if o.panics(a.Rhs[0]) == 0 {
		return
	}
	_, operands := o.target(&a.Lhs[0])
	for _, e := range operands {
		t := o.typeOf(*e)
		open := t != nil && types.IsInterface(t) // a type parameter may be an array, and a copy of it is another place
		if !names([]ast.Expr{*e}) && !o.settled(*e) && !open {
			*e = o.holdAs(*e, t, moved)
		}
	}
	value := &ast.ParenExpr{Lparen: a.Rhs[0].Pos(), X: a.Rhs[0], Rparen: a.Rhs[0].End()}
	a.Rhs[0] = &ast.BinaryExpr{X: a.Lhs[0], OpPos: a.TokPos, Op: a.Tok - token.ADD_ASSIGN + token.ADD, Y: value}
	a.Tok, o.changed = token.ASSIGN, true
}

// copyComputed moves what the compiler copies of a place before it reads it (safeExpr): operands that are not themselves places.
func (o *orderer) copyComputed(e *ast.Expr, moved *[]ast.Stmt) {
	if o.settled(*e) {
		return
	}
	switch x := (*e).(type) {
	case *ast.Ident:
	case *ast.ParenExpr:
		o.copyComputed(&x.X, moved)
	case *ast.SelectorExpr:
		if o.info.Selections[x] != nil {
			o.copyComputed(&x.X, moved)
		}
	case *ast.StarExpr:
		o.copyComputed(&x.X, moved)
	case *ast.IndexExpr:
		o.copyComputed(&x.X, moved)
		o.copyComputed(&x.Index, moved)
	default:
		*e = o.holdAs(*e, o.typeOf(*e), moved)
	}
}

// copyLowered moves the parts of the value that can panic and that the compiler evaluates by statements of their own (walkExpr), before it reads the
// place. Sums of strings are such parts, except the whole value: it is one sum with the place.
func (o *orderer) copyLowered(e *ast.Expr, whole bool, moved *[]ast.Stmt) {
	switch x := (*e).(type) {
	case *ast.ParenExpr:
		o.copyLowered(&x.X, whole, moved)
		return
	case *ast.UnaryExpr:
		o.copyLowered(&x.X, false, moved)
		return
	case *ast.StarExpr:
		o.copyLowered(&x.X, false, moved)
		return
	case *ast.SelectorExpr:
		o.copyLowered(&x.X, false, moved)
		return
	case *ast.IndexExpr:
		if _, isMap := under[*types.Map](o.typeOf(x.X)); !isMap {
			o.copyLowered(&x.X, false, moved)
			o.copyLowered(&x.Index, false, moved)
			return
		}
	case *ast.BinaryExpr:
		t, _ := under[*types.Basic](o.typeOf(x))
		sum, quotient := t != nil && t.Info()&types.IsString != 0, t != nil && t.Info()&types.IsComplex != 0 && x.Op == token.QUO
		if !quotient && (!sum || whole) {
			o.copyLowered(&x.X, whole, moved)
			o.copyLowered(&x.Y, whole, moved)
			return
		}
	case *ast.CallExpr:
		if o.info.Types[x.Fun].IsType() && (!isText(o.typeOf(x)) || isText(o.typeOf(x.Args[0]))) {
			o.copyLowered(&x.Args[0], false, moved)
			return
		}
	case *ast.CompositeLit:
	default:
		return
	}
	if o.panics(*e) != 0 {
		*e = o.holdAs(*e, o.typeOf(*e), moved)
	}
}

// panics returns how an expression can panic, other than by calling, as a set of atNil, atIndex and atOther.
func (o *orderer) panics(e ast.Expr) (how int) {
	how = o.faults(e)
	ast.Inspect(e, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BinaryExpr:
			if o.operationPanics(x) {
				how |= atOther
			}
		case *ast.TypeAssertExpr, *ast.SliceExpr:
			how |= atOther
		case *ast.CallExpr:
			if t := o.info.Types[x.Fun]; t.IsType() && o.fromSlice(x, t.Type) {
				how |= atOther
			}
		}
		return true
	})
	return how
}

// fromSlice reports whether a conversion to a type is one of a slice to an array or a pointer to one. A slice that has moved has no known type.
func (o *orderer) fromSlice(x *ast.CallExpr, to types.Type) bool {
	from := o.typeOf(x.Args[0])
	_, isSlice := under[*types.Slice](from)
	return isSlice || array(to) && !array(from)
}

// operationPanics reports whether a binary operation can panic: it divides integers by what may be zero, or shifts by what may be negative.
func (o *orderer) operationPanics(x *ast.BinaryExpr) bool {
	if o.settled(x) || o.settled(x.Y) {
		return false
	}
	switch x.Op {
	case token.QUO, token.REM:
		number, ok := under[*types.Basic](o.typeOf(x.Y))
		return !ok || number.Info()&types.IsInteger != 0
	case token.SHL, token.SHR:
		count, ok := under[*types.Basic](o.typeOf(x.Y))
		return !ok || count.Info()&types.IsUnsigned == 0
	case token.EQL, token.NEQ:
		t := o.typeOf(x.X)
		return t == nil || types.IsInterface(t) || aggregate(t)
	}
	return false
}

package order

import (
	"go/ast"
	"go/token"
	"go/types"
)

// This file follows ascompatee of cmd/compile/internal/walk/assign.go. In a[i], a[j] = a[j], a[i] the compiler evaluates the second value first: it
// copies every value that writing the first place could change, and evaluates the first value when it writes it. If both values panic, the second
// one's panic is reported. go/ssa evaluates the values from left to right. Both orders give the same values.

// How an expression can panic.
const (
	atNil   = 1 << iota // nil pointer; all these panics have the same message
	atIndex             // index out of range
	atOther             // any other way
)

// severalFail reports whether an assignment of several values can panic with different messages, depending on the order of evaluation.
func (o *orderer) severalFail(a *ast.AssignStmt) bool {
	if a.Tok != token.ASSIGN || len(a.Lhs) != len(a.Rhs) || len(a.Lhs) == 1 {
		return false
	}
	w := writes{o: o, names: map[types.Object]bool{}}
	first, later := o.faults(a.Rhs[0]), 0
	for i := range a.Lhs {
		_, operands := o.target(&a.Lhs[i])
		for _, e := range append(operands, &a.Rhs[i]) {
			switch {
			case i == 0:
				first |= o.faults(*e)
			case w.change(*e):
				later |= o.faults(*e)
			}
		}
		w.write(a.Lhs[i])
	}
	return first != 0 && later != 0 && (first|later)&atIndex != 0
}

// copyLater moves the operands that can panic and that the compiler copies before it writes the first place. list has the values' types.
func (o *orderer) copyLater(a *ast.AssignStmt, list []types.Type, moved *[]ast.Stmt) {
	w := writes{o: o, names: map[types.Object]bool{}}
	copied := func(e *ast.Expr, t types.Type) {
		if o.faults(*e) != 0 {
			*e = o.holdAs(*e, t, moved)
		}
	}
	for i := range a.Lhs {
		_, operands := o.target(&a.Lhs[i])
		for _, e := range operands {
			t := o.typeOf(*e)
			if open := t != nil && types.IsInterface(t); i > 0 && w.change(*e) && !open { // a type parameter may be an array, and a copy of it is another place
				copied(e, t)
			}
		}
		if i > 0 && w.change(a.Rhs[i]) {
			copied(&a.Rhs[i], list[i])
		}
		w.write(a.Lhs[i])
	}
	copied(&a.Rhs[0], list[0]) // before the operands of its place
}

// shiftsEntry reports whether an assignment shifts an entry of a map by a count that may be negative. Then the compiler puts the key into the map before
// it fails; where other operations fail, the map stays as it is.
func (o *orderer) shiftsEntry(a *ast.AssignStmt) bool {
	x, ok := ast.Unparen(a.Lhs[0]).(*ast.IndexExpr)
	if !ok || a.Tok != token.SHL_ASSIGN && a.Tok != token.SHR_ASSIGN || o.settled(a.Rhs[0]) {
		return false
	}
	_, isMap := under[*types.Map](o.typeOf(x.X))
	count, ok := under[*types.Basic](o.typeOf(a.Rhs[0]))
	return isMap && !(ok && count.Info()&types.IsUnsigned != 0)
}

// insertFirst puts the key into the map where the count is negative.
func (o *orderer) insertFirst(a *ast.AssignStmt, moved *[]ast.Stmt) {
	x, at := ast.Unparen(a.Lhs[0]).(*ast.IndexExpr), a.Pos()
	hold := func(e *ast.Expr) ast.Expr {
		if o.settled(*e) {
			return *e
		}
		*e = o.holdAs(*e, o.typeOf(*e), moved)
		return *e
	}
	m, key, count := hold(&x.X), hold(&x.Index), hold(&a.Rhs[0])
	entry := func() ast.Expr { return &ast.IndexExpr{X: m, Lbrack: at, Index: key, Rbrack: at} }
	insert := &ast.AssignStmt{Lhs: []ast.Expr{entry()}, TokPos: at, Tok: token.ASSIGN, Rhs: []ast.Expr{entry()}}
	*moved = append(*moved, &ast.IfStmt{If: at, Cond: &ast.BinaryExpr{X: count, OpPos: at, Op: token.LSS, Y: number(a, 0)}, Body: block(a, []ast.Stmt{insert})})
}

// target returns the variable that contains a place, or nil, and the operands that are evaluated to find the place.
func (o *orderer) target(e *ast.Expr) (variable *ast.Ident, operands []*ast.Expr) {
	for {
		switch x := (*e).(type) {
		case *ast.ParenExpr:
			e = &x.X
		case *ast.IndexExpr:
			operands = append(operands, &x.Index)
			if _, ok := under[*types.Array](o.typeOf(x.X)); !ok {
				return nil, append([]*ast.Expr{&x.X}, operands...)
			}
			e = &x.X
		case *ast.SelectorExpr:
			sel := o.info.Selections[x]
			if sel == nil { // a variable of another package
				return x.Sel, operands
			}
			if sel.Indirect() {
				return nil, append([]*ast.Expr{&x.X}, operands...)
			}
			e = &x.X
		case *ast.StarExpr:
			return nil, append([]*ast.Expr{&x.X}, operands...)
		case *ast.Ident:
			return x, operands
		default:
			return nil, operands
		}
	}
}

// faults returns how an expression can panic, as a set of atNil and atIndex.
func (o *orderer) faults(e ast.Expr) (how int) {
	ast.Inspect(e, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		if !ok || o.settled(x) {
			return !ok
		}
		switch x := x.(type) {
		case *ast.StarExpr:
			how |= atNil
		case *ast.SelectorExpr:
			if sel := o.info.Selections[x]; sel != nil && sel.Indirect() {
				how |= atNil
			}
		case *ast.IndexExpr:
			_, isArray := under[*types.Array](o.typeOf(x.X))
			_, isMap := under[*types.Map](o.typeOf(x.X))
			if constant := o.info.Types[x.Index].Value != nil; !isMap && !(isArray && constant) && !o.info.Types[x.Index].IsType() {
				how |= atIndex
			}
		}
		return true
	})
	return how
}

// writes records what the first places of an assignment certainly change. Only the compiler knows which local variables are in memory.
type writes struct {
	o      *orderer
	memory bool
	names  map[types.Object]bool
}

func (w *writes) write(place ast.Expr) {
	id, _ := w.o.target(&place)
	switch {
	case id == nil:
		w.memory = true
	case id.Name != "_":
		w.names[w.o.info.Uses[id]] = true
		w.memory = w.memory || w.o.ofPackage(id)
	}
}

// change reports whether the writes may change the value of an expression.
func (w *writes) change(e ast.Expr) (changed bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Ident:
			changed = changed || w.names[w.o.info.Uses[x]] || w.memory && w.o.ofPackage(x)
		case *ast.IndexExpr, *ast.StarExpr:
			changed = changed || w.memory
		case *ast.SelectorExpr:
			sel := w.o.info.Selections[x]
			changed = changed || w.memory && sel != nil && sel.Indirect()
		}
		return !changed
	})
	return changed
}

// ofPackage reports whether the identifier is a package variable.
func (o *orderer) ofPackage(id *ast.Ident) bool {
	v, ok := o.info.Uses[id].(*types.Var)
	return ok && !v.IsField() && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

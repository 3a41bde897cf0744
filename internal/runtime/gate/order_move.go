package gate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// operands moves the calls in a call's operands. One call that is the only argument may have several results, and stays.
func (o *orderer) operands(call *ast.CallExpr, moved *[]ast.Stmt) {
	if o.arrayLength(call) { // a constant once the calls are gone, so that nothing would be evaluated
		return
	}
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		o.move(&f.X, moved)
	case *ast.CallExpr:
		o.move(&call.Fun, moved)
	}
	if len(call.Args) == 1 && o.movable(call) {
		if inner, ok := ast.Unparen(call.Args[0]).(*ast.CallExpr); ok && !o.readsBeside(call, inner) {
			o.operands(inner, moved)
			return
		}
	}
	for i := range call.Args {
		o.move(&call.Args[i], moved)
	}
}

// readsBeside reports whether a call has, besides its only argument, operands that read, and the argument is one value.
func (o *orderer) readsBeside(call, arg *ast.CallExpr) bool {
	if _, several := o.c.info.TypeOf(arg).(*types.Tuple); several {
		return false
	}
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		_, plain := f.X.(*ast.Ident)
		return !plain
	case *ast.IndexExpr:
		return !o.c.info.Types[f.Index].IsType()
	}
	return false
}

// move replaces what the toolchain evaluates in order, calls above all, by variables.
func (o *orderer) move(e *ast.Expr, moved *[]ast.Stmt) {
	switch x := (*e).(type) {
	case *ast.ParenExpr:
		o.move(&x.X, moved)
	case *ast.BinaryExpr:
		o.move(&x.X, moved)
		if x.Op != token.LAND && x.Op != token.LOR {
			o.move(&x.Y, moved)
			break
		}
		keeps := o.keepsType(x)
		o.wrap(&x.Y)
		if keeps {
			*e = o.moveWhole(x, moved)
		}
	case *ast.UnaryExpr:
		if lit, ok := ast.Unparen(x.X).(*ast.CompositeLit); ok && x.Op == token.AND {
			o.elements(lit, moved)
		} else if x.Op != token.AND {
			o.move(&x.X, moved)
			if x.Op == token.ARROW {
				*e = o.moveWhole(x, moved)
			}
		}
	case *ast.StarExpr:
		o.move(&x.X, moved)
	case *ast.SelectorExpr:
		o.move(&x.X, moved)
	case *ast.IndexExpr:
		o.move(&x.X, moved)
		o.move(&x.Index, moved)
	case *ast.SliceExpr:
		for _, part := range []*ast.Expr{&x.X, &x.Low, &x.High, &x.Max} {
			o.move(part, moved)
		}
		*e = o.moveWhole(x, moved)
	case *ast.TypeAssertExpr:
		late := pointerShaped(o.c.info.TypeOf(x))
		o.move(&x.X, moved)
		if !late {
			*e = o.moveWhole(x, moved)
		}
	case *ast.CompositeLit:
		o.elements(x, moved)
	case *ast.CallExpr:
		copies := o.copiesText(x)
		o.operands(x, moved)
		if !copies && !o.movable(x) {
			return
		}
		*e = o.moveWhole(x, moved)
	}
}

// moveWhole moves an expression into a variable, and returns the variable.
func (o *orderer) moveWhole(x ast.Expr, moved *[]ast.Stmt) ast.Expr {
	def, use := o.variable(x.Pos())
	*moved = append(*moved, &ast.AssignStmt{Lhs: []ast.Expr{def}, TokPos: x.Pos(), Tok: token.DEFINE, Rhs: []ast.Expr{x}})
	return use
}

func (o *orderer) elements(lit *ast.CompositeLit, moved *[]ast.Stmt) {
	for i := range lit.Elts {
		kv, ok := lit.Elts[i].(*ast.KeyValueExpr)
		if !ok {
			o.move(&lit.Elts[i], moved)
			continue
		}
		if call, ok := kv.Key.(*ast.CallExpr); ok && o.ownCall(call) {
			o.move(&kv.Key, moved)
		}
		o.move(&kv.Value, moved)
	}
}

// moveOperand moves the calls in the operands of what is assigned to: they come first.
func (o *orderer) moveOperand(e ast.Expr, moved *[]ast.Stmt) {
	switch x := e.(type) {
	case *ast.ParenExpr:
		o.moveOperand(x.X, moved)
	case *ast.IndexExpr:
		o.moveInner(&x.X, moved)
		o.move(&x.Index, moved)
	case *ast.SelectorExpr:
		o.moveInner(&x.X, moved)
	case *ast.StarExpr:
		o.moveInner(&x.X, moved)
	}
}

func (o *orderer) moveInner(e *ast.Expr, moved *[]ast.Stmt) {
	if _, ok := (*e).(*ast.CallExpr); ok {
		o.move(e, moved)
		return
	}
	o.moveOperand(*e, moved)
}

// movable reports whether a call may become a variable: not a conversion, which the toolchain makes late, nor a constant, which may be
// untyped.
func (o *orderer) movable(call *ast.CallExpr) bool {
	fun := ast.Unparen(call.Fun)
	switch f := fun.(type) {
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		if f.Obj == nil && slices.Contains(inOrder(), f.Name) {
			return o.c.info.Types[call].Value == nil
		}
		return !predeclared(f.Name) && (f.Obj == nil || f.Obj.Kind != ast.Typ)
	case *ast.SelectorExpr:
		if path := o.packageOf(f); path != "" {
			pkg, err := o.c.gate.lib.load(path)
			if err != nil {
				return false
			}
			_, isType := pkg.Scope().Lookup(f.Sel.Name).(*types.TypeName)
			return !isType
		}
		return true
	case *ast.FuncLit, *ast.CallExpr:
		return true
	}
	return false
}

// packageOf returns the path of the package from which a selector selects; "" when it is no package.
func (o *orderer) packageOf(s *ast.SelectorExpr) string {
	if x, ok := s.X.(*ast.Ident); ok && x.Obj == nil {
		return o.packages[x.Name]
	}
	return ""
}

// ownCall reports whether e calls something of the program's own.
func (o *orderer) ownCall(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !o.movable(call) {
		return false
	}
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		return o.packageOf(f) == ""
	case *ast.Ident:
		return !predeclared(f.Name)
	}
	return true
}

package gate

import (
	"go/ast"
	"go/token"
	"go/types"
)

// This file is the part of Choose that looks at expressions and their types.

// varies refuses conditions and operands of logical operators that are constant: a wrong branch has been taken.
func (c *chooser) varies(conditions ...ast.Expr) bool {
	for _, e := range conditions {
		if e != nil && c.info.Types[e].Value != nil {
			return c.no("constant conditions")
		}
	}
	return true
}

// findOwn finds the variables of a function that never hold but what a literal, make or append to themselves made there.
func (c *chooser) findOwn(d *ast.FuncDecl) {
	c.own = map[types.Object]bool{}
	ast.Inspect(d, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, l := range a.Lhs {
			id, ok := l.(*ast.Ident)
			if !ok {
				continue
			}
			made := false
			switch r := a.Rhs[min(i, len(a.Rhs)-1)].(type) {
			case *ast.CompositeLit:
				made = true
			case *ast.CallExpr:
				f, _ := r.Fun.(*ast.Ident)
				made = f != nil && c.info.Uses[f] == types.Universe.Lookup("make")
				if f != nil && c.info.Uses[f] == types.Universe.Lookup("append") {
					first, ok := r.Args[0].(*ast.Ident)
					made = ok && c.info.Uses[first] == c.info.Uses[id]
				}
			}
			if obj := c.info.ObjectOf(id); a.Tok == token.DEFINE && c.info.Defs[id] != nil {
				c.own[obj] = made
			} else if !made {
				c.own[obj] = false
			}
		}
		return true
	})
}

// mayChange allows changes of elements, but for those of interface type, as the call's input has them, in the function's own
// containers alone: a run that panics is run again by the other engine, and must find the input as it was.
func (c *chooser) mayChange(container ast.Expr) bool {
	switch t := c.info.TypeOf(container).Underlying().(type) {
	case *types.Slice:
		if !types.IsInterface(t.Elem()) {
			return true
		}
	case *types.Map:
		if !types.IsInterface(t.Elem()) {
			return true
		}
	}
	id, ok := container.(*ast.Ident)
	return ok && c.own[c.info.Uses[id]] || c.no("changes of what may be the call's input")
}

func (c *chooser) binary(n *ast.BinaryExpr) bool {
	if c.info.Types[n].Value != nil {
		return c.no("constant expressions")
	}
	x, y := c.info.TypeOf(n.X), c.info.TypeOf(n.Y)
	if n.Op == token.EQL || n.Op == token.NEQ {
		if isNil(x) || isNil(y) {
			return true
		}
		_, bx := x.Underlying().(*types.Basic)
		_, by := y.Underlying().(*types.Basic)
		return bx && by || c.no("comparisons of other than plain values")
	}
	switch n.Op {
	case token.LAND, token.LOR:
		return c.varies(n.X, n.Y)
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		return true
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
		return isString(x) || c.plainNumber(x) || c.no("arithmetic on sized numbers")
	}
	return c.no("the operator " + n.Op.String())
}

func isNil(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Kind() == types.UntypedNil
}

func isString(t types.Type) bool {
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

func (c *chooser) plainNumber(t types.Type) bool {
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && (b.Kind() == types.Int || b.Kind() == types.Float64)
}

// boxable reports whether an expression may be where an interface is wanted: returned as one, a comparison has crashed
// and a sign been lost.
func (c *chooser) boxable(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		b, ok := c.info.TypeOf(e).Underlying().(*types.Basic)
		return (!ok || b.Info()&types.IsBoolean == 0) && e.Op != token.REM
	case *ast.UnaryExpr:
		return c.info.Types[e].Value != nil
	}
	return true
}

// settled reports whether an expression is a constant or has no operator.
func (c *chooser) settled(e ast.Expr) bool { return c.info.Types[e].Value != nil || plainValue(e) }

// parameter returns the type that argument i is given to; a built-in's arguments count as of no interface but those
// that append adds to a slice of interfaces.
func parameter(sig *types.Signature, i int) types.Type {
	if sig == nil {
		return types.Typ[types.Invalid]
	}
	last := sig.Params().Len() - 1
	if sig.Variadic() && i >= last {
		return sig.Params().At(last).Type().(*types.Slice).Elem() // what variadic means
	}
	return sig.Params().At(min(i, last)).Type()
}

// plainValue reports whether an expression has no operator: the results of operators, assigned to an interface, have been lost.
func plainValue(e ast.Expr) bool {
	switch ast.Unparen(e).(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
		return false
	}
	return true
}

// selector allows a package's names, methods that are called at once, and fields of the host package's structs.
func (c *chooser) selector(n *ast.SelectorExpr) bool {
	s := c.info.Selections[n]
	if s == nil {
		return true
	}
	if f, ok := s.Obj().(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path() == "recurgent" && f.Name() != "Arg" {
		return c.no("questions to the daemon") // which a second run would ask again
	}
	return s.Kind() != types.MethodExpr || c.no("method expressions")
}

func (c *chooser) call(n *ast.CallExpr) bool {
	if tv := c.info.Types[n.Fun]; tv.IsType() {
		from, okFrom := c.info.TypeOf(n.Args[0]).Underlying().(*types.Basic)
		to, okTo := tv.Type.Underlying().(*types.Basic)
		if okFrom && okTo && c.info.Types[n].Value == nil {
			if c.plainNumber(from) && (c.plainNumber(to)) || isString(from) && isString(to) || isString(to) && from.Kind() == types.Int32 {
				return true
			}
		}
		return c.no("a conversion")
	}
	switch fun := ast.Unparen(n.Fun).(type) {
	case *ast.Ident:
		if _, variable := c.info.ObjectOf(fun).(*types.Var); variable {
			return c.no("calls of function values")
		}
	case *ast.SelectorExpr:
		if fun.Sel.Name == "Unmarshal" {
			return c.no("decoding into variables")
		}
	default:
		return c.no("calls of function values")
	}
	if fun, ok := n.Fun.(*ast.Ident); ok && fun.Name == "delete" && !c.mayChange(n.Args[0]) {
		return false
	}
	sig, _ := c.info.TypeOf(n.Fun).Underlying().(*types.Signature)
	for i, a := range n.Args {
		if fun, ok := n.Fun.(*ast.Ident); ok && fun.Name == "append" && i > 0 && !n.Ellipsis.IsValid() && types.Identical(c.info.TypeOf(n), c.info.TypeOf(a)) {
			return c.no("a slice appended as an element") // it has been spread
		}
		if types.IsInterface(parameter(sig, i)) && !c.settled(a) {
			return c.no("results of operators as arguments of interface type")
		}
		if s, ok := c.info.TypeOf(a).Underlying().(*types.Signature); ok && s != nil {
			return c.no("functions as arguments")
		}
	}
	return true
}

// knownType reports whether a type is one that yaegi represents as the toolchain does.
func (c *chooser) knownType(t types.Type, depth int) bool {
	if depth > 4 {
		return false
	}
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return t.Info()&types.IsComplex == 0 && t.Kind() != types.Uintptr && t.Kind() != types.UnsafePointer
	case *types.Slice:
		return c.knownType(t.Elem(), depth+1)
	case *types.Map:
		return c.knownType(t.Key(), depth+1) && c.knownType(t.Elem(), depth+1)
	case *types.Pointer:
		_, named := t.Elem().(*types.Named)
		return named && c.knownType(t.Elem(), depth+1)
	case *types.Interface:
		return t.Empty()
	case *types.Named:
		return t.Obj().Pkg() != c.pkg
	case *types.Tuple:
		for v := range t.Variables() {
			if !c.knownType(v.Type(), depth+1) {
				return false
			}
		}
		return true
	case *types.Signature:
		return c.knownType(t.Params(), depth+1) && c.knownType(t.Results(), depth+1)
	}
	return false
}

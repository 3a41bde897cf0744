package gate

import (
	"go/ast"
	"go/types"
	"slices"
)

// converts reports whether n is a conversion other than those between int and float64, from string to string, and from
// rune to string.
func converts(c *chooser, n *ast.CallExpr) bool {
	fun := c.info.Types[n.Fun]
	if !fun.IsType() {
		return false
	}
	from, okFrom := c.info.TypeOf(n.Args[0]).Underlying().(*types.Basic)
	to, okTo := fun.Type.Underlying().(*types.Basic)
	if !okFrom || !okTo || c.constant(n) {
		return true
	}
	return !(plainNumber(from) && plainNumber(to)) && !(isString(from) && isString(to)) &&
		!(isString(to) && from.Kind() == types.Int32)
}

// callsValue reports whether a call goes through a function value, and not to a named function or method.
func callsValue(c *chooser, n *ast.CallExpr) bool {
	if c.info.Types[n.Fun].IsType() {
		return false
	}
	switch fun := n.Fun.(type) {
	case *ast.Ident:
		_, variable := c.info.ObjectOf(fun).(*types.Var)
		return variable
	case *ast.SelectorExpr:
		return false
	}
	return true
}

// decodes reports whether a call is one of a function Unmarshal.
func decodes(_ *chooser, n *ast.CallExpr) bool {
	fun, ok := n.Fun.(*ast.SelectorExpr)
	return ok && fun.Sel.Name == "Unmarshal"
}

// callsBuiltin reports whether a call is one of the built-in function with that name.
func (c *chooser) callsBuiltin(n *ast.CallExpr, name string) bool {
	fun, ok := n.Fun.(*ast.Ident)
	return ok && c.info.Uses[fun] == types.Universe.Lookup(name)
}

// deletesInput reports whether a call deletes from a map that may be the call's input.
func deletesInput(c *chooser, n *ast.CallExpr) bool {
	return c.callsBuiltin(n, "delete") && !c.mayChange(n.Args[0])
}

// appendsSlice reports whether append adds a slice as one element.
func appendsSlice(c *chooser, n *ast.CallExpr) bool {
	return c.callsBuiltin(n, "append") && !n.Ellipsis.IsValid() &&
		slices.ContainsFunc(n.Args[1:], func(a ast.Expr) bool {
			return types.Identical(c.info.TypeOf(n), c.info.TypeOf(a))
		})
}

// passesSliceAsOne reports whether a call passes a slice as one of several arguments to a variadic function of the
// program.
func passesSliceAsOne(c *chooser, n *ast.CallExpr) bool {
	fun, ok := n.Fun.(*ast.Ident)
	if !ok || n.Ellipsis.IsValid() {
		return false
	}
	if _, builtin := c.info.Uses[fun].(*types.Builtin); builtin {
		return false // appendsSlice handles append
	}
	sig, ok := c.info.TypeOf(fun).Underlying().(*types.Signature)
	return ok && sig.Variadic() && slices.ContainsFunc(n.Args, func(a ast.Expr) bool {
		_, slice := c.info.TypeOf(a).Underlying().(*types.Slice)
		return slice
	})
}

// passesBoxed reports whether the result of an operator is passed as an interface.
func passesBoxed(c *chooser, n *ast.CallExpr) bool {
	sig, ok := c.info.TypeOf(n.Fun).Underlying().(*types.Signature)
	if !ok {
		return false // a conversion
	}
	for i, a := range n.Args {
		if types.IsInterface(parameter(sig, i)) && !c.plainOrConstant(a) {
			return true
		}
	}
	return false
}

// parameter returns the type of the parameter that argument i is passed to.
func parameter(sig *types.Signature, i int) types.Type {
	last := sig.Params().Len() - 1
	if sig.Variadic() && i >= last {
		return sig.Params().At(last).Type().(*types.Slice).Elem() // element type of the variadic parameter
	}
	return sig.Params().At(min(i, last)).Type()
}

// passesFunction reports whether an argument is a function.
func passesFunction(c *chooser, n *ast.CallExpr) bool {
	return slices.ContainsFunc(n.Args, func(a ast.Expr) bool {
		_, function := c.info.TypeOf(a).Underlying().(*types.Signature)
		return function
	})
}

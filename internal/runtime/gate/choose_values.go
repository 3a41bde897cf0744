package gate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// This file has the predicates of the tables for expressions.

func (c *chooser) constant(e ast.Expr) bool { return e != nil && c.info.Types[e].Value != nil }

// ownContainers returns the variables of a function that only ever hold containers made in it: by a literal, by make,
// or by append to the variable itself.
func (c *chooser) ownContainers(d *ast.FuncDecl) map[types.Object]bool {
	own := map[types.Object]bool{}
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
			made := c.makes(a.Rhs[min(i, len(a.Rhs)-1)], id)
			if obj := c.info.ObjectOf(id); a.Tok == token.DEFINE && c.info.Defs[id] != nil {
				own[obj] = made
			} else if !made {
				own[obj] = false
			}
		}
		return true
	})
	return own
}

// makes reports whether an expression is a new container or appends to the variable itself.
func (c *chooser) makes(e ast.Expr, variable *ast.Ident) bool {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.Ident)
		switch {
		case ok && c.info.Uses[f] == types.Universe.Lookup("make"):
			return true
		case ok && c.info.Uses[f] == types.Universe.Lookup("append"):
			first, ok := e.Args[0].(*ast.Ident)
			return ok && c.info.Uses[first] == c.info.ObjectOf(variable)
		}
	}
	return false
}

// mayChange reports whether the program may change elements of the container. Elements of interface type may belong to
// the call's input, so these may change only in the function's own containers.
func (c *chooser) mayChange(container ast.Expr) bool {
	if elem := elemOf(c.info.TypeOf(container)); elem != nil && !types.IsInterface(elem) {
		return true
	}
	id, ok := container.(*ast.Ident)
	return ok && c.own[c.info.Uses[id]]
}

// elemOf returns the element type of a slice or map, or nil for any other type.
func elemOf(t types.Type) types.Type {
	switch t := t.Underlying().(type) {
	case *types.Slice:
		return t.Elem()
	case *types.Map:
		return t.Elem()
	}
	return nil
}

func equality(op token.Token) bool { return op == token.EQL || op == token.NEQ }

func logical(op token.Token) bool { return op == token.LAND || op == token.LOR }

func ordering(op token.Token) bool {
	return slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ}, op)
}

func arithmetic(op token.Token) bool {
	return slices.Contains([]token.Token{token.ADD, token.SUB, token.MUL, token.QUO, token.REM}, op)
}

// comparesOther reports whether an equality compares operands that are not of basic type. Comparisons with nil are
// fine.
func comparesOther(c *chooser, n *ast.BinaryExpr) bool {
	x, y := c.info.TypeOf(n.X), c.info.TypeOf(n.Y)
	if !equality(n.Op) || isNil(x) || isNil(y) {
		return false
	}
	_, bx := x.Underlying().(*types.Basic)
	_, by := y.Underlying().(*types.Basic)
	return !bx || !by
}

func isNil(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Kind() == types.UntypedNil
}

func isString(t types.Type) bool {
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

// plainNumber reports whether the type is int or float64, on which programs for yaegi may do arithmetic.
func plainNumber(t types.Type) bool {
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && (b.Kind() == types.Int || b.Kind() == types.Float64)
}

func constantOperator(c *chooser, n *ast.BinaryExpr) bool { return c.constant(n) }

func constantOperand(c *chooser, n *ast.BinaryExpr) bool {
	return logical(n.Op) && (c.constant(n.X) || c.constant(n.Y))
}

// computesSized reports whether an arithmetic operator has operands other than int, float64 and string.
func computesSized(c *chooser, n *ast.BinaryExpr) bool {
	t := c.info.TypeOf(n.X)
	return arithmetic(n.Op) && !plainNumber(t) && !isString(t)
}

func bitwise(_ *chooser, n *ast.BinaryExpr) bool {
	return !equality(n.Op) && !logical(n.Op) && !ordering(n.Op) && !arithmetic(n.Op)
}

func negatedParenthesis(_ *chooser, n *ast.UnaryExpr) bool {
	_, paren := n.X.(*ast.ParenExpr)
	return paren && n.Op == token.NOT
}

func negatedConstant(c *chooser, n *ast.UnaryExpr) bool { return n.Op == token.NOT && c.constant(n.X) }

func otherUnary(_ *chooser, n *ast.UnaryExpr) bool {
	return !slices.Contains([]token.Token{token.SUB, token.ADD, token.NOT}, n.Op)
}

// boxable reports whether yaegi converts an expression correctly to a result of interface type. It crashed on
// comparisons and lost signs.
func (c *chooser) boxable(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		b, ok := c.info.TypeOf(e).Underlying().(*types.Basic)
		return (!ok || b.Info()&types.IsBoolean == 0) && e.Op != token.REM
	case *ast.UnaryExpr:
		return c.constant(e)
	}
	return true
}

// plainOrConstant reports whether an expression is a constant or contains no operator at its top.
func (c *chooser) plainOrConstant(e ast.Expr) bool { return c.constant(e) || plainValue(e) }

// plainValue reports whether an expression has no operator at its top. yaegi lost the results of operators assigned to
// interfaces.
func plainValue(e ast.Expr) bool {
	switch ast.Unparen(e).(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
		return false
	}
	return true
}

func otherLiteral(c *chooser, n *ast.CompositeLit) bool { return elemOf(c.info.TypeOf(n)) == nil }

// holdsBoxed reports whether the result of an operator is an element of interface type.
func holdsBoxed(c *chooser, n *ast.CompositeLit) bool {
	return types.IsInterface(elemOf(c.info.TypeOf(n))) && slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		return !c.plainOrConstant(e)
	})
}

func instance(c *chooser, n *ast.Ident) bool {
	_, instance := c.info.Instances[n]
	return instance
}

func counter(c *chooser, n *ast.Ident) bool {
	k, ok := c.info.ObjectOf(n).(*types.Const)
	return ok && k.Name() == "iota"
}

func imaginary(_ *chooser, n *ast.BasicLit) bool { return n.Kind == token.IMAG }

func idleParentheses(_ *chooser, n *ast.ParenExpr) bool {
	_, operator := n.X.(*ast.BinaryExpr)
	return !operator
}

func dereference(c *chooser, n *ast.StarExpr) bool { return !c.info.Types[n].IsType() }

func sliceOfThree(_ *chooser, n *ast.SliceExpr) bool { return n.Slice3 }

func typeSwitch(_ *chooser, n *ast.TypeAssertExpr) bool { return n.Type == nil }

// mayPanic reports whether an assertion has a single result.
func mayPanic(c *chooser, n *ast.TypeAssertExpr) bool {
	_, tuple := c.info.TypeOf(n).(*types.Tuple)
	return !tuple
}

func otherBuiltin(c *chooser, n *ast.Ident) bool {
	b, ok := c.info.ObjectOf(n).(*types.Builtin)
	return ok && !slices.Contains([]string{"len", "append", "make", "delete"}, b.Name())
}

// asksDaemon reports whether a method of the host package other than Arg is selected. Arg only reads the input.
func asksDaemon(c *chooser, n *ast.SelectorExpr) bool {
	s := c.info.Selections[n]
	if s == nil {
		return false
	}
	f, ok := s.Obj().(*types.Func)
	return ok && f.Pkg() != nil && f.Pkg().Path() == allow.HostPath && f.Name() != "Arg"
}

func methodExpression(c *chooser, n *ast.SelectorExpr) bool {
	s := c.info.Selections[n]
	return s != nil && s.Kind() == types.MethodExpr
}

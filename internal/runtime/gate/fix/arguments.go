package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// spreadList appends the elements of a list where the list itself cannot be one of them: append(a, b) of two []int.
func (m *fixer) spreadList(x ast.Expr) bool {
	c, ok := m.parents[x].(*ast.CallExpr)
	if !ok || !isName(c.Fun, "append") || len(c.Args) != 2 || c.Args[1] != x || c.Ellipsis.IsValid() {
		return false
	}
	list, from := m.Info.TypeOf(c.Args[0]), m.Info.TypeOf(x)
	if list == nil || from == nil || !types.AssignableTo(from, list) && !(isString(from) && elemIs(list, types.Uint8)) {
		return false
	}
	_, isSlice := list.Underlying().(*types.Slice)
	return isSlice && !isEmptyInterface(list.Underlying().(*types.Slice).Elem()) &&
		m.fix("the elements of a list are appended by ...", m.after(x, "..."))
}

// swapped turns the two arguments of a library function round that fit only in the other order, as in
// strings.Join(",", list).
func (m *fixer) swapped(x ast.Expr) bool {
	c, ok := m.parents[x].(*ast.CallExpr)
	if !ok || len(c.Args) != 2 || c.Ellipsis.IsValid() || m.callee(c) == "" {
		return false
	}
	sig, ok := m.Info.TypeOf(c.Fun).(*types.Signature)
	if !ok || sig.Params().Len() != 2 || sig.Variadic() {
		return false
	}
	fits := func(arg, param int) bool {
		t := m.Info.TypeOf(c.Args[arg])
		return t != nil && types.AssignableTo(types.Default(t), sig.Params().At(param).Type())
	}
	return fits(0, 1) && fits(1, 0) && !fits(0, 0) && !fits(1, 1) && m.turned(c)
}

// turned exchanges the two arguments of a call.
func (m *fixer) turned(c *ast.CallExpr) bool {
	return m.fix(m.text(c.Fun)+" takes its arguments in the other order", m.replace(c.Args[0], m.text(c.Args[1])),
		m.replace(c.Args[1], m.text(c.Args[0])))
}

// swappedList does the same for functions of package slices, as in slices.Contains(x, list).
func (m *fixer) swappedList(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool {
		return len(c.Args) == 2 && strings.HasPrefix(m.callee(c), "slices.")
	})
	if !ok || c.Ellipsis.IsValid() {
		return false
	}
	first, second := m.Info.TypeOf(c.Args[0]), m.Info.TypeOf(c.Args[1])
	if first == nil || second == nil {
		return false
	}
	list, ok := second.Underlying().(*types.Slice)
	if !ok {
		return false
	}
	_, function := first.Underlying().(*types.Signature)
	takes := strings.HasSuffix(m.callee(c), "Func")
	return (function && takes || !takes && types.Identical(types.Default(first), list.Elem())) && m.turned(c)
}

// roundedQuotient divides float64 where the program rounds a quotient of integers: it has a fraction then.
func (m *fixer) roundedQuotient(x ast.Expr) bool {
	c, ok := m.parents[x].(*ast.CallExpr)
	if !ok || !strings.HasPrefix(m.callee(c), "math.") || !isBasic(m.Info.TypeOf(x), types.Int) || !m.hasQuotient(x) {
		return false
	}
	switch m.callee(c) {
	case "math.Round", "math.Ceil", "math.RoundToEven":
	default:
		return false
	}
	text := m.inFloats(x)
	return text != "" && m.fix("a quotient that is rounded has a fraction", m.replace(x, text))
}

// hasQuotient reports whether an arithmetic expression divides.
func (m *fixer) hasQuotient(x ast.Expr) bool {
	b, ok := ast.Unparen(x).(*ast.BinaryExpr)
	return ok && (b.Op == token.QUO || m.hasQuotient(b.X) || m.hasQuotient(b.Y))
}

// inFloats returns an arithmetic expression of integers with its operands as float64, or "".
func (m *fixer) inFloats(x ast.Expr) string {
	if m.Info.Types[x].Value != nil {
		return m.text(x)
	}
	b, ok := ast.Unparen(x).(*ast.BinaryExpr)
	if !ok || !m.hasQuotient(x) {
		if m.quotient(x) || !isBasic(m.Info.TypeOf(x), types.Int) {
			return ""
		}
		return "float64(" + m.text(ast.Unparen(x)) + ")"
	}
	switch b.Op {
	case token.ADD, token.SUB, token.MUL, token.QUO:
	default:
		return ""
	}
	left, right := m.inFloats(b.X), m.inFloats(b.Y)
	if left == "" || right == "" {
		return ""
	}
	text := left + " " + b.Op.String() + " " + right
	if _, paren := x.(*ast.ParenExpr); paren {
		text = "(" + text + ")"
	}
	return text
}

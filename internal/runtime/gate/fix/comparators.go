package fix

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// byLess is added to a program that gives an order that returns a bool to a function that requires one of numbers.
const byLess = `func byLess[T any](less func(a, b T) bool) func(a, b T) int {
	return func(a, b T) int {
		if less(a, b) {
			return -1
		}
		if less(b, a) {
			return 1
		}
		return 0
	}
}`

// orders maps functions that take the order of a list's elements to the equivalent for an order of places, if there is
// one.
var orders = map[string]string{"slices.SortFunc": "sort.Slice", "slices.SortStableFunc": "sort.SliceStable",
	"slices.MaxFunc": "", "slices.MinFunc": ""}

// byElements maps functions that take an order of places to the equivalent for an order of elements.
var byElements = map[string]string{"sort.Slice": "slices.SortFunc", "sort.SliceStable": "slices.SortStableFunc"}

// comparator repairs the order that is given to a sorting function: one of elements where one of places is wanted, the
// reverse, or a bool where a number is wanted.
func (m *fixer) comparator(c *ast.CallExpr) bool {
	fun := m.callee(c)
	if len(c.Args) != 2 || len(m.edits) > 0 {
		return false
	}
	order, ok := ast.Unparen(c.Args[1]).(*ast.FuncLit)
	if !ok || order.Type.Params.NumFields() != 2 || len(fieldsOf(order.Type.Results)) != 1 {
		return false
	}
	list, ok := types.Unalias(m.Info.TypeOf(c.Args[0])).Underlying().(*types.Slice)
	if !ok {
		return false
	}
	of, result := m.Info.TypeOf(fieldsOf(order.Type.Params)[0].typ), m.Info.TypeOf(fieldsOf(order.Type.Results)[0].typ)
	elements := types.Identical(of, list.Elem()) && !m.ofPlaces(order, c.Args[0])
	if byElements[fun] != "" && isBasic(of, types.Int) && (isBasic(result, types.Int) || isFloat(result)) &&
		m.ofPlaces(order, c.Args[0]) && m.hasSigns(order) {
		return m.fix(fun+" takes an order as a comparison", m.replace(order.Type.Results.List[0].Type, "bool"))
	}
	return m.otherOrder(c, order, elements)
}

// otherOrder repairs an order of another kind than the function takes. elements is whether it is one of elements.
func (m *fixer) otherOrder(c *ast.CallExpr, order *ast.FuncLit, elements bool) bool {
	fun := m.callee(c)
	of, result := m.Info.TypeOf(fieldsOf(order.Type.Params)[0].typ), m.Info.TypeOf(fieldsOf(order.Type.Results)[0].typ)
	to, known := orders[fun]
	switch {
	case known && elements && isBasic(result, types.Bool) && (to != "" || m.isLess(order)):
		edits, ok := m.given("byLess", byLess)
		return ok && m.fix(fun+" takes an order as a number", append(edits,
			m.before(order, "byLess("), m.after(order, ")"))...)
	case known && to != "" && isBasic(of, types.Int) && isBasic(result, types.Bool) && m.ofPlaces(order, c.Args[0]):
		return m.fix(fun+" compares elements, "+to+" places", m.replace(c.Fun, to))
	case byElements[fun] != "" && elements && !isBasic(of, types.Int):
		return m.fix(fun+" compares places, "+byElements[fun]+" elements", m.replace(c.Fun, byElements[fun]))
	}
	return false
}

// ofPlaces reports whether a function literal takes elements of the list by its parameters.
func (m *fixer) ofPlaces(order *ast.FuncLit, list ast.Expr) bool {
	found := false
	ast.Inspect(order.Body, func(n ast.Node) bool {
		ix, ok := n.(*ast.IndexExpr)
		found = found || ok && m.text(ix.X) == m.text(list)
		return !found
	})
	return found
}

// isLess reports whether a function literal only compares its first parameter by < with its second. A greatest element
// by > may be meant as the least.
func (m *fixer) isLess(order *ast.FuncLit) bool {
	if len(order.Body.List) != 1 {
		return false
	}
	r, ok := order.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(r.Results) != 1 {
		return false
	}
	b, ok := ast.Unparen(r.Results[0]).(*ast.BinaryExpr)
	params := fieldsOf(order.Type.Params)
	return ok && b.Op == token.LSS && uses(b.X, params[0].name) && !uses(b.X, params[1].name) &&
		uses(b.Y, params[1].name) && !uses(b.Y, params[0].name)
}

// orderResult repairs the result of an order of a sort: a comparison where a number is wanted, a number where a
// comparison is, and a difference of float64, which is not an int.
func (m *fixer) orderResult(x ast.Expr, to types.Type) bool {
	r, ok := m.parents[x].(*ast.ReturnStmt)
	if !ok || len(r.Results) != 1 {
		return false
	}
	from := m.Info.TypeOf(x)
	if isBasic(to, types.Bool) && isKind(from, types.IsNumeric) && m.ofOrder(r) && m.hasSigns(m.literalAround(r)) {
		if m.Info.Types[x].Value != nil {
			return m.fix("the order is a number", m.replace(x, strconv.FormatBool(below(m.Info.Types[x]) > 0)))
		}
		return m.fix("the order is a number", m.after(x, " < 0"))
	}
	if f, ok := m.enclosing(r).(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Less" &&
		isBasic(from, types.Int) && isBasic(to, types.Bool) {
		return m.fix("the order is a number", m.after(x, " < 0"))
	}
	if !m.ofOrder(r) {
		return false
	}
	order := m.literalAround(r)
	difference, isSum := ast.Unparen(x).(*ast.BinaryExpr)
	switch {
	case isBasic(to, types.Int) && (isBasic(from, types.Bool) || isBasic(from, types.UntypedBool)):
		return m.fix("the order is a comparison", m.replace(order.Type.Results.List[0].Type, "bool"))
	case isBasic(to, types.Int) && isFloat(from) && isSum && difference.Op == token.SUB:
		return m.fix("the order of numbers is cmp.Compare", m.replace(x,
			"cmp.Compare("+m.text(difference.X)+", "+m.text(difference.Y)+")"))
	}
	return false
}

// hasSigns reports whether the numbers that an order returns are below and above 0, as those of a comparison. 1 and 0
// alone may stand for true and false.
func (m *fixer) hasSigns(order *ast.FuncLit) bool {
	found, positive := false, false
	ast.Inspect(order.Body, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		if !ok || len(r.Results) != 1 {
			return true
		}
		tv := m.Info.Types[r.Results[0]]
		if tv.Type == nil || !isKind(tv.Type, types.IsNumeric) {
			return true
		}
		found = found || tv.Value == nil || constant.Sign(tv.Value) < 0
		positive = positive || tv.Value != nil && constant.Sign(tv.Value) > 0
		return true
	})
	return found || !positive
}

// ofOrder reports whether a statement ends the order that is given to a sort.
func (m *fixer) ofOrder(r *ast.ReturnStmt) bool {
	order := m.literalAround(r)
	if order == nil || len(fieldsOf(order.Type.Params)) != 2 || order.Type.Results == nil {
		return false
	}
	c, ok := m.parents[order].(*ast.CallExpr)
	return ok && (orders[m.callee(c)] != "" || byElements[m.callee(c)] != "")
}

// literalAround returns the function literal that a return statement ends, or nil.
func (m *fixer) literalAround(n ast.Node) *ast.FuncLit {
	for p := m.parents[n]; p != nil; p = m.parents[p] {
		switch p := p.(type) {
		case *ast.FuncLit:
			return p
		case *ast.FuncDecl:
			return nil
		}
	}
	return nil
}

// sorts are functions that sort a list and take no order.
var sorts = []string{"sort.Sort", "sort.Strings", "sort.Ints", "sort.Float64s", "slices.Sort", "sort.Stable"}

// sortedBy gives an order to a function that takes one.
func (m *fixer) sortedBy(call *ast.CallExpr) bool {
	if len(call.Args) != 2 || !slices.Contains(sorts, m.text(call.Fun)) {
		return false
	}
	order, ok := ast.Unparen(call.Args[1]).(*ast.FuncLit)
	if !ok || len(fieldsOf(order.Type.Results)) != 1 {
		return false
	}
	to := "sort.Slice"
	if isBasic(m.Info.TypeOf(fieldsOf(order.Type.Results)[0].typ), types.Int) {
		to = "slices.SortFunc"
	}
	if m.text(call.Fun) == "sort.Stable" {
		to += "Stable"
	}
	return m.fix(m.text(call.Fun)+" takes no order: "+to, m.replace(call.Fun, strings.Replace(to, "FuncStable",
		"StableFunc", 1)))
}

// spread removes ... from the list for a function that takes a list, and gives a list to one that does where numbers
// are wanted.
func (m *fixer) spread(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return c.Ellipsis.IsValid() })
	if !ok {
		return false
	}
	at := m.offset(c.Ellipsis)
	if to := greatest[m.text(c.Fun)]; to != "" && len(c.Args) == 1 {
		return m.fix(m.text(c.Fun)+" of a list is "+to, m.replace(c.Fun, to), edit{at, at + 3, ""})
	}
	return m.fix(m.text(c.Fun)+" takes the list itself", edit{at, at + 3, ""})
}

// greatest maps functions of single numbers to those of a list.
var greatest = map[string]string{"max": "slices.Max", "min": "slices.Min", "math.Max": "slices.Max",
	"math.Min": "slices.Min"}

// ofList repairs max(list) and math.Max(list).
func (m *fixer) ofList(c *ast.CallExpr) bool {
	to := greatest[m.text(c.Fun)]
	if to == "" || len(c.Args) != 1 || c.Ellipsis.IsValid() {
		return false
	}
	list, ok := types.Unalias(m.Info.TypeOf(c.Args[0])).(*types.Slice)
	return ok && isKind(list.Elem(), types.IsOrdered) &&
		m.fix(m.text(c.Fun)+" of a list is "+to, m.replace(c.Fun, to))
}

// maxOfList repairs max(list), which is a built-in function.
func (m *fixer) maxOfList(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return greatest[m.text(c.Fun)] != "" })
	return ok && m.ofList(c)
}

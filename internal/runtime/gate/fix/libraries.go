package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// shorter lists functions that other languages call with fewer arguments: that number, and the equivalent function.
var shorter = map[string]struct {
	arguments int
	function  string
}{
	"strings.Trim": {1, "strings.TrimSpace"}, "strings.Split": {1, "strings.Fields"},
	"strings.SplitN": {2, "strings.Split"},
}

// fewerArguments calls the equivalent function for the number of arguments given.
func (m *fixer) fewerArguments(call *ast.CallExpr) bool {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) == 1 && strings.HasPrefix(s.Sel.Name, "FindAll") &&
		types.TypeString(m.Info.TypeOf(s.X), nil) == "*regexp.Regexp" {
		return m.fix(s.Sel.Name+" takes how many are wanted: -1 for all", m.after(call.Args[0], ", -1"))
	}
	if fun := m.text(call.Fun); len(call.Args) == 1 && (fun == "strings.TrimLeft" || fun == "strings.TrimRight") {
		return m.fix(fun+" takes what to trim: white space", m.replace(call.Fun, fun+"Func"),
			m.after(call.Args[0], ", unicode.IsSpace"))
	}
	to := shorter[m.text(call.Fun)]
	return to.function != "" && to.arguments == len(call.Args) &&
		m.fix(m.text(call.Fun)+" takes more arguments: "+to.function, m.replace(call.Fun, to.function))
}

// roundedTo rewrites math.Round(x, 2) with a multiplication and a division by 100.
func (m *fixer) roundedTo(call *ast.CallExpr) bool {
	if m.text(call.Fun) != "math.Round" || len(call.Args) != 2 {
		return false
	}
	places, ok := placeOf(call.Args[1])
	if !ok || places < 0 || places > 9 {
		return false
	}
	power := "1" + strings.Repeat("0", places)
	text := "math.Round((" + m.text(call.Args[0]) + ")*" + power + ") / " + power
	if _, operand := m.parents[call].(*ast.BinaryExpr); operand {
		text = "(" + text + ")"
	}
	return m.fix("math.Round rounds to whole numbers", m.replace(call, text))
}

// sortsOf maps element types to the function that sorts a list of them.
var sortsOf = map[types.BasicKind]string{types.Float64: "sort.Float64s", types.String: "sort.Strings",
	types.Int: "sort.Ints"}

// reversedOrder gives sort.Reverse a list that can be sorted.
func (m *fixer) reversedOrder(c *ast.CallExpr) bool {
	if m.callee(c) != "sort.Reverse" || len(c.Args) != 1 {
		return false
	}
	for kind, sortable := range map[types.BasicKind]string{types.Float64: "sort.Float64Slice",
		types.String: "sort.StringSlice", types.Int: "sort.IntSlice"} {
		if elemIs(m.Info.TypeOf(c.Args[0]), kind) {
			return m.fix("a list is sorted as "+sortable, m.before(c.Args[0], sortable+"("), m.after(c.Args[0], ")"))
		}
	}
	return false
}

// sortedList replaces sort.Sort(list) of numbers or strings by the function for that type.
func (m *fixer) sortedList(c *ast.CallExpr) bool {
	if m.callee(c) != "sort.Sort" || len(c.Args) != 1 {
		return false
	}
	list, ok := types.Unalias(m.Info.TypeOf(c.Args[0])).(*types.Slice)
	if !ok || basic(list.Elem()) == nil || isNamed(list.Elem()) {
		return false
	}
	to := sortsOf[basic(list.Elem()).Kind()]
	if to == "" && isKind(list.Elem(), types.IsOrdered) {
		to = "slices.Sort"
	}
	return to != "" && m.fix("a list of these is sorted by "+to, m.replace(c.Fun, to))
}

// literalResult declares the result of a function literal that returns a value without declaring one. The place of the
// literal determines the type.
func (m *fixer) literalResult(x ast.Expr) bool {
	l, ok := ast.Unparen(x).(*ast.FuncLit)
	if !ok || l.Type.Results != nil {
		return false
	}
	to, ok := m.wanted(x).(*types.Signature)
	if !ok || to.Results().Len() != 1 || to.Params().Len() != l.Type.Params.NumFields() {
		return false
	}
	result := m.typeText(to.Results().At(0).Type())
	return m.fix("the function returns a "+result, edit{m.offset(l.Type.End()), m.offset(l.Type.End()), " " + result})
}

// lengthOf rewrites list.length and list.size() as len(list).
func (m *fixer) lengthOf(s *ast.SelectorExpr, call *ast.CallExpr) bool {
	if !slices.Contains([]string{"length", "len", "size", "count"}, strings.ToLower(s.Sel.Name)) || call != nil &&
		len(call.Args) > 0 {
		return false
	}
	whole := ast.Node(s)
	if call != nil {
		whole = call
	}
	return m.fix("the length is len("+clip(m.text(s.X))+")", m.replace(whole, "len("+m.text(s.X)+")"))
}

// asText rewrites characters.String() as a conversion.
func (m *fixer) asText(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	t := m.Info.TypeOf(s.X)
	return slices.Contains([]string{"string", "tostring"}, strings.ToLower(s.Sel.Name)) && len(call.Args) == 0 &&
		(areRunes(t) || elemIs(t, types.Uint8)) &&
		m.fix("characters are a text as string(x)", m.replace(call, "string("+m.text(s.X)+")"))
}

// sortedKeys rewrites m.keys() of a map if the program sorts the result.
func (m *fixer) sortedKeys(s *ast.SelectorExpr, call *ast.CallExpr) bool {
	if call == nil || len(call.Args) > 0 || strings.ToLower(s.Sel.Name) != "keys" {
		return false
	}
	as, ok := m.parents[call].(*ast.AssignStmt)
	if !ok || len(as.Lhs) != 1 || !strings.Contains(m.src, "sort.Strings("+m.text(as.Lhs[0])+")") &&
		!strings.Contains(m.src, "slices.Sort("+m.text(as.Lhs[0])+")") {
		return false
	}
	return m.fix("a map has no keys of its own", m.replace(call, "slices.Sorted(maps.Keys("+m.text(s.X)+"))"))
}

// memberByName rewrites o.name of a map as o["name"].
func (m *fixer) memberByName(s *ast.SelectorExpr, call *ast.CallExpr) bool {
	t, ok := m.Info.TypeOf(s.X).Underlying().(*types.Map)
	return ok && call == nil && isString(t.Key()) && m.fix("a member of a map is read by its key",
		m.replace(s, m.text(s.X)+"["+strconv.Quote(s.Sel.Name)+"]"))
}

// untypedParameters adds the types of a function literal's parameters if it has only their names, as in func(i, j)
// bool.
func (m *fixer) untypedParameters(path []ast.Node) bool {
	l, ok := nearest[*ast.FuncLit](path, nil)
	if !ok || len(path) < 3 || path[2] != l.Type.Params {
		return false
	}
	to, ok := m.wanted(l).(*types.Signature)
	if !ok || to.Params().Len() != len(l.Type.Params.List) {
		return false
	}
	var edits []edit
	for i, f := range l.Type.Params.List {
		if _, name := f.Type.(*ast.Ident); len(f.Names) > 0 || !name {
			return false
		}
		edits = append(edits, m.after(f, " "+m.typeText(to.Params().At(i).Type())))
	}
	return m.fix("parameters have types", edits...)
}

// otherMethod replaces a misspelled or invented method of a library type by the real one, such as b.ToString() of a
// builder.
func (m *fixer) otherMethod(s *ast.SelectorExpr, t types.Type) bool {
	name := s.Sel.Name
	if _, ok := m.definedType(t); ok {
		return false
	}
	if call, ok := m.parents[s].(*ast.CallExpr); ok && isBuilder(t) {
		switch lower := strings.ToLower(name); {
		case lower == "tostring":
			return m.fix(name+" is String", m.replace(s.Sel, "String"))
		case slices.Contains([]string{"append", "add", "push"}, lower) && len(call.Args) == 1 &&
			isString(m.Info.TypeOf(call.Args[0])):
			return m.fix(name+" is WriteString", m.replace(s.Sel, "WriteString"))
		}
	}
	if _, pointer := t.(*types.Pointer); !pointer {
		t = types.NewPointer(t)
	}
	for method := range types.NewMethodSet(t).Methods() {
		if to := method.Obj(); to.Exported() && strings.EqualFold(to.Name(), name) {
			return m.fix(name+" is "+to.Name(), m.replace(s.Sel, to.Name()))
		}
	}
	return false
}

// definedType returns the name under which the program declares a type, or the type that a pointer points to.
func (m *fixer) definedType(t types.Type) (*types.TypeName, bool) {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() != m.Pkg {
		return nil, false
	}
	return n.Obj(), true
}

// comparedTimes rewrites a < b of two times as a.Before(b).
func (m *fixer) comparedTimes(n *ast.BinaryExpr) bool {
	for _, x := range []ast.Expr{n.X, n.Y} {
		if types.TypeString(m.Info.TypeOf(x), nil) != "time.Time" {
			return false
		}
	}
	method := map[token.Token]string{token.LSS: "%.Before", token.GTR: "%.After", token.LEQ: "!%.After",
		token.GEQ: "!%.Before", token.SUB: "%.Sub"}[n.Op]
	return method != "" && m.fix("times are compared by methods",
		m.replace(n, strings.ReplaceAll(method, "%", m.text(n.X))+"("+m.text(n.Y)+")"))
}

// madeArray turns an array whose length is not constant into a list.
func (m *fixer) madeArray(e types.Error, path []ast.Node, _ []string) bool {
	a, ok := nearest(path, func(a *ast.ArrayType) bool {
		return a.Len != nil && a.Len.Pos() <= e.Pos &&
			e.Pos < a.Len.End()
	})
	if !ok || m.Info.Types[a.Len].Value != nil {
		return false
	}
	text := "make([]" + m.text(a.Elt) + ", " + m.text(a.Len) + ")"
	rows := a
	if inner, ok := a.Elt.(*ast.ArrayType); ok && inner.Len != nil {
		text = rowsOf(m.text(a.Len), m.text(inner.Len), m.text(inner.Elt))
	} else if outer, ok := m.parents[a].(*ast.ArrayType); ok && outer.Len != nil {
		text = rowsOf(m.text(outer.Len), m.text(a.Len), m.text(a.Elt))
		rows = outer
	}
	a = rows
	const note = "an array has a constant length, a list any"
	switch p := m.parents[a].(type) {
	case *ast.CompositeLit:
		return len(p.Elts) == 0 && m.fix(note, m.replace(p, text))
	case *ast.ValueSpec:
		return p.Type == a && len(p.Names) == 1 && len(p.Values) == 0 &&
			m.fix(note, edit{m.offset(a.Pos()), m.offset(a.End()), "= " + text})
	}
	return false
}

// rowsOf returns a list of lists of these lengths.
func rowsOf(rows, columns, elem string) string {
	return "func() [][]" + elem + " {\nlist := make([][]" + elem + ", " + rows +
		")\nfor i := range list {\nlist[i] = make([]" + elem + ", " + columns + ")\n}\nreturn list\n}()"
}

// inMessage reports whether an expression is part of an error message.
func (m *fixer) inMessage(x ast.Node) bool {
	for p := m.parents[x]; p != nil; p = m.parents[p] {
		switch p := p.(type) {
		case *ast.CallExpr:
			return m.isFailure(p)
		case *ast.BinaryExpr, *ast.ParenExpr:
		default:
			return false
		}
	}
	return false
}

// inWords converts the number in "..." + n to a string in an error message.
func (m *fixer) inWords(n *ast.BinaryExpr) bool {
	if n.Op != token.ADD || !m.inMessage(n) {
		return false
	}
	for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
		tv := m.Info.Types[side[1]]
		if isString(m.Info.TypeOf(side[0])) && tv.Type != nil &&
			(isKind(tv.Type, types.IsNumeric) || isEmptyInterface(tv.Type)) {
			return m.fix("the text of "+clip(m.text(side[1])), m.replace(side[1], "fmt.Sprint("+m.text(side[1])+")"))
		}
	}
	return false
}

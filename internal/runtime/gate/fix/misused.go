package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// textsOf is added to a program that joins integers as texts.
const textsOf = `func textsOf(list []int) []string {
	out := make([]string, 0, len(list))
	for _, n := range list {
		out = append(out, strconv.Itoa(n))
	}
	return out
}`

// joined gives strings.Join the texts of a list of integers.
func (m *fixer) joined(c *ast.CallExpr, x ast.Expr) bool {
	if m.callee(c) != "strings.Join" || c.Args[0] != x ||
		!types.Identical(m.Info.TypeOf(x), types.NewSlice(types.Typ[types.Int])) || len(m.edits) > 0 {
		return false
	}
	edits, ok := m.given("textsOf", textsOf)
	return ok && m.fix("a text is joined of texts", append(edits, m.before(x, "textsOf("), m.after(x, ")"))...)
}

// contained calls the function for lists where that for texts is given a list of constants, and the reverse. Of another
// list of texts, a part of an element may be meant, and of a map of texts, a value.
func (m *fixer) contained(c *ast.CallExpr) bool {
	if len(c.Args) != 2 || c.Ellipsis.IsValid() {
		return false
	}
	list, of := m.Info.TypeOf(c.Args[0]), m.Info.TypeOf(c.Args[1])
	if list == nil || of == nil {
		return false
	}
	of = types.Default(of)
	fun := m.callee(c)
	switch u := list.Underlying().(type) {
	case *types.Slice:
		if fun == "strings.Contains" && types.Identical(u.Elem(), of) && m.isFixedList(c.Args[0]) {
			return m.fix("a list contains an element", m.replace(c.Fun, "slices.Contains"))
		}
	case *types.Map:
		if (fun == "strings.Contains" && isSet(u) || fun == "slices.Contains" && !types.AssignableTo(of, u.Elem())) &&
			types.AssignableTo(of, u.Key()) {
			edits, ok := m.given("hasKey", hasKey)
			return ok && len(m.edits) == 0 && m.fix("a key is there or not", append(edits, m.replace(c.Fun, "hasKey"))...)
		}
	case *types.Basic:
		if fun == "slices.Contains" && isPlainString(list) && isPlainString(of) {
			return m.fix("a text contains another", m.replace(c.Fun, "strings.Contains"))
		}
	}
	return false
}

// isFixedList reports whether a list is a literal of constants, or a variable that keeps one.
func (m *fixer) isFixedList(x ast.Expr) bool {
	if v := m.variable(x); v != nil {
		def, value := m.definition(v)
		if value == nil || !m.setOnce(v, def) {
			return false
		}
		x = value
	}
	lit, ok := ast.Unparen(x).(*ast.CompositeLit)
	return ok && !slices.ContainsFunc(lit.Elts, func(el ast.Expr) bool { return m.Info.Types[el].Value == nil })
}

// isSet reports whether a map holds no more than its keys.
func isSet(u *types.Map) bool {
	s, empty := u.Elem().Underlying().(*types.Struct)
	return isBasic(u.Elem(), types.Bool) || empty && s.NumFields() == 0
}

// containing is contained of a function that was given no list.
func (m *fixer) containing(_ types.Error, path []ast.Node, _ []string) bool {
	c, ok := nearest(path, func(c *ast.CallExpr) bool { return m.callee(c) == "slices.Contains" })
	return ok && m.contained(c)
}

// sortedWithout sorts a list of numbers or texts where the order is left out.
func (m *fixer) sortedWithout(c *ast.CallExpr) bool {
	if len(c.Args) != 1 || !slices.Contains([]string{"sort.Slice", "sort.SliceStable", "slices.SortFunc",
		"slices.SortStableFunc"}, m.text(c.Fun)) {
		return false
	}
	list, ok := types.Unalias(m.Info.TypeOf(c.Args[0])).(*types.Slice)
	return ok && isKind(list.Elem(), types.IsOrdered) &&
		m.fix("without an order a list is sorted by slices.Sort", m.replace(c.Fun, "slices.Sort"))
}

// sortedSequence rewrites maps.Keys(m).sort().
func (m *fixer) sortedSequence(s *ast.SelectorExpr, call *ast.CallExpr) bool {
	name := plainName(s.Sel.Name)
	return call != nil && len(call.Args) == 0 && isSequence(m.Info.TypeOf(s.X)) && (name == "sort" || name == "sorted") &&
		m.fix("a sequence is sorted by slices.Sorted", m.replace(call, "slices.Sorted("+m.text(s.X)+")"))
}

// elidedType gives an object or a list within an object of any its type.
func (m *fixer) elidedType(_ types.Error, path []ast.Node, _ []string) bool {
	lit, ok := nearest(path, func(l *ast.CompositeLit) bool { return l.Type == nil })
	if !ok || lit.Pos() != path[0].Pos() {
		return false
	}
	keys := 0
	for _, el := range lit.Elts {
		if kv, ok := el.(*ast.KeyValueExpr); ok {
			if constantText(kv.Key) == "" {
				return false
			}
			keys++
		}
	}
	switch {
	case keys == len(lit.Elts) && keys > 0:
		return m.fix("an object has its type before it", m.before(lit, "map[string]any"))
	case keys == 0 && len(lit.Elts) > 0:
		return m.fix("a list has its type before it", m.before(lit, "[]any"))
	}
	return false
}

// setOf gives the elements of a set, which is a map of bool, their values.
func (m *fixer) setOf(_ types.Error, path []ast.Node, _ []string) bool {
	lit, ok := nearest[*ast.CompositeLit](path, nil)
	if !ok || lit.Type == nil {
		return false
	}
	set, ok := lit.Type.(*ast.MapType)
	if !ok {
		return false
	}
	value := map[string]string{"bool": ": true", "struct{}": ": {}"}[m.text(set.Value)]
	var edits []edit
	for _, el := range lit.Elts {
		if _, keyed := el.(*ast.KeyValueExpr); keyed || value == "" {
			return false
		}
		edits = append(edits, m.after(el, value))
	}
	return m.fix("a set is a map of bool", edits...)
}

// calendarNames are the names of weekdays and months.
var calendarNames = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "January",
	"February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}

// namedDay compares a weekday or a month with its name.
func (m *fixer) namedDay(b *ast.BinaryExpr) bool {
	for _, side := range [][2]ast.Expr{{b.X, b.Y}, {b.Y, b.X}} {
		if isCalendar(m.Info.TypeOf(side[0])) && slices.Contains(calendarNames, constantText(side[1])) {
			return m.fix("a weekday and a month have names", m.after(side[0], ".String()"))
		}
	}
	return false
}

// isPiece reports whether a text is one character of another.
func (m *fixer) isPiece(x ast.Expr) bool {
	if v := m.variable(x); v != nil {
		ast.Inspect(m.file, func(n ast.Node) bool {
			if r, ok := n.(*ast.RangeStmt); ok && r.Value != nil && m.variable(r.Value) == v {
				x = r.X
				if list := m.variable(r.X); list != nil {
					_, x = m.definition(list)
				}
			}
			return true
		})
		if def, value := m.definition(v); def != nil {
			x = value
		}
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.IndexExpr:
		list := m.variable(x.X)
		_, value := m.definition(list)
		return value != nil && m.isPiece(value)
	case *ast.SliceExpr:
		return true
	case *ast.CallExpr:
		return m.Info.Types[x.Fun].IsType() || m.callee(x) == "strings.Split" && constantText(x.Args[1]) == "" &&
			m.Info.Types[x.Args[1]].Value != nil
	}
	return false
}

// codes are the numbers of the characters at the ends of the digits and the letters.
var codes = []string{"48", "57", "65", "90", "97", "122"}

// hasCodes reports whether a function has characters, or numbers of characters.
func (m *fixer) hasCodes(f ast.Node) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		l, ok := n.(*ast.BasicLit)
		found = found || ok && (l.Kind == token.CHAR || l.Kind == token.INT && slices.Contains(codes, l.Value))
		return !found
	})
	return found
}

// numberOfText reads the number of a text where the program converts it, as in int(s). Of a single character, its code
// may be meant.
func (m *fixer) numberOfText(c *ast.CallExpr) bool {
	if len(c.Args) != 1 || !m.Info.Types[c.Fun].IsType() {
		return false
	}
	of := m.Info.TypeOf(c.Args[0])
	if a, ok := ast.Unparen(c.Args[0]).(*ast.TypeAssertExpr); ok && a.Type != nil {
		of = m.Info.TypeOf(a.Type)
	}
	if of == nil || !isPlainString(types.Default(of)) {
		return false
	}
	switch to := m.Info.TypeOf(c.Fun); {
	case types.Identical(to, types.Typ[types.Int]):
		return !m.isPiece(c.Args[0]) && !m.hasCodes(m.enclosing(c)) && m.fix("the number of a text is strconv.Atoi", m.replace(c.Fun, "strconv.Atoi"))
	case types.Identical(to, types.Typ[types.Float64]):
		return m.fix("the number of a text is strconv.ParseFloat", m.replace(c.Fun, "strconv.ParseFloat"),
			m.after(c.Args[0], ", 64"))
	}
	return false
}

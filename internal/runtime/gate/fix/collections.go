package fix

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// These functions are added to a program that calls what other languages have for lists, maps and texts.
const (
	filtered = `func filtered[T any](list []T, keep func(T) bool) []T {
	out := []T{}
	for _, x := range list {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}`
	mapped = `func mapped[T, U any](list []T, to func(T) U) []U {
	out := make([]U, 0, len(list))
	for _, x := range list {
		out = append(out, to(x))
	}
	return out
}`
	reduced = `func reduced[T, U any](list []T, join func(U, T) U, first U) U {
	for _, x := range list {
		first = join(first, x)
	}
	return first
}`
	sumOf = `func sumOf[T int | int64 | float64](list []T) T {
	var sum T
	for _, x := range list {
		sum += x
	}
	return sum
}`
	unique = `func unique[T comparable](list []T) []T {
	out, seen := []T{}, map[T]bool{}
	for _, x := range list {
		if !seen[x] {
			out = append(out, x)
		}
		seen[x] = true
	}
	return out
}`
	every = `func every[T any](list []T, holds func(T) bool) bool {
	for _, x := range list {
		if !holds(x) {
			return false
		}
	}
	return true
}`
	valueOr = `func valueOr[K comparable, V any](m map[K]V, key K, other V) V {
	if v, ok := m[key]; ok {
		return v
	}
	return other
}`
	reversedText = `func reversedText(s string) string {
	list := []rune(s)
	slices.Reverse(list)
	return string(list)
}`
	paddedLeft = `func paddedLeft(s string, width int, with string) string {
	n, part := width-len([]rune(s)), []rune(with)
	if n <= 0 || len(part) == 0 {
		return s
	}
	return string([]rune(strings.Repeat(with, n/len(part)+1))[:n]) + s
}`
	paddedRight = `func paddedRight(s string, width int, with string) string {
	n, part := width-len([]rune(s)), []rune(with)
	if n <= 0 || len(part) == 0 {
		return s
	}
	return s + string([]rune(strings.Repeat(with, n/len(part)+1))[:n])
}`
	reversed = `func reversed[T any](list []T) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}`
)

// A collecting is a function that other languages have for lists or texts: the helper that does the same, or the
// function of Go, and the number of its arguments after the first.
type collecting struct {
	name, decl string
	arguments  int
}

// ofLists maps functions of invented or foreign packages, in lower case, to what does the same in Go.
var ofLists = map[string]collecting{
	"filter": {"filtered", filtered, 1}, "map": {"mapped", mapped, 1}, "reduce": {"reduced", reduced, 2},
	"sum": {"sumOf", sumOf, 0}, "unique": {"unique", unique, 0}, "uniq": {"unique", unique, 0},
	"distinct": {"unique", unique, 0}, "every": {"every", every, 1}, "allmatch": {"every", every, 1},
	"some": {"slices.ContainsFunc", "", 1}, "any": {"slices.ContainsFunc", "", 1},
	"anymatch": {"slices.ContainsFunc", "", 1}, "exists": {"slices.ContainsFunc", "", 1},
	"findindex": {"slices.IndexFunc", "", 1}, "indexof": {"slices.Index", "", 1},
	"includes": {"slices.Contains", "", 1},
	"has":      {"slices.Contains", "", 1}, "contains": {"slices.Contains", "", 1}, "reversed": {"reversed", reversed, 0},
	"index": {"slices.Index", "", 1}, "max": {"slices.Max", "", 0}, "min": {"slices.Min", "", 0},
}

// ofTexts is the same for texts.
var ofTexts = map[string]collecting{
	"reverse": {"reversedText", reversedText, 0}, "reversed": {"reversedText", reversedText, 0},
	"padstart": {"paddedLeft", paddedLeft, 2}, "padleft": {"paddedLeft", paddedLeft, 2},
	"leftpad": {"paddedLeft", paddedLeft, 2}, "rjust": {"paddedLeft", paddedLeft, 2},
	"padend": {"paddedRight", paddedRight, 2}, "padright": {"paddedRight", paddedRight, 2},
	"rightpad": {"paddedRight", paddedRight, 2}, "ljust": {"paddedRight", paddedRight, 2},
}

// listPackages are packages of lists that programs do not have, and those that lack the functions above.
var listPackages = []string{"slices", "lo", "funk", "list", "lists", "arrays", "array", "iter", "math", "sort", "maps"}

// plainName returns a name in lower case and without underscores.
func plainName(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// collected replaces a function of an invented package by what does the same.
func (m *fixer) collected(call *ast.CallExpr, pkg, name string) bool {
	if len(call.Args) == 0 || len(m.edits) > 0 {
		return false
	}
	switch to, ok := ofLists[plainName(name)]; {
	case pkg == "strings":
		return m.calledInstead(call, ofTexts[plainName(name)], call.Args)
	case ok && slices.Contains(listPackages, pkg):
		return m.calledInstead(call, to, call.Args)
	}
	return false
}

// calledInstead calls a helper, or a function of Go, with these arguments.
func (m *fixer) calledInstead(call *ast.CallExpr, to collecting, args []ast.Expr) bool {
	if to.name == "" || len(args) != to.arguments+1 || call.Ellipsis.IsValid() || !m.fitting(to, args) {
		return false
	}
	var edits []edit
	if to.decl != "" {
		ok := false
		if edits, ok = m.given(to.name, to.decl); !ok {
			return false
		}
	}
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = m.text(a)
	}
	return m.fix(clip(m.text(call.Fun))+" is "+to.name, append(edits,
		m.replace(call, to.name+"("+strings.Join(list, ", ")+")"))...)
}

// fitting reports whether function literals among the arguments have as many parameters as the function passes: some
// languages pass the place of an element, too.
func (m *fixer) fitting(to collecting, args []ast.Expr) bool {
	for _, a := range args {
		if f, ok := ast.Unparen(a).(*ast.FuncLit); ok {
			want := 1
			if to.name == "reduced" {
				want = 2
			}
			if f.Type.Params.NumFields() != want {
				return false
			}
		}
	}
	return true
}

// listMethod rewrites methods that lists have in other languages.
func (m *fixer) listMethod(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	name, x := plainName(s.Sel.Name), m.text(s.X)
	st, stands := m.parents[call].(*ast.ExprStmt)
	if len(m.edits) > 0 || !m.isPlain(s.X) && name != "each" && name != "map" && name != "filter" {
		return false
	}
	list, ok := m.Info.TypeOf(s.X).Underlying().(*types.Slice)
	switch {
	case !ok:
	case stands && name == "sort" && len(call.Args) == 0 && isKind(list.Elem(), types.IsOrdered):
		return m.fix("a list is sorted by slices.Sort", m.replace(st, "slices.Sort("+x+")"))
	case stands && name == "reverse" && len(call.Args) == 0:
		return m.fix("a list is reversed by slices.Reverse", m.replace(st, "slices.Reverse("+x+")"))
	case stands, name == "map", name == "has" && !types.Comparable(list.Elem()):
		if name != "map" {
			return false
		}
		return m.calledInstead(call, ofLists[name], append([]ast.Expr{s.X}, call.Args...))
	case name == "isempty" && len(call.Args) == 0:
		return m.fix("a list is empty if its length is 0", m.replace(call, "(len("+x+") == 0)"))
	case name == "each" && len(call.Args) == 0:
		return !m.countsPlaces(call, x) && m.fix("for goes over the list", m.replace(call, x))
	}
	return ok && m.calledInstead(call, ofLists[name], append([]ast.Expr{s.X}, call.Args...))
}

// charactersOf rewrites methods of texts that have no function in package strings.
func (m *fixer) charactersOf(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	if len(m.edits) > 0 || !isPlainString(m.Info.TypeOf(s.X)) {
		return false
	}
	name, x := plainName(s.Sel.Name), m.text(s.X)
	switch {
	case name == "zfill" && len(call.Args) == 1:
		edits, ok := m.given("paddedLeft", paddedLeft)
		return ok && m.fix("zfill is paddedLeft", append(edits,
			m.replace(call, "paddedLeft("+x+", "+m.text(call.Args[0])+", \"0\")"))...)
	case name == "charat" && len(call.Args) == 1:
		return m.fix("a character of a text", m.replace(call, "string([]rune("+x+")["+m.text(call.Args[0])+"])"))
	case name == "has" && len(call.Args) == 1:
		return m.fix("a text contains another", m.replace(call, "strings.Contains("+x+", "+m.text(call.Args[0])+")"))
	case name == "each" && len(call.Args) == 0:
		return m.fix("the characters of a text", m.replace(call, "strings.Split("+x+", \"\")"))
	case name == "isempty" && len(call.Args) == 0:
		return m.fix("a text is empty if it is \"\"", m.replace(call, "("+x+" == \"\")"))
	}
	return m.calledInstead(call, ofTexts[name], append([]ast.Expr{s.X}, call.Args...))
}

// countsPlaces reports whether the variable of a loop over a list is an index of this list: it may be meant as the
// place of an element.
func (m *fixer) countsPlaces(call *ast.CallExpr, list string) bool {
	r, ok := m.parents[call].(*ast.RangeStmt)
	if !ok || m.variable(r.Value) == nil {
		return false
	}
	for _, id := range m.usesOf(m.variable(r.Value)) {
		if ix, ok := m.parents[id].(*ast.IndexExpr); ok && ix.Index == ast.Expr(id) && m.text(ix.X) == list {
			return true
		}
	}
	return false
}

// lengthOfText rewrites s.length of a text: its bytes, where the function takes single ones, else its characters. Other
// places of bytes in the program may belong to the length, too.
func (m *fixer) lengthOfText(s *ast.SelectorExpr, call *ast.CallExpr) bool {
	if !isPlainString(m.Info.TypeOf(s.X)) || plainName(s.Sel.Name) != "length" || call != nil && len(call.Args) > 0 {
		return false
	}
	whole, indexed := ast.Node(s), false
	if call != nil {
		whole = call
	}
	ast.Inspect(m.enclosing(s), func(n ast.Node) bool {
		ix, ok := n.(*ast.IndexExpr)
		indexed = indexed || ok && m.text(ix.X) == m.text(s.X)
		return !indexed
	})
	to := "utf8.RuneCountInString"
	if indexed {
		to = "len"
	} else if m.placesOfBytes() {
		return false
	}
	return m.fix("the length of a text is "+to, m.replace(whole, to+"("+m.text(s.X)+")"))
}

// placesOfBytes reports whether the program counts the bytes of texts: it takes an element or a part of one, or looks
// for a place.
func (m *fixer) placesOfBytes() bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			found = found || isString(m.Info.TypeOf(n.X))
		case *ast.SliceExpr:
			found = found || isString(m.Info.TypeOf(n.X))
		case *ast.RangeStmt:
			found = found || n.Key != nil && !isName(n.Key, "_") && isString(m.Info.TypeOf(n.X))
		case *ast.CallExpr:
			found = found || isName(n.Fun, "len") && len(n.Args) == 1 && isString(m.Info.TypeOf(n.Args[0])) ||
				strings.Contains(strings.ToLower(m.text(n.Fun)), "index")
		}
		return !found
	})
	return found
}

// mapMethod rewrites methods that maps have in other languages.
func (m *fixer) mapMethod(call *ast.CallExpr, s *ast.SelectorExpr) bool {
	if len(m.edits) > 0 || !m.isPlain(s.X) {
		return false
	}
	name, x := plainName(s.Sel.Name), m.text(s.X)
	of := m.Info.TypeOf(s.X).Underlying().(*types.Map)
	args := make([]string, len(call.Args))
	for i, a := range call.Args {
		args[i] = m.text(a)
	}
	if st, stands := m.parents[call].(*ast.ExprStmt); stands {
		switch {
		case len(args) == 2 && (name == "set" || name == "put"):
			return m.fix("a key of a map is set", m.replace(st, x+"["+args[0]+"] = "+args[1]))
		case len(args) == 1 && name == "add" && isBasic(of.Elem(), types.Bool):
			return m.fix("a set is a map", m.replace(st, x+"["+args[0]+"] = true"))
		case len(args) == 1 && (name == "delete" || name == "remove"):
			return m.fix("a key of a map is deleted", m.replace(st, "delete("+x+", "+args[0]+")"))
		}
		return false
	}
	return m.mapValue(call, x, name, args)
}

// mapValue rewrites a method of a map whose value is used.
func (m *fixer) mapValue(call *ast.CallExpr, x, name string, args []string) bool {
	switch {
	case len(args) == 0 && name == "values" && m.orderFree(call):
		return m.fix("the values of a map", m.replace(call, "slices.Collect(maps.Values("+x+"))"))
	case len(args) == 1 && slices.Contains([]string{"has", "haskey", "containskey", "contains", "exists"}, name):
		edits, ok := m.given("hasKey", hasKey)
		return ok && m.fix("a key is there or not", append(edits, m.replace(call, "hasKey("+x+", "+args[0]+")"))...)
	case len(args) == 1 && name == "get":
		return m.fix("a member of a map is read by its key", m.replace(call, x+"["+args[0]+"]"))
	case len(args) == 2 && (name == "get" || name == "getordefault"):
		of := m.Info.TypeOf(call.Fun.(*ast.SelectorExpr).X).Underlying().(*types.Map)
		if isEmptyInterface(of.Elem()) {
			return false // the place decides its type
		}
		edits, ok := m.given("valueOr", valueOr)
		return ok && m.fix("a member of a map, or another value", append(edits,
			m.replace(call, "valueOr("+x+", "+strings.Join(args, ", ")+")"))...)
	}
	return false
}

// orderFree reports whether the function that takes the values of a map returns the same for any order of them.
func (m *fixer) orderFree(x *ast.CallExpr) bool {
	c, ok := m.parents[x].(*ast.CallExpr)
	if !ok || len(c.Args) != 1 {
		return false
	}
	switch m.text(c.Fun) {
	case "sum", "slices.Sum": // one of floats is rounded after each step
		return isWhole(m.Info.TypeOf(x.Fun.(*ast.SelectorExpr).X).Underlying().(*types.Map).Elem())
	case "max", "min", "len", "slices.Max", "slices.Min":
		return true
	}
	return false
}

// sorts reports whether the program sorts a list.
func (m *fixer) sorts(list string) bool {
	for _, call := range []string{"sort.Strings(%)", "sort.Ints(%)", "sort.Float64s(%)", "sort.Slice(%,", "slices.Sort(%)",
		"slices.SortFunc(%,"} {
		if strings.Contains(m.src, strings.Replace(call, "%", list, 1)) {
			return true
		}
	}
	return false
}

package gate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Forms of other languages, and Go half remembered, become Go where they have one meaning.
func TestFixForeignForms(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	run := func(body string) string { return program("", "", body) }
	order := "func (h queue) Len() int { return len(h) }\nfunc (h queue) Less(i, j int) bool { return h[i] < h[j] }\nfunc (h queue) Swap(i, j int) { h[i], h[j] = h[j], h[i] }\n"
	for _, c := range []struct{ name, source, want string }{
		{"an element that is taken out", run("l := call.Arg(0, \"l\").([]any)\nl = append(l[:1], l[2:])\nreturn l, nil"), "append(l[:1], l[2:]...)"},
		{"a heap of integers", program("container/heap", "type queue []int\n"+order+"func (h *queue) Push(x int) { *h = append(*h, x) }\nfunc (h *queue) Pop() int { o := *h; n := o[len(o)-1]; *h = o[:len(o)-1]; return n }",
			"h := queue{}\nheap.Init(h)\nheap.Push(h, 3)\na := heap.Pop(h)\nreturn a + 1, nil"), "return a + 1, nil"},
		// Conditional expressions.
		{"a choice that is returned", run("a, b := \"x\", \"y\"\nreturn a == b ? a + \"1\" : b[0:1], nil"), "if a == b {\n\t\treturn a + \"1\", nil\n\t}\n\treturn b[0:1], nil"},
		{"a choice that is set", run("n, place := 2, 0\nplace = n > 1 && n < 9 ? place : n + 1\nreturn place, nil"), "} else {\n\t\tplace = n + 1"},
		{"a choice of choices", run("n := 2\ns := n > 2 ? \"many\" : n > 1 ? \"two\" : \"one\"\nreturn s, nil"), "s := \"many\"\n\tif !(n > 2) {\n\t\tif n > 1 {"},
		{"a choice that hides a variable", run("limit := 5.0\nif limit > 1 {\nlimit := limit > 0 ? limit : 10\nreturn limit, nil\n}"), "limit := either(limit > 0, limit, 10)"},
		{"brackets in texts", run("l := [[\"a[0]\", \"b\"], [\"c\"]]\nreturn l, nil"), `[][]string{{"a[0]", "b"}, {"c"}}`},
		{"a condition behind a statement", run("m, v, ok := map[string]int{}, 0, false\nif v, ok = m[\"a\"]; ok = true { return v, nil }"), `v, ok = m["a"]; ok == true {`},
		{"a choice within an object", run("n := 2\nreturn map[string]any{\"n\": n == 1 ? \"item\" : \"items\", \"m\": n > 1 ? nil : n}, nil"), `"n": either(n == 1, "item", "items"), "m": either[any](n > 1, nil, n)`},
		{"a value for a missing one", run("return call.Arg(0, \"limit\") ?? 10, nil"), `recurgent.Or(call.Arg(0, "limit"), 10)`},

		// Membership.
		{"in a text, within a case", run("line := \"; a\"\nswitch {\ncase line == \"\" || line[0] in \";#\":\nreturn 1, nil\n}"), `strings.Contains(";#", string(rune(line[0])))`},
		{"in a list of texts", run("role := \"owner\"\nok := role in [\"owner\", \"admin\"] && role not in [\"guest\"]\nreturn ok, nil"), `!slices.Contains([]string{"guest"}, role)`},
		{"in a map", run("m, k := map[string]int{}, \"a\"\nif len(k) > 0 && k in m {\nreturn 1, nil\n}"), "hasKey(m, k)"},

		// Lists and objects without their types.
		{"an empty list", run("l := []\nif len(call.Args) > 0 {\nreturn [], nil\n}\nreturn l, nil"), "return []any{}, nil"},
		{"a list of texts", run("for _, w := range [\"a\", \"b\"] {\nreturn w, nil\n}"), `range []string{"a", "b"} {`},
		{"a list of lists", run("grid := [[1, 2], [3.5, 4]]\nreturn grid[1][0], nil"), "[][]float64{{1, 2}, {3.5, 4}}"},
		{"an object of objects", run("return map[string]any{\"a\": {\"b\": 1}, \"l\": {1, 2}}, nil"), `"a": map[string]any{"b": 1}, "l": []any{1, 2}`},
		{"a map without types", run("m := map{\"a\": 1}\nreturn m, nil"), `map[string]any{"a": 1}`},
		{"a list of another type", program("", "func names() []string { return []any{\"a\"} }", "return names(), nil"), `return []string{"a"}`},
		{"a list of any that is sorted", program("sort", "", "l := []any{}\nl = append(l, \"b\")\nsort.Strings(l)\nreturn l, nil"), "l := []string{}"},
		{"a list of JSON that is sorted and joined", program("sort strings", "", "l, ok := call.Arg(0, \"l\").([]any)\nif !ok { return nil, recurgent.Fail(\"invalid_input\", \"l\") }\nsort.Strings(l)\nreturn strings.Join(l, \",\"), nil"), "[]string{}).([]string)"},

		// Places counted from the end.
		{"the last element", run("l, s := []int{1, 2}, \"ab\"\nif s[-1] == 'b' { return l[-1], nil }"), "s[len(s)-1] == 'b'"},
		{"all but the last", run("l := []int{1, 2}\nreturn l[:-1], nil"), "l[:max(0, len(l)-1)]"},
		{"without the ends", run("s := \"[é]\"\nreturn s[1:-1] + s[-1:], nil"), "cutText(s, 1, -1) + cutText(s, -1, 0)"},
		{"backwards", run("s, l := \"ab\", []int{1}\nreturn []any{s[::-1], l[::-1]}, nil"), "reversedText(s), reversed(l)"},
		{"a step within a place", run("l, i := []int{1, 2}, 0\na := l[i++]\nl[i++] = 3\nreturn a + i, nil"), "a := l[i]\n\ti++\n\tl[i] = 3\n\ti++"},

		// Operators and conditions.
		{"a square", program("math", "", "a, b := 1.5, 2.5\nreturn math.Sqrt((a-1)^2 + 2*b^2), nil"), "math.Pow((a-1), 2) + 2*math.Pow(b, 2)"},
		{"a power of an int", run("x, n := 1.5, 3\nreturn x^n, nil"), "math.Pow(x, float64(n))"},
		{"three signs", run("n := 1\nif n === 1 || n !== 2 {\nreturn 1, nil\n}"), "n == 1 || n != 2"},
		{"a set for a comparison", run("n := 1\nif n = 1 {\nreturn 1, nil\n}"), "if n == 1 {"},
		{"cases that are conditions", run("n := 91.5\nswitch n {\ncase n >= 90: return \"A\", nil\ndefault: return \"B\", nil\n}"), "switch {"},
		{"cases of a function", program("strings", "", "s := \"ab\"\nswitch s {\ncase strings.HasPrefix(s, \"a\"), s == \"\": return 1, nil\n}"), "switch {"},
		{"a list as a constant", program("", "const days = []string{\"a\"}", "return days, nil"), "var days = []string"},
		{"a list among constants", program("", "const (\n\tlimit = 1\n\tdays = []string{\"a\"}\n)", "return days[:limit], nil"), "\n\nvar days = []string"},
		{"the least of an int and a float64", run("best := 9\nfor _, f := range []float64{1.5} { best = min(best, f) }\nreturn best, nil"), "best := 9.0"},
		{"the least of rounded numbers", program("math", "", "low := math.MaxInt\nfor _, f := range []float64{1.5} { i := math.Floor(f)\nlow = min(low, i) }\nreturn low, nil"), "min(low, recurgent.As(i, 0).(int))"},

		// Generic types, methods and results.
		{"a type parameter alone", program("", "type stack[T] struct { items []T }\nfunc (s *stack) push(x T) { s.items = append(s.items, x) }\nfunc (s *stack) pop() (T, bool) { if len(s.items) == 0 { return nil, false }; return s.items[0], true }", "s := &stack[int]{}\ns.push(1)\nv, _ := s.pop()\nreturn v, nil"), "return *new(T), false"},
		{"type parameters alone", program("", "type pair[K, V] struct { key K; value V; m map[K]V }\nfunc first[T](l []T) T { return l[0] }", "p := pair[string, int]{key: \"a\"}\nreturn first([]string{p.key}), nil"), "pair[K comparable, V any]"},
		{"what a type parameter can", program("", "func most[T any](a, b T) T { if a > b { return a }; return b }\nfunc same[T any](a, b T) bool { return a == b }\nfunc half[T any](a, b T) T { return a - b }", "return []any{most(1, 2), same(\"a\", \"b\"), half(2, 1)}, nil"), "half[T ~int | ~int64 | ~float64]"},
		{"a key of any type", program("", "func count[K any](l []K) map[K]int { m := map[K]int{}; for _, k := range l { m[k]++ }; return m }", "return count([]string{\"a\"}), nil"), "count[K comparable]"},
		{"a heap of its own type", program("container/heap", "type queue []int\n"+order+"func (h *queue) Push(n int) { *h = append(*h, n) }\nfunc (h *queue) Pop() int { old := *h; n := old[len(old)-1]; *h = old[:len(old)-1]; return n }", "h := &queue{}\nheap.Push(h, 3)\nn := heap.Pop(h) + 1\nreturn n, nil"), "n := heap.Pop(h).(int) + 1"},
		{"a heap by its value", program("container/heap", "type queue []int\n"+order+"func (h *queue) Push(n any) { *h = append(*h, n.(int)) }\nfunc (h *queue) Pop() any { old := *h; n := old[len(old)-1]; *h = old[:len(old)-1]; return n }", "h := queue{}\nheap.Push(h, 3)\nreturn heap.Pop(h), nil"), "heap.Push(&h, 3)"},
		{"a builder by its value", program("fmt strings", "", "b := strings.Builder\nfmt.Fprintf(b, \"%d\", 1)\nreturn b.String(), nil"), "fmt.Fprintf(&b,"},
		{"a zone by its value", program("time", "func zone(s string) (time.Location, error) { if s == \"\" { return nil, recurgent.Fail(\"invalid_input\", s) }; return time.FixedZone(s, 60), nil }", "z, err := zone(\"a\")\nif err != nil { return nil, err }\nreturn time.Unix(0, 0).In(z).Minute(), nil"), "(*time.Location, error)"},
		{"a pattern by its value", program("regexp", "type rule struct { re regexp.Regexp }", "r := rule{regexp.MustCompile(\"a\")}\nreturn r.re.MatchString(\"a\"), nil"), "re *regexp.Regexp"},
		{"a result that is left out", program("", "func twice(n int) { return n * 2 }\nfunc part(f float64) { if f < 0 { return 0 }; return f / 2 }", "less := func(a, b int) { return a < b }\nreturn []any{twice(2), part(3), less(1, 2)}, nil"), "part(f float64) float64"},
		{"an error alone", program("", "func check(s string) error { if s == \"\" { return nil, recurgent.Fail(\"invalid_input\", s) }; return nil }", "return 1, check(\"a\")"), "return recurgent.Fail("},
		{"nothing beside false", program("", "func find(s string) (float64, bool) { if s == \"\" { return nil, false }; return 1, true }", "v, ok := find(\"a\")\nreturn []any{v, ok}, nil"), "return 0, false"},
		{"an order as a number", program("sort strings", "", "l := []string{\"b\"}\nsort.Slice(l, func(i, j int) int { return strings.Compare(l[i], l[j]) })\nreturn l, nil"), "bool { return strings.Compare(l[i], l[j]) < 0 }"},
		{"an order in three numbers", program("sort", "", "l := []float64{2}\nsort.SliceStable(l, func(i, j int) int { if l[i] < l[j] { return -1 }; if l[i] == l[j] { return 0 }; return 1 })\nreturn l, nil"), "return true"},
		{"no order", program("sort", "", "l := []string{\"b\"}\nsort.Slice(l)\nreturn l, nil"), "slices.Sort(l)"},
		{"fields with tags, all in small letters", program("", "type row struct { name string `json:\"Name\"`; a, b int }", "r := row{name: \"a\"}\nr.b = 2\nreturn r, nil"), "A    int    `json:\"a\"`"},
		{"filled fields in small letters", run("var in struct { values []float64 `json:\"numbers\"` }\nif err := call.Bind(&in); err != nil { return nil, err }\nreturn len(in.values), nil"), "Values []float64 `json:\"numbers\"`"},
		{"filled fields within a list", program("", "type point struct { x, y float64 }", "var in struct { Points []point }\nif err := call.Bind(&in); err != nil { return nil, err }\nreturn in.Points[0].y, nil"), "Y float64 `json:\"y\"`"},

		// Errors in an expression.
		{"a loop over a call", program("encoding/csv strings", "", "r := csv.NewReader(strings.NewReader(\"a\"))\nn := 0\nfor _, row := range r.ReadAll() { n += len(row) }\nreturn n, nil"), "range value {"},
		{"a condition of a call", program("strconv", "", "s := \"3\"\nif strconv.Atoi(s) > 2 && len(s) > 0 { return 1, nil }"), "if value > 2 && len(s) > 0 {"},
		{"a declaration of a call", program("strconv", "", "var n int = strconv.Atoi(\"3\")\nreturn n, nil"), "var n int = value"},
		{"a pattern in a variable", program("regexp", "", "p := \"a+\"\nif regexp.MatchString(p, \"a\") { return 1, nil }"), "value, err := regexp.MatchString(p, \"a\")"},

		// Names.
		{"a member of an element", run("for _, o := range call.Arg(0, \"l\").([]any) { if o.age == null { return o.name, nil } }"), `recurgent.Must(o, map[string]any{}).(map[string]any)["age"] == nil`},
		{"the memory by a method", run("m := call.GetContext()\nm[\"a\"] = 1.0\ncall.SetContext(m)\nreturn call.Context(\"a\"), nil"), "call.Context = m"},
		{"the memory by a call", run("m := call.Context()\nm[\"a\"] = 1.0\nreturn m, nil"), "m := call.Context"},
		{"a duration before a time", program("time", "", "t, d := time.Unix(0, 0), time.Hour\nreturn t.Sub(d).Unix() + t.Subtract(d).AddDays(2).Unix(), nil"), "t.Add(-(d)).Unix() + t.Add(-(d)).AddDate(0, 0, 2).Unix()"},
		{"names of time", program("time", "", "t, err := time.Parse(time.ISO8601, \"2024-01-01T00:00:00Z\")\nif err != nil { return nil, err }\nif t.IsAfter(time.Unix(0, 0)) && t.Weekday() == \"Monday\" { return t.Add(2 * time.Day).Unix(), nil }"), "t.Weekday().String() == \"Monday\""},
		{"days of a duration", program("time", "", "d := 48 * time.Hour\nreturn d.Days(), nil"), "recurgent.As(d.Hours()/24, 0).(int)"},
		{"names of packages in small letters", run("return strings.toUpper(\"a\"), nil"), "strings.ToUpper"},
		{"functions of lists", program("", "", "l := []int{2}\nif contains(l, 2) && contains(\"ab\", \"a\") { return sorted(l), nil }"), "slices.Sorted(slices.Values(l))"},
		{"a function for texts of a list", program("strings", "", "l, m := []string{\"a\"}, map[string]bool{}\nreturn strings.Contains(l, \"a\") || strings.Contains(m, \"a\"), nil"), `slices.Contains(l, "a") || hasKey(m, "a")`},
		{"joined numbers", program("strings", "", "return strings.Join([]int{1}, \",\"), nil"), "strings.Join(textsOf([]int{1}), \",\")"},
		{"numbers of texts", run("s := \"12\"\nn := int(s)\nreturn float64(n) + float64(s), nil"), "strconv.ParseFloat(s, 64)"},
		{"a number printed as a text", program("fmt", "", "n := len(call.Args)\nreturn fmt.Sprintf(\"%s items\", n), nil"), "strconv.Itoa(n)"},
		{"values in a text", run("x, name := 1.5, \"a\"\nreturn f\"{name}: {x:.2f} %\", nil"), `fmt.Sprintf("%s: %.2f %%", name, x)`},
		{"the number of bits", program("strconv", "", "return strconv.FormatFloat(1.5, 'f', 1) + strconv.FormatFloat(2.5), nil"), "strconv.FormatFloat(1.5, 'f', 1, 64) + strconv.FormatFloat(2.5, 'f', -1, 64)"},
		{"keys and members of JSON", run("for key, v := range call.Arg(0, \"m\") { return map[string]any{key: v}, nil }"), "range recurgent.Must(call.Arg(0, \"m\"), map[string]any{}).(map[string]any)"},

		// Declarations.
		{"a variable that is not declared", run("total = 0\nfor i := range 3 { total += i }\nreturn total, nil"), "total := 0"},
		{"an ok that is not declared", run("m := map[string]int{}\nif _, ok = m[\"a\"]; ok { return 1, nil }"), "_, ok := m[\"a\"]"},
		{"a value and an error that are not declared", program("strconv", "", "n, err = strconv.Atoi(\"3\")\nif err != nil { return nil, err }\nreturn n, nil"), "n, err := strconv.Atoi"},
		{"a variable of each branch", run("if len(call.Args) > 1 { x := \"a\" } else if len(call.Args) > 0 { return nil, nil } else { x := \"b\" }\nreturn x, nil"), "var x string\n\tif"},
		{"types of other languages", run("var s String = \"a\"\nvar f double = 1\nreturn []any{s, f}, nil"), "var f float64 = 1"},
		{"a set", run("s := map[string]bool{\"a\", \"b\"}\nt := map[rune]struct{}{'a'}\nreturn len(s) + len(t), nil"), "map[rune]struct{}{'a': {}}"},
		{"a struct that a map lacks", program("", "type row struct { N int }", "m := map[string]row{}\nr := m[\"a\"]\nif r == nil { return 0, nil }\nreturn r.N, nil"), "r, there := m[\"a\"]"},
		{"the values of a map", run("m := map[string]int{\"a\": 1}\nreturn sum(m.values()) + max(m.values()), nil"), "slices.Max(slices.Collect(maps.Values(m)))"},
		{"errors by their names", run("if len(call.Args) > 0 { return nil, recurgent.ErrNotFound }\nreturn nil, &recurgent.InvalidInputError{Message: \"n\"}"), "recurgent.Fail(\"invalid_input\", \"n\")"},
		{"results in parentheses", run("return (map[string]any{\"a\": 1}, nil)"), "return map[string]any{\"a\": 1}, nil"},
		{"white space at an end", program("strings", "", "return strings.TrimRight(\"a \") + strings.TrimLeft(\" a\"), nil"), "strings.TrimRightFunc(\"a \", unicode.IsSpace)"},
		{"times in texts", program("time", "", "t := time.Unix(0, 0)\nreturn t.strftime(\"%d.%m.%Y\") + t.toISOString(), nil"), "t.Format(\"02.01.2006\") + t.UTC().Format(\"2006-01-02T15:04:05.000Z\")"},

		// Packages.
		{"wrapped errors", program("github.com/pkg/errors strconv", "func read(s string) (int, error) { n, err := strconv.Atoi(s); return n, errors.Wrapf(err, \"bad %s\", s) }", "n, err := read(\"1\")\nreturn n, errors.WithMessage(err, \"no\")"), "wrapped(err, fmt.Sprintf(\"bad %s\", s))"},
		{"a context of the program's own", program("context", "", "ctx := context.Background()\nr, err := call.Fetch(ctx, \"https://a.example\")\nif err != nil { return nil, err }\nreturn r.Body, nil"), `call.Fetch("https://a.example")`},
	} {
		fixed := g.Fix(c.source, report.Terms{})
		if r := refusalOf(g, fixed); r != "" {
			t.Errorf("%s: refused: %s\n%s", c.name, r, fixed.Text)
		}
		if !strings.Contains(fixed.Text, c.want) {
			t.Errorf("%s: no %q in\n%s", c.name, c.want, fixed.Text)
		}
	}
}

// refusalOf returns why a corrected program is refused, or "".
func refusalOf(g *Gate, fixed report.Fixed) string {
	_, r := g.Check(fixed.Text)
	if r != nil {
		return strings.Join(r.Errors, "\n") + r.Hint
	}
	if len(fixed.Faults) > 0 {
		return fmt.Sprint(fixed.Faults)
	}
	return ""
}

// A program that compiles stays as it is, however much it looks like another form.
func TestFixLeavesForms(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	run := func(body string) string { return program("", "", body) }
	for _, c := range []struct{ name, source string }{
		{"bits", run(`a, b := len(call.Args), 3; return a^2 + b ^ 1, nil`)},
		{"a place in a variable", run(`l, i := []int{1, 2}, len(call.Args)-1; if i < 0 { return nil, nil }; return l[i], nil`)},
		{"an array", run(`const n = 2; type pair [n]struct{ x int }; var p pair; return len(p), nil`)},
		{"a constant length", program("", "const n = 2\ntype pair[T any] [n]T", `var p pair[int]; return p[0], nil`)},
		{"a constraint", program("", "func same[T comparable](a, b T) bool { return a == b }\nfunc first[T any](l []T) T { return l[0] }", `return []any{same(1, 2), first([]int{1})}, nil`)},
		{"a zone by its value", program("time", "var zone time.Location", `return time.Unix(0, 0).In(&zone).Hour(), nil`)},
		{"a switch of bools", run(`ok := len(call.Args) > 0; switch ok { case len(call.Kwargs) > 0: return 1, nil; case false: return 2, nil }`)},
		{"a question in a text", run("s := \"a ? b : c\"\nif s == `x in y` { return `[1, 2]`, nil }\nreturn \"f{s}\" + s, nil")},
		{"a list of any", run(`l := []any{}; l = append(l, "a", 1.5); return l, nil`)},
		{"the time between", program("time", "", `t := time.Unix(0, 0); return t.Sub(time.Unix(60, 0)).Minutes(), nil`)},
		{"the value of the memory", run(`m := call.Context; m["a"] = 1.0; call.Context = m; return m["a"], nil`)},
		{"fields of its own", program("", "type point struct { x, y float64 }\ntype row struct { Name string; point point }",
			`var in struct{ Points [][]float64 }; if err := call.Bind(&in); err != nil { return nil, err }; r := row{Name: "a"}; for _, p := range in.Points { r.point.x += p[0] }; return r.point.x + r.point.y, nil`)},
		{"fields that a literal sets", program("", "type point struct { x, y float64 }", `in := struct{ P point; N float64 }{P: point{1, 2}}; if err := call.Bind(&in); err != nil { return nil, err }; return in.P.x, nil`)},
		{"a tag beside an exported field", program("", "type row struct { Name string `json:\"name\"`; seen int `json:\"-\"` }", `r := row{Name: "a"}; r.seen++; return r, nil`)},
		{"a heap of any", program("container/heap", "type queue []any\nfunc (h queue) Len() int { return len(h) }\nfunc (h queue) Less(i, j int) bool { return h[i].(int) < h[j].(int) }\nfunc (h queue) Swap(i, j int) { h[i], h[j] = h[j], h[i] }\nfunc (h *queue) Push(n any) { *h = append(*h, n) }\nfunc (h *queue) Pop() any { old := *h; n := old[len(old)-1]; *h = old[:len(old)-1]; return n }",
			`h := &queue{}; heap.Push(h, 3); return heap.Pop(h).(int), nil`)},
		{"a stack by Push", program("", "type stack []int\nfunc (s *stack) Push(n int) { *s = append(*s, n) }\nfunc (s *stack) Pop() int { old := *s; n := old[len(old)-1]; *s = old[:len(old)-1]; return n }", `s := &stack{}; s.Push(1); return s.Pop(), nil`)},
		{"an order", program("sort", "", `l := []int{2, 1}; sort.Slice(l, func(i, j int) bool { return l[i]-l[j] < 0 }); return l, nil`)},
		{"a function without a result", run(`n := 0; add := func(by int) { n += by }; add(2); return n, nil`)},
		{"a name of its own", program("", "func contains(l []int, n int) bool { return len(l) > n }\nfunc sorted(l []int) []int { return l }\nfunc either(a, b int) int { return a + b }", `return []any{contains(nil, 1), sorted([]int{2, 1}), either(1, 2)}, nil`)},
	} {
		if _, r := g.Check(c.source); r != nil {
			t.Errorf("%s: %v", c.name, r)
		}
		for _, returns := range []string{"", "array", "object"} {
			if fixed := g.Fix(c.source, report.Terms{Returns: returns}); fixed.Text != c.source || len(fixed.Faults) > 0 {
				t.Errorf("%s: corrected: %v, refused: %v\n%s", c.name, fixed.Fixes, fixed.Faults, fixed.Text)
			}
		}
	}
}

// A form that may mean two things is refused.
func TestFixRefusesForms(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	run := func(body string) string { return program("", "", body) }
	for _, c := range []struct{ name, source string }{
		{"a power of a power", run("x := 2.0\nreturn x^2^3, nil")},
		{"operands that may fail", run("l := []int{1}\nreturn map[string]any{\"a\": len(l) > 1 ? l[1] : l[0] / len(call.Args)}, nil")},
		{"one of two that may fail", run("l := []int{1}\nx := len(l) > 1 ? l[1] : l[0]\nreturn x, nil")},
		{"a sum in a text", run("a, b := \"a\", \"b\"\nok := a + b in \"abc\"\nreturn ok, nil")},
		{"a last byte", run("s := \"é\"\nlast := s[-1]\nreturn string(last), nil")},
		{"from a place to the last but one", run("s, i := \"a=b\", 1\nreturn s[i:-1], nil")},
		{"months", program("time", "", "t := time.Unix(0, 0)\nreturn t.AddMonths(1).Unix(), nil")},
		{"whole minutes, or all", program("time", "", "d := time.Hour\nreturn d.ToMinutes(), nil")},
		{"a weekday in small letters", program("time", "", "t := time.Unix(0, 0)\nreturn t.Weekday() == \"sat\", nil")},
		{"a member in capital letters", run("for _, o := range call.Arg(0, \"l\").([]any) { return o.Name, nil }")},
		{"elements that are asked", program("sort", "", "l := call.Arg(0, \"l\").([]any)\nfor _, x := range l { if _, ok := x.(string); !ok { return nil, nil } }\nsort.Strings(l)\nreturn l, nil")},
		{"a step and its variable", run("l, i := []int{1, 2}, 0\nl[i++] = i\nreturn l, nil")},
		{"conditions and values", run("n := 1.5\nswitch n {\ncase n > 1: return 1, nil\ncase 2: return 2, nil\n}")},
		{"results of two kinds", program("", "func f(n int) { if n > 1 { return \"a\" }; return n }", "return f(1), nil")},
		{"a memory of another type", run("m := map[string]int{}\ncall.SetContext(m)\nreturn m, nil")},
		{"a text among numbers", run("l := []string{}\nfor i := range 3 { l = append(l, i) }\nreturn l, nil")},
		{"an address that is kept", program("", "type shape interface { grow() }\ntype square struct { n int }\nfunc (s *square) grow() { s.n++ }\nvar kept shape\nfunc keep(s shape) { kept = s }", "s := square{1}\nkeep(s)\ns.n = 5\nkept.grow()\nreturn s.n, nil")},
		{"constants that go on", program("", "const (\n\ta = iota\n\tl = []int{1}\n)", "return a, nil")},
		{"a misspelled variable", run("total := 0\nfor i := range 3 { totl = total + i }\nreturn total, nil")},
		{"a character that is a member", run("out := map[string]any{}\nfor i, c := range \"aab\" { if c not in \"b\" { out[fmt.Sprint(i)] = c } }\nreturn out, nil")},
		{"a variable of the turn before", run("n := 0\nfor _, c := range \"aab\" { if c == before { n++ }; before = c }\nreturn n, nil")},
		{"the text of a number, or its character", run("n := 65\nreturn String(n), nil")},
		{"places in a text by their numbers", program("strings", "", `return strings.Format("{0}", 3), nil`)},
		{"a quotient that may fail", run("a := 0\nx := 1 + (a > 0 ? 10 / a : 0)\nreturn x, nil")},
		{"numbers among texts", program("strings", "", `l := []float64{1, 2.5}; return strings.Join(l, ","), nil`)},
		{"an integer beside a fraction", run("n, f := 7, 3.5\nx := min(n, f)\nreturn []any{n / 2, x}, nil")},
		{"a variable of one branch", run("if len(call.Args) > 1 { x := 1 }\nreturn x, nil")},
		{"a variable of the last turn", run("for i := range 3 { last = i }\nreturn last, nil")},
		{"branches of two types", run("if len(call.Args) > 1 { x := 1 } else { x := \"a\" }\nreturn x, nil")},
		{"a sum behind ??", run("m := call.Arg(0, \"limit\") ?? 10 * 2\nreturn m, nil")},
		{"a sum before ??", run("name := \"a\"\nreturn \"x\" + name ?? \"b\", nil")},
		{"a list of one, or a text", run("s := \"adm\"\nreturn s in (\"admin\"), nil")},
		{"a list with a fraction", run("x := 2.5\nl := [-x, 1]\nreturn l, nil")},
		{"an assignment in a condition", run("check := func() bool { return true }\nfound := false\nif found = check() { return 1, nil }\nreturn found, nil")},
		{"the code of a digit", program("strings", "", "sum := 0\nfor _, c := range strings.Split(\"42\", \"\") { sum += int(c) - '0' }\nreturn sum, nil")},
		{"a digit or its code", program("strings", "", "sum := 0\nfor _, c := range strings.Split(\"42\", \"\") { sum += int(c) }\nreturn sum, nil")},
		{"1 and 0 for true and false", program("sort", "", "l := []int{2, 1}\nsort.Slice(l, func(i, j int) int { if l[i] < l[j] { return 1 }; return 0 })\nreturn l, nil")},
		{"1 and 0 as a comparison", program("sort", "", "l := []int{2, 1}\nsort.Slice(l, func(i, j int) bool { if l[i] < l[j] { return 1 }; return 0 })\nreturn l, nil")},
		{"the text of a fraction", run("x := 1500000.0\nreturn f\"{x} items\", nil")},
		{"a copy of a builder", program("fmt strings", "func add(b strings.Builder, n int) { fmt.Fprintf(b, \"%d\", n) }", "var b strings.Builder\nadd(b, 1)\nreturn b.String(), nil")},
		{"a slip in a name that is read", run("longest, best := 0, \"\"\nfor _, w := range []string{\"a\"} { if len(w) > longest { longst = len(w); best = w[:longst] } }\nreturn []any{best, longest}, nil")},
		{"months or days", program("time", "", "return time.Unix(0, 0).AddDate(0, 30).Unix(), nil")},
		{"a line or a part of one", program("strings", "", "lines := strings.Split(\"an ERROR\", \"\\n\")\nreturn strings.Contains(lines, \"ERROR\"), nil")},
		{"a key or a value", program("slices", "", "m := map[string]string{\"a\": \"b\"}\nreturn slices.Contains(m, \"b\"), nil")},
		{"no time, or that of the call", program("time", "", "now := time.Time\nreturn now.Year(), nil")},
		{"userName or user_name", program("", "type user struct { userName string }", "var u user\nif err := call.Bind(&u); err != nil { return nil, err }\nreturn u.userName, nil")},
		{"a sum of fractions in any order", run("m := map[string]float64{\"a\": 0.1}\nreturn sum(m.values()), nil")},
		{"a map without values", run("m := map[string]int{\"a\", \"b\"}\nreturn m, nil")},
		{"the order of values", run("m := map[string]float64{\"a\": 1}\nreturn m.values(), nil")},
		{"a context that ends", program("context time", "", "ctx, cancel := context.WithTimeout(context.Background(), time.Second)\ndefer cancel()\nr, err := call.Fetch(ctx, \"https://a.example\")\nif err != nil { return nil, err }\nreturn r.Body, nil")},
	} {
		if fixed := g.Fix(c.source, report.Terms{}); refusalOf(g, fixed) == "" {
			t.Errorf("%s: runs:\n%s", c.name, fixed.Text)
		}
	}
}

// A member in capital letters is the key that the purpose lists.
func TestFixMembersOfPurpose(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	source := program("", "", "for _, o := range call.Arg(0, \"l\").([]any) { return []any{o.UnitPrice, o.Name}, nil }")
	fixed := g.Fix(source, report.Terms{Keys: []string{"name", "unit_price"}})
	if r := refusalOf(g, fixed); r != "" || !strings.Contains(fixed.Text, `["unit_price"]`) {
		t.Errorf("%s\n%s", r, fixed.Text)
	}
	if fixed := g.Fix(source, report.Terms{Keys: []string{"name"}}); refusalOf(g, fixed) == "" {
		t.Errorf("runs:\n%s", fixed.Text)
	}
}

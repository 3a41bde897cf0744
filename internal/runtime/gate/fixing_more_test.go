package gate

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A fault that other languages and half-remembered packages lead to is repaired if it has only one meaning.
func TestFixHabits(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	run := func(body string) string { return program("", "", body) }
	for _, c := range []struct{ name, source, want string }{
		// Orders.
		{"less for an order", program("slices", "", `l := []string{"b", "a"}; slices.SortFunc(l, func(a, b string) bool { return a < b }); return l, nil`),
			"slices.SortFunc(l, byLess(func(a, b string) bool { return a < b }))"},
		{"elements for places", program("sort", "", `l := [][]int{{1}}; sort.Slice(l, func(a, b []int) bool { return a[0] < b[0] }); return l, nil`),
			"slices.SortFunc(l, byLess(func(a, b []int) bool"},
		{"places for elements", program("slices", "", `l := []float64{1}; slices.SortFunc(l, func(i, j int) bool { return l[i] < l[j] }); return l, nil`),
			"sort.Slice(l, func(i, j int) bool"},
		{"the least by less", program("slices", "", `return slices.MaxFunc([]int{1}, func(a, b int) bool { return a < b }), nil`), "byLess("},
		{"a difference of float64", program("slices", "", `l := []float64{1}; slices.SortFunc(l, func(a, b float64) int { return b - a }); return l, nil`),
			"return cmp.Compare(b, a)"},
		{"a sort with an order", program("sort", "", `l := []int{1}; sort.Ints(l, func(i, j int) bool { return l[i] > l[j] }); return l, nil`), "sort.Slice(l, func"},
		{"Less by Compare", program("sort strings", "type names []string\nfunc (n names) Len() int { return len(n) }\nfunc (n names) Swap(i, j int) { n[i], n[j] = n[j], n[i] }\nfunc (n names) Less(i, j int) bool { return strings.Compare(n[i], n[j]) }",
			`l := names{"b"}; sort.Sort(l); return []string(l), nil`), "strings.Compare(n[i], n[j]) < 0"},
		{"characters sorted", program("sort", "", `r := []rune("ba"); sort.Sort(r); return string(r), nil`), "slices.Sort(r)"},
		{"in reverse", program("sort", "", `l := []int{1}; sort.Sort(sort.Reverse(l)); return l, nil`), "sort.Reverse(sort.IntSlice(l))"},
		{"the greatest of a list", program("slices math", "", `l := []float64{1}; return slices.Max(l...) + math.Max(l...) + max(l), nil`), "slices.Max(l) + slices.Max(l) + slices.Max(l)"},

		// Functions of other languages.
		{"filter and map", program("slices strings", "", `l := slices.Filter(strings.Fields("a b"), func(s string) bool { return s > "a" }); return slices.Map(l, func(s string) int { return len(s) }), nil`), "mapped(l, func"},
		{"a package of lists", run(`return lo.Sum([]float64{1, 2}), nil`), "return sumOf([]float64{1, 2}), nil"},
		{"methods of lists", run(`l := []string{"b", "a"}; l.sort(); l.reverse(); if l.includes("a") { return l.indexOf("b"), nil }`), "slices.Contains(l, \"a\")"},
		{"methods of maps", run(`m := map[string]int{}; for _, w := range []string{"a"} { m[w] = m.get(w, 0) + 1 }; if m.has("a") { return m, nil }`), `valueOr(m, w, 0) + 1`},
		{"a reversed text", program("strings", "", `return strings.Reverse("ab"), nil`), `reversedText("ab")`},
		{"padding", run(`s := "1"; return s.padStart(3, "0") + s.zfill(2), nil`), `paddedLeft(s, 3, "0") + paddedLeft(s, 2, "0")`},
		{"for in, not in", run("seen := map[string]bool{}\nfor w in strings.Fields(\"a a\") {\nif w not in seen {\nseen[w] = true\n}\n}\nreturn len(seen), nil"), "!hasKey(seen, w)"},
		{"enumerate", run("n := 0\nl := []int{1}\nfor i, x in enumerate(l) {\nn += i * x\n}\nreturn n, nil"), "for i, x := range l"},
		{"divmod", run(`h, m := divmod(90, 60); return []int{h, m}, nil`), "func divmod(a, b int) (int, int)"},
		{"a set", run(`seen := set(); seen.add("a"); return seen.has("a"), nil`), `seen["a"] = true`},
		{"a power", run(`x := 2.5; return 3 * x**2, nil`), "3 * math.Pow(x, 2)"},
		{"the text of an int", run(`n := len(call.Args); return n + " items", nil`), `strconv.Itoa(n) + " items"`},
		{"the text of a length", run(`n := 1; d := n % 10; return string(d) + string(len(call.Args)) + string(n%10), nil`), "strconv.Itoa(d) + strconv.Itoa(len(call.Args)) + strconv.Itoa(n%10)"},

		// nil, pointers and empty values.
		{"nil at first", run(`best := nil; for _, w := range []string{"a"} { if best == nil || len(w) > len(best) { best = w } }; return best, nil`), "var best any"},
		{"nil for a missing key", run(`m := map[string]int{}; if m["a"] == nil { m["a"] = 1 }; return m, nil`), `!hasKey(m, "a")`},
		{"nil for a failure", program("time", "", `t := time.Parse("2006-01-02", "x"); if t == nil { return nil, recurgent.Fail("invalid_input", "t") }; return t.Year(), nil`), "t, err := time.Parse(\"2006-01-02\", \"x\")\n\tif err != nil {"},
		{"nil for no number", program("strconv", "", `if n := strconv.Atoi("1"); n != nil { return n, nil }`), `if n, err := strconv.Atoi("1"); err == nil {`},
		{"a pointer to the best", run(`var best *string; for _, w := range []string{"a"} { if best == nil || len(w) > len(best) { best = w } }; return best, nil`), "best = &w"},
		{"an element by its address", program("", "type point struct{ X float64 }\nfunc x(p *point) float64 { return p.X }", `l := []point{{1}}; return x(l[0]), nil`), "x(&l[0])"},
		{"a list behind a pointer", program("", "type stack []int\nfunc (s *stack) push(n int) { s = append(s, n) }\nfunc (s *stack) size() int { return len(s) }", `s := stack{}; s.push(1); return s.size(), nil`), "*s = append((*s), n)"},
		{"braces of an empty value", run(`m := map[string]struct{}; l := make([]string); m["a"] = struct{}{}; return []int{len(m), len(l)}, nil`), "m := map[string]struct{}{}"},
		{"one value for two", run(`a, b := false; return []bool{a, b}, nil`), "a, b := false, false"},
		{"members of one type", run(`m := map[string]any{}; m["a"] = []string{}; m["a"] = append(m["a"], "x"); return m, nil`), "m := map[string][]string{}"},

		// Characters.
		{"a shifted character", program("strings", "", `n := 3; var b strings.Builder; for _, c := range "abc" { b.WriteRune('a' + (c-'a'+n)%26) }; return b.String(), nil`), "b.WriteRune(rune('a' + (int(c-'a')+n)%26))"},
		{"a character left out", program("strings", "", `return strings.Map(func(r rune) rune { if r == '.' { return "" }; return r }, "a.b"), nil`), "return -1"},

		{"a byte for a character", program("unicode", "", `s := "aB"; n := 0; for i := 0; i < len(s); i++ { if unicode.IsUpper(s[i]) { n++ } }; return n, nil`), "unicode.IsUpper(asciiOf(s[i]))"},
		{"a bool for a number", run(`a := len(call.Args) > 0; b := !a; return int(a) + int(b), nil`), "oneOrZero(a) + oneOrZero(b)"},

		{"a digit from a text", run(`n := 0; for _, c := range "12" { n += int(c - "0") + int(string(c) - "0") }; return n, nil`), "int(c-'0') + int(c-'0')"},
		{"the number of a character", program("strconv", "", `n := 0; s := "12"; for i := 0; i < len(s); i++ { d, err := strconv.Atoi(s[i]); if err != nil { return nil, err }; n += d }; return n, nil`), "strconv.Atoi(string(rune(s[i])))"},

		// Functions.
		{"a method that is printed", program("fmt time", "", `t := time.Unix(0, 0).UTC(); return fmt.Sprintf("%02d", t.Hour) + fmt.Sprint(t.Year), nil`), `t.Hour()) + fmt.Sprint(t.Year())`},
		{"a method that is stored", program("time", "", `t := time.Unix(0, 0).UTC(); return map[string]any{"hour": t.Hour, "days": []any{t.Day}}, nil`), `"hour": t.Hour(), "days": []any{t.Day()}`},
		{"a method that is added", program("time", "", `h := time.Hour.Hours; n := 1.0; n += h; return n * h, nil`), "n += h()\n\treturn n * h(), nil"},
		{"a method that is a condition", program("time", "", `t := time.Time{}; if t.IsZero { return 1, nil }`), "if t.IsZero() {"},
		{"a method that is compared", program("time", "", `h := time.Unix(0, 0).UTC().Hour; if h >= 12 || 9 > h { return 1, nil }`), "h() >= 12 || 9 > h()"},
		{"a method for an argument", program("strconv time", "", `return strconv.Itoa(time.Unix(0, 0).UTC().Hour), nil`), ".Hour())"},
		{"recursion", run(`var out []string; walk := func(n int) { if n > 0 { out = append(out, "a"); walk(n - 1) } }; walk(2); return out, nil`), "var walk func(n int)\n\twalk = func(n int)"},

		// Arguments.
		{"a list for an element", run(`l := append([]int{1}, []int{2, 3}[:1]); return l, nil`), "[]int{2, 3}[:1]...)"},
		{"values that are sorted", program("maps sort", "", `l := []string{}; l = append(l, maps.Values(map[string]string{"a": "b"})...); sort.Strings(l); return l, nil`), "slices.Collect(maps.Values("},
		{"the separator first", program("strings", "", `l := []string{"a"}; return strings.Join(", ", l), nil`), `strings.Join(l, ", ")`},
		{"a count first", program("strings", "", `n := 2; return strings.Repeat(n, "-"), nil`), `strings.Repeat("-", n)`},
		{"the element first", program("slices", "", `l := []string{"a"}; return slices.Contains("a", l), nil`), `slices.Contains(l, "a")`},
		{"the name of a weekday", program("strings time", "", `return strings.ToLower(time.Monday), nil`), "time.Monday.String()"},
		{"a rounded share", program("math", "", `a, b := 1, 3; return math.Round(2*a/(a+b)*100) / 100, nil`), "math.Round(float64(2*a)/float64(a+b)*100)"},

		// Conditions.
		{"a list that has something", program("regexp", "", `m := regexp.MustCompile("a(b)").FindStringSubmatch("ab"); if m { return m[1], nil }; if !m || len(call.Args) > 9 { return 1, nil }`), "if len(m) != 0 {"},
		{"a pointer or an error", run(`var p *int; err := call.Bind(&struct{}{}); if err { return nil, err }; if !p { return 0, nil }; return *p, nil`), "if p == nil {"},

		// Names and maps.
		{"a line of lines", program("strings", "", `n := 0; for line := range strings.Split("a,b", "\n") { n += len(strings.Split(line, ",")) }; return n, nil`), "for _, line := range"},
		{"a variable further out", program("strconv", "", `n := 1; if len(call.Args) > 0 { n, err := strconv.Atoi("2"); if err != nil { return nil, err } }; return n, nil`), "n, err = strconv.Atoi"},
		{"a map within a map", run(`m := make(map[string]map[string]float64); for _, k := range []string{"a"} { m[k]["b"] += 1; m[k]["c"]++ }; return m, nil`), "m[k] = map[string]float64{}"},
		{"a constraint", program("golang.org/x/exp/constraints", "func least[T constraints.Ordered](a, b T) T { return min(a, b) }", `return least(1, 2), nil`), "[T cmp.Ordered]"},
		{"a JSON number in a sum of float64", run(`total := 0.0; count := 1; count++; m := call.Arg(0, "m").(map[string]any); total += m["a"] * count; return total, nil`), `recurgent.Must(m["a"], 0.0).(float64) * float64(count)`},
		{"the JSON of a response", run(`r, err := call.Fetch("https://a.example"); if err != nil { return nil, err }; doc, err := r.JSON(); if err != nil { return nil, err }; return doc["a"], nil`), "jsonOf(r.Body)"},
		{"the JSON of a response, decoded", run(`r, err := call.Fetch("https://a.example"); if err != nil { return nil, err }; var doc map[string]any; if err := r.JSON(&doc); err != nil { return nil, err }; return []any{doc["a"], r.Text()}, nil`), "json.Unmarshal([]byte(r.Body), &doc)"},
		{"a character set in a text", run(`l := []string{"ab"}; for y := range l { for x := range l[y] { if x == 0 { l[y][x] = '#' } else { l[y][x] = "." } } }; return l, nil`), "l[y] = withCharacter(l[y], x, '#')"},
		{"printed as a float64", program("fmt", "", `total := 0; for _, x := range []float64{1.5} { total += x }; return fmt.Sprintf("%.2f", total), nil`), "total := 0.0"},

		// JSON.
		{"a length", run(`return len(call.Arg(0, "x")), nil`), "lengthOfJSON("},
		{"characters of a text", run(`s := call.Arg(0, "s"); n := 0; for i := 0; i < len(s); i++ { if s[i] == 'a' { n++ } }; return n, nil`), `recurgent.Must(s, "").(string)[i] == 'a'`},
		{"a product", run(`m := call.Arg(0, "m").(map[string]any); return m["a"] * m["b"], nil`), `recurgent.Must(m["a"], 0.0).(float64) * recurgent.Must(m["b"], 0.0).(float64)`},
		{"counted in the memory", run(`n := call.Context["n"]; if n == nil { n = 0 }; n += 1.5; call.Context["n"] = n; return n, nil`), `n = recurgent.Must(n, 0.0).(float64) + (1.5)`},
		{"a typed getter of the memory", run(`n := call.Context.GetFloat("n", 0) + 1; call.Context["n"] = n; return n, nil`), `recurgent.Or(call.Context["n"], float64(0)).(float64)`},
		{"a list of its own type", program("", "type grid [][]float64\nfunc (g grid) rows() int { return len(g) }", `g := call.Arg(0, "g").(grid); return g.rows(), nil`), "fromJSON[grid]("},
		{"a tree", program("", "type node struct { Kids []*node }\nfunc depth(n *node) int { d := 0; for _, k := range n.Kids { d = max(d, depth(k)) }; return d + 1 }", `n, ok := call.Arg(0, "n").(*node); if !ok { return nil, recurgent.Fail("invalid_input", "n") }; return depth(n), nil`), "fromJSON[*node]("},
		{"a number or its text", program("strconv", "", `n, err := strconv.Atoi(call.Arg(0, "n")); if err != nil { return nil, recurgent.Fail("invalid_input", "n") }; return n, nil`), "strconv.Atoi(textOfNumber(call.Arg(0, \"n\")))"},
		{"binary digits", program("fmt math", "", `n := call.Arg(0, "n").(float64); return fmt.Sprintf("%b", n), nil`), "recurgent.Must(n, 0).(int)"},

		// Go.
		{"a hidden function", run(`max := 0; for _, n := range []int{1} { max = max(max, n) }; return max + 1, nil`), "maxValue = max(maxValue, n)"},
		{"a method not called", program("time", "", `t := time.Unix(0, 0).UTC(); return []any{t.Year - 1, t.Weekday.String()}, nil`), "t.Year() - 1, t.Weekday().String()"},
		{"a date alone", program("time", "", `return time.Date(2024, 2, 29).Year(), nil`), "time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)"},
		{"a pattern as a condition", program("regexp", "", `if !regexp.MatchString("[0-9]", "a") { return 1, nil }`), `!regexp.MustCompile("[0-9]").MatchString("a")`},
		{"rows of an array", run(`r, c := 2, 3; grid := [r][c]int{}; grid[1][2] = 1; return grid, nil`), "list[i] = make([]int, c)"},
		{"two parts of three", program("strings", "", `k, v := strings.Cut("a=b", "="); return []string{k, v}, nil`), `k, v, _ := strings.Cut`},
		{"keys of maps", program("maps sort", "", `keys := maps.Keys(map[string]int{"a": 1}); sort.Strings(keys); return keys, nil`), `slices.Collect(maps.Keys(`},
		{"a failure as a literal", run(`return nil, &recurgent.Error{Type: "invalid_input", Message: "no"}`), `recurgent.Fail("invalid_input", "no")`},
		{"a field in small letters", program("", "type point struct{ X float64 }", `p := point{1}; return p.x, nil`), "return p.X, nil"},
		{"minutes of seconds", program("fmt", "", `n := call.Arg(0, "n").(float64); return fmt.Sprintf("%d:%02d", n/60, n%60), nil`), "n := recurgent.Must(call.Arg(0, \"n\"), 0).(int)"},
		{"a list that a struct leaves out", program("", "type result struct { valid bool; problems []string }", `r := result{valid: true}; if len(call.Args) > 1 { r.problems = append(r.problems, "a") }; return r, nil`), "Problems: []string{}"},
		{"a part of a hundred", run(`p := call.Arg(0, "p").(int); total := 80.0; return total * (1 - p/100), nil`), "1 - float64(p)/100"},
		{"a sum that starts at 0", run(`total := 0; for _, x := range []float64{1.5} { total = total + x*2 }; return total, nil`), "total := 0.0"},
	} {
		fixed := g.Fix(c.source, report.Terms{})
		if _, r := g.Check(fixed.Text); r != nil || len(fixed.Faults) > 0 {
			t.Errorf("%s: refused: %v %v\n%s", c.name, r, fixed.Faults, fixed.Text)
		}
		if !strings.Contains(fixed.Text, c.want) {
			t.Errorf("%s: no %q in\n%s", c.name, c.want, fixed.Text)
		}
	}
}

// The fields of a returned struct have the keys that the purpose lists. A struct stays as it is if the purpose does not
// list all that JSON shows of it, the deliverable requires other keys, or the program itself uses the keys.
func TestFixKeysOfPurpose(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	const (
		decl = "type row struct { Name string; UnitPrice float64 }\ntype shop struct { Rows int `json:\"rows\"`; row row; Last row `json:\"-\"` }"
		rows = `return []row{{"a", 1}}, nil`
	)
	both := []string{"name", "unit_price"}
	for _, c := range []struct {
		name, imports, body string
		terms               report.Terms
		want, fault         string
	}{
		{"listed", "", rows, report.Terms{Keys: both, Required: []string{"name"}}, "`json:\"unit_price\"`", ""},
		{"JSON of others", "encoding/json", `var m map[string]any; if err := json.Unmarshal([]byte(call.Arg(0, "s").(string)), &m); err != nil { return nil, err }; ` + rows,
			report.Terms{Keys: both}, "`json:\"unit_price\"`", ""},
		{"no name", "", `return struct { UnitPrice float64 }{1}, nil`, report.Terms{Keys: both}, "", "json:\"unit_price\""},
		{"a part is listed", "", rows, report.Terms{Keys: both[:1]}, "", ""},
		{"spelled alike", "", rows, report.Terms{Keys: []string{"Name", "unit_price"}}, "", ""},
		{"required as it is", "", rows, report.Terms{Keys: both, Required: []string{"Name", "UnitPrice"}}, "", ""},
		{"unknown", "", rows, report.Terms{}, "", ""},
		{"not shown", "", `return shop{1, row{"a", 1}, row{"b", 2}}, nil`, report.Terms{Keys: append(both, "rows")}, "", ""},
		{"bound", "", `var r row; if err := call.Bind(&r); err != nil { return nil, err }; return r, nil`, report.Terms{Keys: both}, "", ""},
		{"read from JSON", "encoding/json", `var l []row; if err := json.Unmarshal([]byte("[]"), &l); err != nil { return nil, err }; return l, nil`,
			report.Terms{Keys: both}, "", ""},
		{"kept", "", `rows := []row{{"a", 1}}; call.Context["rows"] = rows; return rows, nil`, report.Terms{Keys: both}, "", ""},
	} {
		source := program(c.imports, decl, c.body)
		fixed := g.Fix(source, c.terms)
		if c.want == "" && strings.Contains(fixed.Text, `json:"unit_price"`) || !strings.Contains(fixed.Text, c.want) {
			t.Errorf("%s: want %q in\n%s", c.name, c.want, fixed.Text)
		}
		if c.fault == "" && len(fixed.Faults) > 0 || c.fault != "" && (len(fixed.Faults) == 0 ||
			!strings.Contains(fixed.Faults[0].Text, c.fault)) {
			t.Errorf("%s: faults %v", c.name, fixed.Faults)
		}
	}
}

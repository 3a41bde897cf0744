package gate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A text that may mean two things is refused, and so the program keeps no value that it does not say.
func TestFixRefusesTwoReadings(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	run := func(body string) string { return program("", "", body) }
	const maybe = "func find(id string) (map[string]any, error) { if id == \"a\" { return nil, nil }; return nil, recurgent.Fail(\"not_found\", id) }"
	for _, c := range []struct{ name, source, says string }{
		{"nil in an if", program("", maybe, `if u := find("a"); u != nil { return u["name"], nil }; return "unknown", nil`), "assignment mismatch"},
		{"a part that is asked", program("strings", "", `key, rest := strings.Cut("a=", "="); if !rest { return "none", nil }; return key, nil`), "assignment mismatch"},
		{"one ok of two", run(`name, ok := call.Arg(0, "name").(string); age, ok := call.Arg(1, "age").(float64); if !ok { return nil, recurgent.Fail("invalid_input", "age") }; if name == nil { return age, nil }; return name, nil`), "nil"},
		{"in of another language", run("l, n := []int{1}, 0\nfor (const i in l) {\nn += l[i]\n}\nreturn n, nil"), "expected"},
		{"a place or an element", run("l, n := []int{1}, 0\nfor i in l {\nn += l[i]\n}\nreturn n, nil"), "each"},
		{"pairs", run("l, n := [][]int{{1, 2}}, 0\nfor a, b in l {\nn += a\n}\nreturn n, nil"), "for i, x := range list"},
		{"a bound that moves", run("n := 10\nfor i in range(0, n) {\nn -= i\n}\nreturn n, nil"), "for i := a; i < b; i++"},
		{"all but the last", run(`s := "abc"; return s.slice(0, -1), nil`), "slice"},
		{"an end or a length", program("strings", "", `s := "abcdefg"; return strings.Substring(s, 2, 3), nil`), "Substring"},
		{"an end or a length of a method", run(`s := "abcdefg"; return s.substring(2, 3), nil`), "substring"},
		{"behind the end of a list", run(`l := []string{"a", "b"}; return l.slice(0, 3), nil`), "slice"},
		{"characters and bytes", run(`s := "épée"; return s[1:s.length], nil`), "length"},
		{"the middle of a text", run(`s := "épée"; mid := s.length / 2; return s[:mid], nil`), "length"},
		{"a sum of a sum", run(`total := 0; for _, v := range call.Arg(0, "l").([]any) { total += v.(float64) }; up := total + 9; pages := up / 10; return pages, nil`), ""},
		{"a copy in each turn", program("", "type item struct{ N int }", `var list []*item; var cur item; for i := range 3 { cur.N = i; list = append(list, cur) }; return list, nil`), "append"},
		{"a part that is set later", program("", "type item struct{ N int }", `var list []*item; for i := range 3 { x := item{N: i}; list = append(list, x); x.N = 99 }; return list, nil`), "append"},
		{"equal or less", program("slices strings", "", `l := []string{"a"}; return slices.EqualFunc(l, l, func(a, b string) bool { return strings.Compare(a, b) }), nil`), "strings.Compare"},
		{"compacted or ordered", program("slices strings", "", `l := []string{"a", "b"}; return slices.CompactFunc(l, func(a, b string) bool { return strings.Compare(a, b) }), nil`), "strings.Compare"},
		{"a letter of a column", run(`i := len(call.Args); return "Column " + ('A' + i), nil`), "mismatched types"},
		{"a letter in a variable", run(`c := 'A' + len(call.Args); return "Column " + c, nil`), "mismatched types"},
		{"the order of keys", program("strings", "", `m := map[string]int{"b": 1, "a": 2}; var b strings.Builder; for k := range m.keys() { b.WriteString(k) }; return b.String(), nil`), "keys"},
		{"the order of items", run(`m, last := map[string]int{"b": 1, "a": 2}, ""; for k, v := range m.items() { if v > 0 { last = k } }; return last, nil`), "items"},
		{"keys by their place", run("m, n := map[string]int{\"b\": 1}, 0\nfor k in m {\nn += len(k)\n}\nreturn n, nil"), "in the order of its keys"},
		{"the next of a walk", program("", "type node struct { V int; Next *node }\nfunc last(n *node) int { for n.Next != nil { n = *n.Next }; return n.V }", `return last(&node{V: 1}), nil`), "cannot use *n.Next"},
		{"begun hundreds", run(`grams := len(call.Args); price := 3.0; return price * (1 + grams/100), nil`), "mismatched types"},
	} {
		fixed := g.Fix(c.source, report.Terms{})
		said := fmt.Sprint(fixed.Faults)
		_, r := g.Check(fixed.Text)
		if r != nil {
			said += strings.Join(r.Errors, "\n") + r.Hint
		}
		if r == nil && len(fixed.Faults) == 0 {
			t.Errorf("%s: runs:\n%s", c.name, fixed.Text)
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: %q is not said, but %s", c.name, c.says, said)
		}
	}
}

// Where a reading is left, the text is corrected to it.
func TestFixTakesTheReadingLeft(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	run := func(body string) string { return program("", "", body) }
	for _, c := range []struct{ name, source, want string }{
		{"nil, and no failure", program("", "func find(id string) (map[string]any, error) { return nil, nil }",
			`u := find("a"); if u == nil { return nil, recurgent.Fail("not_found", "none") }; return u["name"], nil`), "if u == nil {"},
		{"whether there is a separator", program("strings", "", `key, ok := strings.Cut("a=", "="); if !ok { return "none", nil }; return key, nil`), "key, _, ok := strings.Cut"},
		{"half of a number", run(`n := call.Arg(0, "n").(float64); return map[string]any{"half": n / 2, "even": n%2 == 0}, nil`), `n := call.Arg(0, "n").(float64)`},
		{"a value that is asked", run(`v := call.Arg(0, "v"); if s, ok := v.(string); ok { return s, nil }; return len(v), nil`), "lengthOfJSON(v)"},
		{"bytes one by one", run(`s, n := "ab", 0; for i := 0; i < s.length; i++ { if s[i] > 'a' { n++ } }; return n, nil`), "i < len(s)"},
		{"the mean of a sum", run(`l := []float64{1, 2}; total := 0; for _, v := range l { total += v }; mean := total / len(l); return mean, nil`), "total := 0.0"},
		{"memory of two kinds", program("fmt", "", `boxes, _ := call.Context["boxes"].(map[string]any); if boxes == nil { boxes = map[string]any{} }; boxes["a"] = 2.0; return fmt.Sprintf("%d", boxes["a"]), nil`), `fmt.Sprintf("%d", integer(boxes["a"]))`},
		{"of all", run("l, n := []int{1}, 0\nfor (const x of l) {\nn += x\n}\nreturn n, nil"), "for _, x := range l {"},
	} {
		fixed := g.Fix(c.source, report.Terms{})
		if _, r := g.Check(fixed.Text); r != nil || len(fixed.Faults) > 0 {
			t.Errorf("%s: %v %v\n%s", c.name, r, fixed.Faults, fixed.Text)
		}
		if !strings.Contains(fixed.Text, c.want) {
			t.Errorf("%s: no %q in\n%s", c.name, c.want, fixed.Text)
		}
	}
}

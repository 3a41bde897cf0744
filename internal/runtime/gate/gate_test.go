package gate

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func newGate(t testing.TB) *Gate {
	t.Helper()
	g, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// program returns a program with these statements in Run and these imports.
func program(imports, decls, body string) string {
	var b strings.Builder
	b.WriteString("package tool\n")
	for _, p := range strings.Fields("recurgent " + imports) {
		fmt.Fprintf(&b, "import %q\n", p)
	}
	return b.String() + decls + "\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\nreturn nil, nil\n}\n"
}

// Refusals have the right type and a correction.
func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, source, kind, message string
	}{
		{"forbidden import", program("net", "", "net.Dial(``, ``)"), dependencyPolicy, `package "net" is not available`},
		{"escaped import", "package tool\nimport \"\\x6e\\x65\\x74\"\n" + program("", "", "")[13:], dependencyPolicy,
			`package "net"`},
		{"raw import", "package tool\nimport `os/exec`\n" + program("", "", "")[13:], dependencyPolicy,
			`package "os/exec"`},
		{"relative import", program("../x", "", ""), dependencyPolicy, `package "../x"`},
		{"third party", program("github.com/x/y", "", ""), dependencyPolicy, "github.com/x/y"},
		{"blank import", "package tool\nimport _ \"net/http/pprof\"\n" + program("", "", "")[13:], dependencyPolicy,
			"pprof"},
		{"dot import", "package tool\nimport . \"strings\"\n" + program("", "", "")[13:], dependencyPolicy,
			"dot imports"},
		{"cgo", "package tool\nimport \"C\"\n" + program("", "", "")[13:], dependencyPolicy, `package "C"`},
		{"unsafe", program("unsafe", "", "_ = unsafe.Sizeof(1)"), dependencyPolicy, `package "unsafe"`},
		{"hidden symbol", program("time", "", "time.AfterFunc(0, nil)"), dependencyPolicy, "undefined: time.AfterFunc"},
		{"hidden reflect", program("reflect", "", "reflect.Select(nil)"), dependencyPolicy, "undefined: reflect.Select"},
		{"hidden method", program("html/template", "", "template.New(``).ParseGlob(``)"), dependencyPolicy,
			"template.Template.ParseGlob is not available"},
		{"hidden method of an embedded type", program("reflect", "type v struct{ reflect.Value }",
			"return v{}.UnsafeAddr(), nil"), dependencyPolicy, "reflect.Value.UnsafeAddr is not available"},
		{"most of a package", program("os", "", "os.Exit(1)"), dependencyPolicy, "undefined: os.Exit"},
		{"host side of the host package", program("", "", "_ = recurgent.Failure{}"), dependencyPolicy,
			"undefined: recurgent.Failure"},
		{"unexported field", program("", "", "_ = call.host"), invalidCode, "call.host undefined"},
		{"go statement", program("", "", "go func() {}()"), invalidCode, "go statements"},
		{"init", program("", "func init() {}", ""), invalidCode, "init functions"},
		{"directive", program("", "//go:linkname x runtime.x\nvar x int", ""), invalidCode, "directives"},
		{"no body", program("", "func f()", ""), invalidCode, "has no body"},
		{"no Run", "package tool\nfunc run() {}\n", invalidCode, "no function Run"},
		{"Run is a method", "package tool\nimport \"recurgent\"\ntype T int\nfunc (T) Run(*recurgent.Call) (any, error) { return nil, nil }\n", invalidCode, "no function Run"},
		{"wrong signature", "package tool\nimport \"recurgent\"\nfunc Run(call recurgent.Call) (any, error) { return nil, nil }\n", invalidCode, "wrong signature"},
		{"wrong result", "package tool\nimport \"recurgent\"\nfunc Run(call *recurgent.Call) (string, error) { return \"\", nil }\n", invalidCode, "wrong signature"},
		{"generic Run", "package tool\nimport \"recurgent\"\nfunc Run[T any](call *recurgent.Call) (any, error) { return nil, nil }\n", invalidCode, "wrong signature"},
		{"two Runs", program("", "func Run() {}", ""), invalidCode, "Run redeclared"},
		{"foreign variable", program("io", "", "io.EOF = nil"), toolRegistry, "assignment of io.EOF"},
		{"part of a foreign variable", program("encoding/base64", "", "*base64.StdEncoding = *base64.URLEncoding"),
			toolRegistry, "assignment of base64.StdEncoding"},
		{"foreign element", program("unicode", "", "unicode.L.R16[0].Lo = 1"), toolRegistry, "assignment of unicode.L"},
		{"foreign address", program("crypto/rand", "", "p := &rand.Reader; _ = p"), toolRegistry,
			"taking the address of rand.Reader"},
		{"foreign map", program("unicode", "", "delete(unicode.Categories, \"L\")"), toolRegistry,
			"change of unicode.Categories"},
		{"foreign range", program("io", "", "for _, io.EOF = range []error{nil} {}"), toolRegistry, "io.EOF"},
		{"type error", program("", "", "var s string = 5\n_ = s"), invalidCode, "cannot use 5"},
		{"undefined", program("", "", "x := undefinedThing\n_ = x"), invalidCode, "undefined: undefinedThing"},
		{"syntax", "package tool\nfunc Run( {", invalidCode, "syntax error"},
		{"empty", "", invalidCode, "syntax error"},
		{"invalid recursive type", program("", "type T struct { u uint64; a [2]T; p *uint64 }", ""), invalidCode,
			"invalid recursive type"},
		{"size", program("", "// "+strings.Repeat("x", 70000), ""), invalidCode, "bytes"},
		{"nesting", program("", "", "_ = "+strings.Repeat("(", 5000)+"1"+strings.Repeat(")", 5000)), invalidCode,
			"nested too deeply"},
		{"unary nesting", program("", "", "_ = "+strings.Repeat("-", 5000)+"1"), invalidCode, "nested too deeply"},
		{"type nesting", program("", "var x "+strings.Repeat("[]", 5000)+"int", ""), invalidCode, "nested too deeply"},
		{"sum nesting", program("", "", "_ = 1"+strings.Repeat("+1", 8000)), invalidCode, "nested too deeply"},
		{"doubling constants", program("", doublingConsts(), ""), invalidCode, "too large"},
		{"doubling structs", program("", doublingStructs(), ""), invalidCode, "too large"},
		{"endless instances", program("", "type L[T any] struct{ n *L[L[T]] }", "return L[int]{}, nil"), invalidCode,
			"instantiation cycle"},
		{"endless functions", program("strings", "func f[T any](n int, x T) { if n > 0 { f(n-1, []T{x}) } }",
			"unused := 1\nf(1, 1)"), invalidCode, "instantiation cycle"},
		{"huge shift", program("", "const c = 1 << 2000000000000", ""), invalidCode, "shift"},
	}
	g := newGate(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, r := g.Check(test.source)
			if r == nil {
				t.Fatalf("accepted: %+v", p.Facts)
			}
			if r.Type != test.kind || !strings.Contains(r.Message+strings.Join(r.Errors, "\n"), test.message) {
				t.Errorf("got %s %q, want %s %q", r.Type, r.Message, test.kind, test.message)
			}
			if r.Type != invalidCode && r.Hint == "" {
				t.Error("a policy refusal without a hint")
			}
			if len(r.Errors) > maxErrors {
				t.Errorf("%d error lines", len(r.Errors))
			}
		})
	}
}

func doublingConsts() string {
	var b strings.Builder
	b.WriteString("const s0 = \"xxxxxxxxxxxxxxxx\"\n")
	for i := range 30 {
		fmt.Fprintf(&b, "const s%d = s%d + s%d\n", i+1, i, i)
	}
	return b.String()
}

func doublingStructs() string {
	var b strings.Builder
	b.WriteString("type T0 struct{ a, b int }\n")
	for i := range 40 {
		fmt.Fprintf(&b, "type T%d struct{ a, b T%d }\n", i+1, i)
	}
	return b.String()
}

// Errors read like the compiler's, with the line and column of the model's own text.
func TestErrorLines(t *testing.T) {
	t.Parallel()
	source := "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tx := strings.ToUper(\"a\")\n\treturn y, 5\n}\n"
	_, r := newGate(t).Check(source)
	if r == nil {
		t.Fatal("accepted")
	}
	want := []string{"program.go:6:7: undefined: strings", "program.go:7:9: undefined: y",
		"program.go:7:12: cannot use 5"}
	for i, w := range want {
		if i >= len(r.Errors) || !strings.HasPrefix(r.Errors[i], w) {
			t.Errorf("line %d: got %q, want %q...", i, r.Errors, w)
		}
	}
	if r.Line != 6 || r.Column != 7 {
		t.Errorf("got %d:%d, want 6:7", r.Line, r.Column)
	}
}

// Messages refer to the program's own text, not to the changes of the gate.
func TestErrorsBesideMoves(t *testing.T) {
	t.Parallel()
	_, r := newGate(t).Check(program("", "type T struct{ n int }\nfunc (t *T) f() string { return \"\" }",
		"t := &T{}\nt.n += t.f() + t.n"))
	if r == nil || !strings.Contains(r.Message, "t.f() + t.n") {
		t.Errorf("got %+v", r)
	}
}

// The gate repairs what needs no model: unused and missing imports, unused variables, the package name.
func TestFixups(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, source, has string }{
		{"unused import", program("strings", "", ""), ""},
		{"unused variable", program("", "", "x := 1"), ""},
		{"unused variable beside generics", program("", "func id[T any](x T) T { return x }",
			"x := id(1)\nvar y int\nif true { z := 1 }"), ""},
		{"unused place beside generics", program("slices", "",
			"for i, x := range call.Args { _ = slices.Contains(call.Args, x) }"), ""},
		{"package main", strings.Replace(program("", "", ""), "package tool", "package main", 1), ""},
		{"missing import", program("", "", "return strings.ToUpper(\"x\"), nil"), `; import "strings"`},
		{"missing generic import", program("", "", "return slices.Max([]int{1}), nil"), `; import "slices"`},
		{"missing host import", "package tool\nfunc Run(call *recurgent.Call) (any, error) { return nil, nil }\n",
			`; import "recurgent"`},
		{"ambiguous by symbol", program("", "", "return rand.IntN(5), nil"), `; import "math/rand/v2"`},
		{"html that escapes", program("", "", "return html.EscapeString(\"x\"), nil"), `; import "html"`},
		{"html that reads pages", program("", "", "return html.Parse(\"x\")"), `; import "recurgent/html"`},
		{"html for recurgent/html", program("fmt html", "",
			"_ = html.EscapeString(fmt.Sprint(1)); return html.Parse(\"x\")"), `import "recurgent/html"`},
		{"both packages html", program("html recurgent/html", "",
			"_ = html.EscapeString(\"x\"); return html.Parse(\"x\")"), `import _ "html"`},
		{"local name wins", program("", "var strings = struct{ X int }{1}", "return strings.X, nil"), ""},
	}
	g := newGate(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, r := g.Check(test.source)
			if r != nil {
				t.Fatalf("refused: %+v", r)
			}
			if !strings.Contains(p.Source, test.has) || strings.Count(p.Source, "\n") != strings.Count(test.source,
				"\n") {
				t.Errorf("got source\n%s", p.Source)
			}
		})
	}
}

// Facts come from the typed tree; comments and strings do not mislead them.
func TestFacts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, source string
		want         Facts
	}{
		{"nothing", program("", "// call.History() call.Fetch\n", "_ = \"call.History() csv xml <title>\""),
			Facts{Imports: []string{"recurgent"}, Literals: []string{`"call.History() csv xml <title>"`}}},
		{"args", program("", "", "_ = call.Arg(0, \"name\")"), Facts{Imports: []string{"recurgent"}, UsesArgs: true}},
		{"kwargs", program("", "", "_ = call.Kwargs[\"q\"]"), Facts{Imports: []string{"recurgent"}, UsesArgs: true,
			Literals: []string{`"q"`}}},
		{"bound", program("", "", "var in struct{ A int `json:\"a\"` }\n_ = call.Bind(&in)"),
			Facts{Imports: []string{"recurgent"}, UsesArgs: true}},
		{"history", program("", "",
			"n := 0\nh := call.History()\nfor _, r := range h { if r.Role == \"x\" { n++ } }\n_ = h[len(h)-1:]"),
			Facts{Imports: []string{"recurgent"}, HistoryAccess: true,
				HistoryPatterns: []string{"count", "filter", "slice"}, Literals: []string{`"x"`, "0", "1"}}},
		{"history by helper", program("",
			"func by(rs []recurgent.Record) map[string]int { m := map[string]int{}\nfor _, r := range rs { m[r.Role]++ }\nreturn m }", "return by(call.HistoryAll()), nil"),
			Facts{Imports: []string{"recurgent"}, HistoryAccess: true, HistoryPatterns: []string{"count", "group"}}},
		{"history mapped", program("", "",
			"var out []string\nfor _, r := range call.History() { out = append(out, r.Role) }"),
			Facts{Imports: []string{"recurgent"}, HistoryAccess: true, HistoryPatterns: []string{"map"}}},
		// Uses of the records under their context key.
		{"history in the context", program("", "",
			"records, ok := call.Context[\"conversation_history\"].([]any)\nif !ok { return nil, nil }\nby := map[string]int{}\nfor _, r := range records[1:] { by[r.(map[string]any)[\"role\"].(string)]++ }\nreturn by, nil"),
			Facts{Imports: []string{"recurgent"}, HistoryPatterns: []string{"count", "group", "slice"},
				ContextReads: []string{"conversation_history"}, Literals: []string{`"role"`, "1"}}},
		{"history in the context, counted", program("", "",
			"const k = \"conversation_history\"\nmemory := call.Context\nvar list, _ = memory[k].([]any)\nreturn len(list), nil"),
			Facts{Imports: []string{"recurgent"}, HistoryPatterns: []string{"count"},
				ContextReads: []string{"conversation_history"}, Literals: []string{`"conversation_history"`}}},
		{"another key is no history", program("", "",
			"list, _ := call.Context[\"history\"].([]any)\nfor range list {}\nreturn len(list), nil"),
			Facts{Imports: []string{"recurgent"}, ContextReads: []string{"history"}}},
		{"history filtered", program("", "",
			"out := []any{}\nfor _, r := range call.History() { if r.Role == \"x\" { out = append(out, r) } }\nreturn out, nil"),
			Facts{Imports: []string{"recurgent"}, HistoryAccess: true, HistoryPatterns: []string{"filter"},
				Literals: []string{`"x"`}}},
		{"history counted", program("", "", "return len(call.History()), nil"),
			Facts{Imports: []string{"recurgent"}, HistoryAccess: true, HistoryPatterns: []string{"count"}}},
		{"history sliced", program("", "", "h := call.History()\nreturn h[0].Args, nil"),
			Facts{Imports: []string{"recurgent"}, HistoryAccess: true, HistoryPatterns: []string{"slice"},
				Literals: []string{"0"}}},
		{"history grouped", program("", "",
			"by := map[string][]any{}\nfor _, r := range call.History() { by[r.Role] = append(by[r.Role], r.Args...) }\nreturn by, nil"),
			Facts{Imports: []string{"recurgent"}, HistoryAccess: true, HistoryPatterns: []string{"group", "map"}}},
		{"history by hand", program("", "",
			"n := 0\nfor i := 0; i < len(call.History()); i++ { n += i }\nreturn n, nil"),
			Facts{Imports: []string{"recurgent"}, HistoryAccess: true, HistoryPatterns: []string{"count"},
				Literals: []string{"0"}}},
		{"a comment and a string", program("", "", "// for range call.History()\nreturn \"call.History()\", nil"),
			Facts{Imports: []string{"recurgent"}, Literals: []string{`"call.History()"`}}},
		{"context", program("", "",
			"n, _ := call.Context[\"n\"].(float64)\ncall.Context[\"m\"] = n\ndelete(call.Context, \"d\")\nc := call.Context\nc[\"alias\"] = 1"),
			Facts{Imports: []string{"recurgent"}, ContextReads: []string{"n"},
				ContextWrites: []string{"alias", "d", "m"}, Literals: []string{"1"}}},
		{"context by variable", program("", "", "k := \"x\"\ncall.Context[k+k] = 1\nfor range call.Context {}"),
			Facts{Imports: []string{"recurgent"}, ContextReads: []string{"*"}, ContextWrites: []string{"*"},
				Literals: []string{`"x"`, "1"}}},
		{"own names", program("", "type T struct{}\nfunc (T) History() []int { return nil }\nfunc (T) Fetch() {}",
			"T{}.History(); T{}.Fetch()"), Facts{Imports: []string{"recurgent"}}},
		{"fetch", program("encoding/json", "",
			"r, _ := call.Fetch(\"https://x\")\nvar v any\n_ = json.Unmarshal([]byte(r.Body), &v)"),
			Facts{Imports: []string{"encoding/json", "recurgent"}, UsesFetch: true,
				CapabilityPatterns: []string{"http_fetch", "json_shape"}, Literals: []string{`"https://x"`},
				Hosts: []string{"https://x"}}},
		{"feeds", program("encoding/xml encoding/csv html", "type f struct { I []string `xml:\"channel>item\"` }",
			"_ = xml.Unmarshal(nil, &f{})\n_ = csv.NewReader(nil)\n_ = html.UnescapeString(\"\")"),
			Facts{Imports: []string{"encoding/csv", "encoding/xml", "html", "recurgent"},
				CapabilityPatterns: []string{"csv_parse", "html_extract", "rss_parse", "xml_parse"},
				Literals:           []string{`""`}}},
		{"tools", program("", "", "call.Tool(\"calc\").Call(\"add\", 1)\ncall.Delegate(\"d\", recurgent.Contract{})"),
			Facts{Imports: []string{"recurgent"}, UsesTools: true, UsesDelegate: true,
				Literals: []string{`"add"`, `"calc"`, `"d"`, "1"}, Tools: []string{"calc.add"}}},
		{"clock and randomness", program("time math/rand/v2", "", "_ = time.Now()\n_ = rand.IntN(5)"),
			Facts{Imports: []string{"math/rand/v2", "recurgent", "time"}, UsesClock: true, UsesRandomness: true,
				CapabilityPatterns: []string{"date_time"}, Literals: []string{"5"}}},
		{"printing", program("fmt", "", "fmt.Println(fmt.Sprint(1))"),
			Facts{Imports: []string{"fmt", "recurgent"}, Prints: true, Literals: []string{"1"}}},
		{"printing without a package", program("", "", "println(1)"),
			Facts{Imports: []string{"recurgent"}, Prints: true, Literals: []string{"1"}}},
		{"a text is not printed", program("fmt strings", "", "fmt.Fprintln(new(strings.Builder), fmt.Sprintln(1))"),
			Facts{Imports: []string{"fmt", "recurgent", "strings"}, Literals: []string{"1"}}},
		{"iterator defers", program("", "", "for range 3 { defer func() {}() }"),
			Facts{Imports: []string{"recurgent"}, Literals: []string{"3"}}},
	}
	g := newGate(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, r := g.Check(test.source)
			if r != nil {
				t.Fatalf("refused: %+v", r)
			}
			p.Facts.Interface = "" // package inputs tests it
			if !sameFacts(p.Facts, test.want) {
				t.Errorf("got  %+v\nwant %+v", p.Facts, test.want)
			}
		})
	}
}

// sameFacts compares facts; nil and empty lists are equal.
func sameFacts(a, b Facts) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		f, g := x.Field(i), y.Field(i)
		if f.Kind() == reflect.Slice && f.Len() == 0 && g.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(f.Interface(), g.Interface()) {
			return false
		}
	}
	return true
}

// A check that overruns its deadline is a refusal, and the gate refuses everything from then on. The deadline is in
// processor time: a check that gets none, because the machine is busy, goes on.
func TestDeadline(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the moment in which the timer is looked at")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		used    time.Duration // from one look to the next
		refused bool
	}{"all of it is used": {time.Second, true}, "none is": {0, false}} {
		g, err := New(Options{Deadline: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		var looks time.Duration
		g.used = func() time.Duration { looks++; return looks * c.used }
		// Checking takes long enough that the gate looks at the time before it ends.
		long := program("", strings.Repeat("var _ = map[string][]int{\"a\": {1, 2, 3}, \"b\": {4, 5, 6}}\n", 1000), "")
		for _, source := range []string{long, program("", "", "")} {
			if _, r := g.Check(source); (r != nil) != c.refused {
				t.Errorf("%s: refused %+v, want refusal %t", name, r, c.refused)
			}
		}
		if looks < 2 {
			t.Errorf("%s: the check ended before the first look", name)
		}
	}
}

// processorTime grows as the process computes.
func TestProcessorTime(t *testing.T) {
	t.Parallel()
	for began, n := processorTime(), 0; processorTime() == began; n++ {
		if n == 1<<40 {
			t.Fatal("it stands still")
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{MaxSource: -1}); err == nil {
		t.Error("a negative size is accepted")
	}
	g, err := New(Options{MaxSource: 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, r := g.Check(program("", "", "")); r == nil || !strings.Contains(r.Message, "at most 20") {
		t.Errorf("got %+v", r)
	}
}

package inputs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/generate"
)

func newGate(t testing.TB) *gate.Gate {
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// run returns a program whose Run has this body, with decls before it.
func run(decls, body string) string {
	return "package tool\n\nimport \"recurgent\"\n\n" + decls + "\n\nfunc Run(call *recurgent.Call) (any, error) {\n" +
		body + "\n}\n"
}

const fail = `{ return nil, recurgent.Fail("invalid_input", "no") }`

// These are helpers as models write them, in many spellings.
const (
	byNames = `func arg(call *recurgent.Call, i int, names ...string) any {
	if i < len(call.Args) { return call.Args[i] }
	for _, n := range names { if v, ok := call.Kwargs[n]; ok { return v } }
	return nil
}`
	number = `func number(call *recurgent.Call, i int, name string) (float64, error) {
	v, ok := call.Arg(i, name).(float64)
	if !ok { return 0, recurgent.Fail("invalid_input", name+" must be a number") }
	return v, nil
}`
	toFloat = `func toFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case float64: return x, true
	case string: f, err := strconv.ParseFloat(x, 64); return f, err == nil
	}
	return 0, false
}`
	generic = `func get[T any](args []any, kwargs map[string]any, i int, name string, otherwise T) (T, error) {
	var v any
	if i < len(args) { v = args[i] } else { v = kwargs[name] }
	if v == nil { return otherwise, nil }
	t, ok := v.(T)
	if !ok { return t, recurgent.Fail("invalid_input", name) }
	return t, nil
}`
	method = `type reader struct{ call *recurgent.Call }
func (r *reader) text(name string) string { s, _ := r.call.Kwargs[name].(string); return s }`
)

func TestInference(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, test := range []struct {
		name, decls, body string
		want              string // the signature, and how parameters are read if there is only one way
	}{
		{"nothing", "", "return 1, nil", "m() -> integer"},
		{"arg", "", "s, ok := call.Arg(0, \"text\").(string)\nif !ok " + fail + "\nreturn len(s), nil",
			"m(text: string) -> integer"},
		{"arg without a check", "", "return call.Arg(0, \"x\"), nil", "m(x?: any)"},
		{"panicking assertion", "", "return call.Arg(0, \"x\").(float64) + 1, nil", "m(x: number) -> number"},
		{"two, out of order", "",
			"b := call.Arg(1, \"b\").(bool)\na := call.Arg(0, \"a\").(string)\nreturn map[string]any{a: b}, nil",
			"m(a: string, b: boolean) -> object"},
		{"position", "", "if len(call.Args) < 1 " + fail + "\ntitle, ok := call.Args[0].(string)\nif !ok " + fail +
			"\nreturn title, nil", "m(title: string) -> string position:title"},
		{"keyword", "", "v, ok := call.Kwargs[\"limit\"].(float64)\nif ok { return v, nil }\nreturn 0, nil",
			"m(limit?: number) -> number|integer name:limit"},
		{"positions and keywords that are not known", "",
			"n := len(call.Kwargs)\nfor _, v := range call.Args { if v != nil { n++ } }\nfor k := range call.Kwargs { n += len(k) }\na, _ := call.Kwargs[\"a\"].(float64)\nreturn float64(n) + a, nil",
			"m(a?: number, ...) -> number"},
		{"reused ok", "", "limit, ok := call.Kwargs[\"limit\"].(float64)\nif ok { _ = limit }\ns, ok := call.Kwargs[\"text\"].(string)\nif !ok " + fail + "\nreturn s, nil", "m(limit?: number, text: string) -> string name:limit name:text"},
		{"optional with a check", "",
			"max := 0\nif v, present := call.Kwargs[\"max\"]; present && v != nil {\nf, ok := v.(float64)\nif !ok || f < 1 " + fail + "\nmax = int(f)\n}\nreturn max, nil", "m(max?: number) -> integer name:max"},
		{"default", "", "v := call.Arg(0, \"n\")\nif v == nil { v = 10.0 }\nn, ok := v.(float64)\nif !ok " + fail +
			"\nreturn n, nil", "m(n?: number = 10) -> number"},
		{"default of another form", "", "n, ok := call.Arg(0, \"n\").(float64)\nif !ok { n = 3 }\nreturn n, nil",
			"m(n?: number = 3) -> number"},
		{"early answer", "", "v, ok := call.Arg(0, \"n\").(float64)\nif !ok { return 0, nil }\nreturn v, nil",
			"m(n?: number) -> integer|number"},
		{"empty text", "", "s, _ := call.Arg(0, \"s\").(string)\nif strings.TrimSpace(s) == \"\" " + fail +
			"\nreturn s, nil", "m(s: string) -> string"},
		{"one of two", "", "a, b := call.Kwargs[\"a\"], call.Kwargs[\"b\"]\nif a == nil && b == nil " + fail +
			"\nreturn []any{a, b}, nil", "m(a?: any, b?: any) -> array name:a name:b"},
		{"either of two fails", "", "a, b := call.Arg(0, \"a\"), call.Arg(1, \"b\")\nif a == nil || b == nil " + fail +
			"\nreturn []any{a, b}, nil", "m(a: any, b: any) -> array"},
		{"place and name in two branches", "",
			"var v any\nif len(call.Args) > 0 { v = call.Args[0] } else { v = call.Kwargs[\"value\"] }\nreturn v, nil",
			"m(value?: any)"},
		{"place and name under one name", "",
			"if len(call.Args) > 0 { text, _ := call.Args[0].(string); return text, nil }\ntext, _ := call.Kwargs[\"text\"].(string)\nreturn text, nil", "m(text?: string) -> string"},
		{"aliases by fallback", "",
			"v, ok := call.Kwargs[\"celsius\"]\nif !ok { v, ok = call.Kwargs[\"c\"] }\nif !ok " + fail +
				"\nreturn v, nil", "m(celsius: any) name:celsius alias:c"},
		{"no alias where a variable is used twice", "",
			"v, _ := call.Kwargs[\"a\"].(string)\nout := v\nv, _ = call.Kwargs[\"b\"].(string)\nreturn out + v, nil",
			"m(a?: string, b?: string) -> string name:a name:b"},
		{"aliases by helper", byNames, "s, ok := arg(call, 0, \"text\", \"value\", \"s\").(string)\nif !ok " + fail +
			"\nn := arg(call, 1, \"n\")\nreturn []any{s, n}, nil",
			"m(text?: string, n?: any) -> array alias:value alias:s"},
		{"helper with an error: what its caller does with it is not looked at", number,
			"a, err := number(call, 0, \"a\")\nif err != nil { return nil, err }\nb, err := number(call, 1, \"b\")\nif err != nil { return nil, err }\nreturn a + b, nil", "m(a?: number, b?: number) -> number"},
		{"helper that takes a value", toFloat, "x, ok := toFloat(call.Arg(0, \"x\"))\nif !ok " + fail +
			"\nreturn x, nil", "m(x?: number|string) -> number"},
		{"generic helper: of any type", generic,
			"n, err := get(call.Args, call.Kwargs, 0, \"n\", 2.0)\nif err != nil { return nil, err }\ns, err := get(call.Args, call.Kwargs, 1, \"sep\", \",\")\nif err != nil { return nil, err }\nreturn []any{n, s}, nil", "m(n?: any, sep?: any) -> array"},
		{"closure", "", "get := func(name string) (string, bool) { s, ok := call.Kwargs[name].(string); return s, ok }\na, ok := get(\"a\")\nif !ok " + fail + "\nb, _ := get(\"b\")\nreturn a + b, nil", "m(a?: string, b?: string) -> string name:a name:b"},
		{"alias of the call", "", "c := call\nargs, kw := c.Args, c.Kwargs\nif len(args) == 0 " + fail +
			"\nfirst := args[0]\nreturn []any{first, kw[\"k\"]}, nil",
			"m(first: any, k?: any) -> array position:first name:k"},
		{"method", method, "r := &reader{call}\nreturn r.text(\"a\"), nil", "m(a?: string) -> string name:a"},
		{"loop", "", "sum := 0.0\nfor _, a := range call.Args { n, ok := a.(float64); if !ok " + fail +
			"\nsum += n }\nreturn sum, nil", "m(...args?: number[]) -> number position:args"},
		{"loop by index", "", "sum := 0.0\nfor i := range call.Args { sum += call.Args[i].(float64) }\nreturn sum, nil",
			"m(...args?: number[]) -> number position:args"},
		{"first and rest", "", "if len(call.Args) < 2 " + fail +
			"\nsep := call.Args[0].(string)\nout := \"\"\nfor _, a := range call.Args[1:] { out += sep + a.(string) }\nreturn out, nil", "m(sep: string, ...args: string[]) -> string position:sep position:args"},
		{"loop over names", "", "for _, name := range []string{\"a\", \"b\"} { if v, ok := call.Kwargs[name]; ok { return v, nil } }\nreturn nil, nil", "m(a?: any) name:a alias:b"},
		{"each name of a loop", "",
			"sum := 0.0\nfor _, name := range []string{\"a\", \"b\"} { if v, ok := call.Kwargs[name].(float64); ok { sum += v } }\nreturn sum, nil", "m(a?: number, b?: number) -> number name:a name:b"},
		{"each name of a loop with its position", "",
			"sum := 0.0\nfor i, name := range [...]string{\"a\", \"b\"} {\nv, ok := call.Arg(i, name).(float64)\nif !ok " + fail + "\nsum += v\n}\nreturn sum, nil", "m(a: number, b: number) -> number"},
		{"names of a package", "var names = []string{\"a\", \"b\"}",
			"out := []any{}\nfor i := range names { out = append(out, call.Arg(i, names[i])) }\nreturn out, nil",
			"m(a?: any, b?: any) -> array|null"},
		{"names of a package that change", "var names = []string{\"a\", \"b\"}",
			"names[0] = \"c\"\nout := []any{}\nfor i, name := range names { out = append(out, call.Arg(i, name)) }\nreturn out, nil", "m(...) -> array|null"},
		{"names by a constant and after others", "const last = \"c\"",
			"out := []any{call.Arg(0, \"a\")}\nfor i, name := range []string{\"b\", last} { out = append(out, call.Arg(i+1, name)) }\nreturn out, nil", "m(a?: any, b?: any, c?: any) -> array|null"},
		{"names with their defaults", "",
			"out := map[string]float64{}\nfor name, v := range map[string]float64{\"a\": 1} {\nif n, ok := call.Kwargs[name].(float64); ok { v = n }\nout[name] = v\n}\nreturn out, nil", "m(a?: number) -> object|null name:a"},
		{"helper in a loop over names",
			"func text(call *recurgent.Call, name string) string { s, _ := call.Kwargs[name].(string); return s }",
			"out := \"\"\nfor _, name := range []string{\"a\", \"b\"} { out += text(call, name) }\nreturn out, nil",
			"m(a?: string, b?: string) -> string name:a name:b"},
		{"loop that breaks at the first hit", "",
			"var v any\nfor _, name := range []string{\"a\", \"b\"} { if x, ok := call.Kwargs[name]; ok { v = x; break } }\nreturn v, nil", "m(a?: any) name:a alias:b"},
		{"loop that breaks at the first hit, then a position", "",
			"var v any\nfor _, name := range []string{\"a\", \"b\"} { if x, ok := call.Kwargs[name]; ok { v = x; break } }\nif v == nil && len(call.Args) > 0 { v = call.Args[0] }\nn, ok := v.(float64)\nif !ok " +
				fail + "\nreturn n, nil", "m(a?: any) -> number alias:b"},
		{"a position, then a name", "", "var v any\nif len(call.Args) > 0 { v = call.Args[0] }\nif x, ok := call.Kwargs[\"a\"]; ok { v = x }\nreturn v, nil", "m(a?: any)"},
		{"a position and a name that are added", "",
			"sum := 0.0\nif n, ok := call.Args[0].(float64); ok { sum = n }\nif n, ok := call.Kwargs[\"a\"].(float64); ok { sum += n }\nreturn sum, nil", "m(n?: number, a?: number) -> number position:n name:a"},
		{"loop with a switch that breaks", "",
			"n := 0\nfor _, name := range []string{\"a\", \"b\"} {\nswitch call.Kwargs[name].(type) {\ncase nil: break\ncase string: n++\n}\n}\nreturn n, nil", "m(a?: string, b?: string) -> integer name:a name:b"},
		{"loop that gives up", "",
			"n := 0\nfor _, name := range []string{\"a\", \"b\"} {\nif _, ok := call.Kwargs[name].(string); !ok " +
				fail + "\nn++\n}\nreturn n, nil", "m(a: string, b: string) -> integer name:a name:b"},
		{"names from elsewhere", "",
			"for _, name := range strings.Fields(\"a b\") { if call.Kwargs[name] != nil { return name, nil } }\nreturn nil, nil", "m(...) -> string|null"},
		{"handed on", "func all(c *recurgent.Call) (string, error) { b, err := json.Marshal(c); return string(b), err }", "s, err := all(call)\nreturn s, err", "m(...) -> string"},
		{"given to a tool", "", "return call.Tool(\"x\").CallWith(\"y\", call.Args, call.Kwargs).Value, nil", "m(...)"},
		{"a function as a value", "func at(i int, name string, f func(int, string) any) any { return f(i, name) }",
			"return at(0, \"a\", call.Arg), nil", "m(...)"},
		{"a function that nobody calls", "func never(c *recurgent.Call) any { return c.Arg(0, \"a\") }",
			"return 1, nil", "m() -> integer"},
		{"after an early answer", "",
			"if call.Kwargs[\"help\"] != nil { return \"help\", nil }\ns, ok := call.Arg(0, \"s\").(string)\nif !ok " +
				fail + "\nreturn s, nil", "m(s?: string, help?: any) -> string name:help"},
		{"used as it is, too", "",
			"v := call.Arg(0, \"v\")\ns, ok := v.(string)\nif !ok { s = fmt.Sprint(v) }\nreturn s, nil",
			"m(v?: any) -> string"},
		{"replaced by something else", "", "v := call.Arg(0, \"v\")\nv = fmt.Sprint(v)\nreturn v.(string), nil",
			"m(v?: any) -> string"},
		{"all positions and some names", "", "sum := 0.0\nfor i := range call.Args {\nn, ok := call.Args[i].(float64)\nif !ok " +
			fail + "\nsum += n\n}\nfor _, name := range []string{\"a\", \"b\"} { if n, ok := call.Kwargs[name].(float64); ok { sum += n } }\nreturn sum, nil", "m(...args?: number[], a?: number, b?: number) -> number position:args name:a name:b"},
		{"list: its elements are not looked at", "", "list, ok := call.Arg(0, \"items\").([]any)\nif !ok " + fail +
			"\nfor _, x := range list { s, ok := x.(string); if !ok " + fail + "\n_ = s }\nreturn list, nil",
			"m(items: array) -> array|null"},
		{"open keywords", "", "out := map[string]any{}\nfor k, v := range call.Kwargs { out[k] = v }\nreturn out, nil",
			"m(...) -> object|null"},
		{"variable keyword", "", "return call.Kwargs[call.Arg(0, \"name\").(string)], nil", "m(name: string, ...)"},
		{"kwargs escape", "", "return call.Kwargs, nil", "m(...) -> object|null"},
		{"type switch with a default", "",
			"switch v := call.Arg(0, \"v\").(type) {\ncase nil: return \"nothing\", nil\ncase string: return v, nil\ndefault: return fmt.Sprint(v), nil\n}", "m(v?: any) -> string"},
		{"type switch whose default uses the value", "",
			"switch v := call.Arg(0, \"v\").(type) {\ncase string: return v, nil\ncase bool: return \"b\", nil\ndefault: return nil, recurgent.Fail(\"invalid_input\", fmt.Sprintf(\"%v\", v))\n}", "m(v?: any) -> string"},
		{"tagless switch: not looked into", "",
			"n, ok := call.Arg(0, \"n\").(float64)\nswitch {\ncase !ok: return nil, recurgent.Fail(\"invalid_input\", \"n\")\ncase n < 0: return 0, nil\n}\nreturn n, nil", "m(n?: number) -> integer|number"},
		{"skipped position", "", "return []any{call.Args[0], call.Args[2]}, nil",
			"m(arg1?: any, arg2?: any, arg3?: any) -> array position:arg1 position:arg2 position:arg3"},
		{"bind", "", "in := struct {\nText string `json:\"text\"`\nLimit int `json:\"limit\"`\nWords []string `json:\"words,omitempty\"`\nn int\n}{Limit: 10}\nif err := call.Bind(&in); err != nil " + fail + "\nif in.Text == \"\" " + fail + "\nreturn in.Text, nil", "m(text: string, limit?: integer, words?: string[]) -> string"},
		{"bind into a named type",
			"type row struct { Name string `json:\"name\"`; Age int `json:\"age\"` }\ntype input struct { Rows []row `json:\"rows\"`; When time.Time }", "var in input\nif err := call.Bind(&in); err != nil { return nil, err }\nif len(in.Rows) == 0 " + fail + "\nreturn in.Rows, nil", "m(rows: {age, name}[], When?: any) -> array|null"},
		{"bind beside a position", "", "income, ok := call.Args[0].(float64)\nif !ok " + fail +
			"\nvar in struct { Rate float64 `json:\"rate\"` }\nif err := call.Bind(&in); err != nil { return nil, err }\nreturn income * in.Rate, nil", "m(income: number, rate?: number) -> number position:income name:rate"},
		{"names of any letters", "", "return []any{call.Arg(0, \"l\u00e4nge\"), call.Kwargs[\"a b\"]}, nil",
			"m(l\u00e4nge?: any, \"a b\"?: any) -> array name:a b"},
		{"names that cannot be", "", "return call.Kwargs[\"a \"], nil", "m(...)"},
		{"own value", "", "return struct{ A int `json:\"a\"`; B []string }{1, nil}, nil", "m() -> {B, a}"},
		{"converted", "", "n, ok := recurgent.As(call.Arg(0, \"n\"), 0).(int)\nif !ok " + fail + "\nreturn n, nil",
			"m(n: integer) -> integer"},
		{"converted or ended", "",
			"words := recurgent.Must(call.Arg(0, \"words\"), []string{}).([]string)\nsep := recurgent.Or(call.Arg(1, \"sep\"), \",\").(string)\nreturn []any{words, sep}, nil", "m(words: string[], sep?: string = \",\") -> array"},
		{"converted in a switch", "",
			"switch n := recurgent.As(call.Arg(0, \"n\"), 0).(type) {\ncase int: return n, nil\ncase string: return len(n), nil\ndefault: return nil, recurgent.Fail(\"invalid_input\", \"n\")\n}", "m(n?: integer|string) -> integer"},
		{"a file", "", "ref := call.Arg(0, \"table\")\nif ref == nil " + fail +
			"\nif _, err := call.FileInfo(ref); err != nil { return nil, err }\nr, err := call.OpenText(ref)\nif err != nil { return nil, err }\nb, err := io.ReadAll(r)\nreturn len(b), err", "m(table: file) -> integer"},
		{"a file or a text", "", "v := call.Arg(0, \"table\")\nif s, ok := v.(string); ok { return len(s), nil }\nb, err := call.ReadFile(v)\nreturn len(b), err", "m(table?: any) -> integer"},
		{"json.Number", "", "return json.Number(\"1\"), nil", "m()"},
	} {
		p, refused := g.Check(run(test.decls, test.body))
		if refused != nil {
			t.Errorf("%s: refused: %s", test.name, refused.Message)
			continue
		}
		if got := described(inferred(t, p)); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

func inferred(t testing.TB, p *gate.Program) *agent.Interface {
	var f agent.Interface
	if err := json.Unmarshal([]byte(p.Facts.Interface), &f); err != nil {
		t.Fatal(err)
	}
	return f.Undeclared()
}

func described(f *agent.Interface) string {
	var b strings.Builder
	b.WriteString(f.Signature("m"))
	for _, p := range f.Parameters {
		if p.ReadBy != "" {
			b.WriteString(" " + p.ReadBy + ":" + p.Name)
		}
		for _, a := range p.Aliases {
			b.WriteString(" alias:" + a)
		}
	}
	return b.String()
}

// For every program the inference ends with a valid interface, and the gate goes on.
func TestInferenceOfGeneratedPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("long: generated and recorded programs, and the Go project's tests, against the toolchain")
	}
	t.Parallel()
	g := newGate(t)
	for seed := range uint64(40) {
		source := generate.Write(seed).Source()
		p, refused := g.Check(source)
		if refused != nil {
			continue
		}
		if err := inferred(t, p).Validate(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, source)
		}
	}
}

// A program built to take long gets an open interface instead.
func TestInferenceIsBounded(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	var decls strings.Builder
	decls.WriteString("func f0(v any) any { return v }\n")
	for i := range 40 { // each calls the previous one three times
		fmt.Fprintf(&decls, "func f%d(v any) any { f%d(v); f%d(v); return f%d(v) }\n", i+1, i, i, i)
	}
	p, refused := g.Check(run(decls.String(), "return f40(call.Arg(0, \"x\")), nil"))
	if refused != nil {
		t.Fatal(refused.Message)
	}
	if f := inferred(t, p); f.Validate() != nil || len(f.Parameters) != 1 {
		t.Errorf("got %s", described(f))
	}
	p, refused = g.Check(run(
		"func f(c *recurgent.Call, n int) any { if n == 0 { return c.Arg(0, \"x\") }; return f(c, n-1) }",
		"return f(call, 1000), nil"))
	if refused != nil {
		t.Fatal(refused.Message)
	}
	if f := inferred(t, p); f.Validate() != nil || len(f.Parameters) != 1 {
		t.Errorf("got %s", described(f))
	}
}

func FuzzInference(f *testing.F) {
	f.Add(run(byNames, "return arg(call, 0, \"a\", \"b\"), nil"))
	f.Add(run(generic, "n, err := get(call.Args, call.Kwargs, 0, \"n\", 2.0)\nreturn n, err"))
	f.Add(run("", "for i := range call.Args { call.Args[i] = nil }\ndelete(call.Kwargs, \"x\")\nreturn call.Args[len(call.Args)-1:], nil"))
	g := newGate(f)
	f.Fuzz(func(t *testing.T, source string) {
		p, refused := g.Check(source)
		if refused != nil {
			if strings.Contains(refused.Message, "could not be checked") {
				t.Fatal(refused.Message)
			}
			return
		}
		if err := inferred(t, p).Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

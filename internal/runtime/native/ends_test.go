package native_test

import (
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// ends are bodies of programs that end in no value.
var ends = map[string]string{
	"recursion":  "var f func(n int) int\n\tf = func(n int) int { return f(n+1) + 1 }\n\treturn f(0), nil",
	"memory":     "var all [][]byte\n\tfor {\n\t\tb := make([]byte, 1<<20)\n\t\tfor i := range b {\n\t\t\tb[i] = 1\n\t\t}\n\t\tall = append(all, b)\n\t}",
	"loop":       "for {\n\t}",
	"deadlock":   "return <-make(chan int), nil",
	"nil map":    "var m map[string]int\n\tm[\"a\"]++\n\treturn m, nil",
	"index":      "x := []int{1}\n\treturn x[len(call.Args)+1], nil",
	"pointer":    "var p *struct{ a int }\n\n\treturn p.a, nil",
	"division":   "return 1 / len(call.Args), nil",
	"assertion":  "var v any = \"x\"\n\treturn v.(int), nil",
	"text":       "panic(\"text\")",
	"error":      "panic(recurgent.Fail(\"invalid_input\", \"no\"))",
	"repanic":    "defer func() {\n\t\tpanic(recover())\n\t}()\n\tpanic(1)",
	"no JSON":    "return func() {}, nil",
	"cycle":      "m := map[string]any{}\n\tm[\"m\"] = m\n\treturn m, nil",
	"a failure":  "return nil, recurgent.Fail(\"low_utility\", \"no use\")",
	"may pass":   "return nil, fmt.Errorf(\"not now: %w\", recurgent.FailRetriable(\"closed\", \"opens at eight\"))",
	"in context": "call.Context[\"f\"] = func() {}\n\treturn 1, nil",
	"no clock":   "var before = call.Depth\n\tcall.Fetch(\"http://127.0.0.1/\")\n\treturn before, recurgent.Fail(\"x\", \"y\")",
}

// However a program ends, the call gets what it gets on the engine: the same failure, with the same line.
func TestEndsNatively(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles each program of the self-test with the toolchain")
	}
	b, p := builder(t)
	var texts, names, sources []string
	for name, body := range ends {
		source := "package tool\n\nimport (\n\t\"fmt\"\n\t\"recurgent\"\n)\n\nvar _ = fmt.Sprint\n\n// " + name + "\nfunc Run(call *recurgent.Call) (any, error) {\n\t" + body + "\n}\n"
		text, err := p.NativeText(t.Context(), source)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		texts, names, sources = append(texts, text), append(names, name), append(sources, source)
	}
	path, err := native.BuildMany(t.Context(), b, "ends", texts)
	if err != nil {
		t.Fatal(err)
	}
	x := executable(t, path)
	for i, source := range sources {
		req := sandbox.Request{Program: sandbox.Program{Source: source, Checksum: agent.Checksum(source)}, Owner: agent.Owner{Name: "o"}, Role: "tester", Method: "run", CallID: "c", Now: time.Unix(1790000000, 0), Timeout: 5 * time.Minute} // longer than any that ends takes on a busy machine
		if names[i] == "loop" {
			req.Timeout = time.Second
		}
		want := p.Run(t.Context(), req, host{})
		req.Native = x
		got := p.Run(t.Context(), req, host{})
		if g, w := endOf(got), endOf(want); g != w || strings.Contains(g, "null,null") {
			t.Errorf("%s: got\n%s\nthe engine\n%s", names[i], g, w)
		}
	}
}

func endOf(r sandbox.Result) string { return end{Authored: r.Authored, Failure: r.Failure}.String() }

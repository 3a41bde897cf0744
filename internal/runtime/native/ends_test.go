package native_test

import (
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// ends maps names to bodies of programs that do not return a value, whose first line is line 12, with the type of the
// end and a part of its text.
var ends = map[string]struct{ body, end, said string }{
	"recursion": {"var f func(n int) int\n\tf = func(n int) int { return f(n+1) + 1 }\n\treturn f(0), nil",
		"resource_exhausted/stack", "stack"},
	"memory":   {"var all [][]byte\n\tfor {\n\t\tb := make([]byte, 1<<20)\n\t\tfor i := range b {\n\t\t\tb[i] = 1\n\t\t}\n\t\tall = append(all, b)\n\t}", "resource_exhausted/memory", "memory"},
	"loop":     {"for {\n\t}", "timeout/deadline", ""},
	"deadlock": {"return <-make(chan int), nil", "execution/deadlock", ""},
	"nil map": {"var m map[string]int\n\tm[\"a\"]++\n\treturn m, nil", "execution/panic",
		"panic: assignment to entry in nil map (program.go:13)"},
	"index": {"x := []int{1}\n\treturn x[len(call.Args)+1], nil", "execution/panic",
		"panic: runtime error: index out of range [1] with length 1 (program.go:13)"},
	"pointer": {"var p *struct{ a int }\n\n\treturn p.a, nil", "execution/panic",
		"nil pointer dereference (program.go:14)"},
	"division": {"return 1 / len(call.Args), nil", "execution/panic",
		"panic: runtime error: integer divide by zero (program.go:12)"},
	"assertion": {"var v any = \"x\"\n\treturn v.(int), nil", "execution/panic",
		"panic: interface conversion: interface {} is string, not int (program.go:13)"},
	"text":      {"panic(\"text\")", "execution/panic", "panic: text (program.go:12)"},
	"error":     {"panic(recurgent.Fail(\"invalid_input\", \"no\"))", "execution/panic", "no (program.go:12)"},
	"repanic":   {"defer func() {\n\t\tpanic(recover())\n\t}()\n\tpanic(1)", "execution/panic", "panic: 1"},
	"no JSON":   {"return func() {}, nil", "non_serializable_result/", "func()"},
	"cycle":     {"m := map[string]any{}\n\tm[\"m\"] = m\n\treturn m, nil", "non_serializable_result/", "cycle"},
	"a failure": {"return nil, recurgent.Fail(\"low_utility\", \"no use\")", "authored low_utility", "no use"},
	"may pass": {"return nil, fmt.Errorf(\"not now: %w\", recurgent.FailRetriable(\"closed\", \"opens at eight\"))",
		"retriable closed", "opens at eight"},
	"in context": {"call.Context[\"f\"] = func() {}\n\treturn 1, nil", "non_serializable_result/context", "func()"},
	"fetched":    {"var before = call.Depth\n\tcall.Fetch(\"http://127.0.0.1/\")\n\treturn before, recurgent.Fail(\"x\", \"y\")", "authored x", "y"},
}

// However a program ends, the end has its type, and a panic has its text and its line.
func TestEndsNatively(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	b, p := builder(t)
	var texts, names, sources []string
	for name, e := range ends {
		source := "package tool\n\nimport (\n\t\"fmt\"\n\t\"recurgent\"\n)\n\nvar _ = fmt.Sprint\n\n// " + name +
			"\nfunc Run(call *recurgent.Call) (any, error) {\n\t" + e.body + "\n}\n"
		texts, names, sources = append(texts, textOf(t, source)), append(names, name), append(sources, source)
	}
	path, err := b.BuildMany(t.Context(), "ends", texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, source := range sources {
		// The timeout is longer than any terminating program takes on a busy machine.
		req := sandbox.Request{Program: sandbox.Program{Source: source, Checksum: agent.Checksum(source)},
			Owner: agent.Owner{Name: "o"}, Role: "tester", Method: "run", CallID: "c", Now: time.Unix(1790000000, 0),
			Timeout: 5 * time.Minute}
		shared.made.Add(req.Program.Checksum, path, nil)
		if names[i] == "loop" {
			req.Timeout = time.Second
		}
		want := ends[names[i]]
		if end, said := endOf(p.Run(t.Context(), req, host{})); end != want.end || !strings.Contains(said, want.said) {
			t.Errorf("%s: got %s: %s\nwant %s: %s", names[i], end, said, want.end, want.said)
		}
	}
}

// endOf returns how a run ended, and its text.
func endOf(r sandbox.Result) (end, said string) {
	switch {
	case r.Authored != nil && r.Authored.Retriable:
		return "retriable " + r.Authored.Type, r.Authored.Message
	case r.Authored != nil:
		return "authored " + r.Authored.Type, r.Authored.Message
	case r.Failure != nil:
		return r.Failure.Type + "/" + r.Failure.Detail, r.Failure.Message
	}
	return "value", string(r.Value)
}

package sandbox

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/sampled"
)

// toolSource returns a program with declarations and a body of Run. The gate adds the imports.
func toolSource(decls, body string) string {
	return "package tool\n\n" + decls + "\n\nfunc Run(call *recurgent.Call) (any, error) {\n\t" + body + "\n}\n"
}

// Libraries that recurse without end in native code also exhaust their process's stack. The failure is the program's:
// neither the engine nor the confinement is blamed, and the next program runs.
func TestRecursionOfLibrariesEndsTheProgram(t *testing.T) {
	p := compilePool(t, nil)
	for name, source := range sampled.Map(map[string]string{
		"xml of a type that embeds itself": toolSource("type T struct{ *T; A int }",
			"raw, err := xml.Marshal(&T{A: 1})\n\treturn string(raw), err"),
		"xml read into such a type": toolSource("type T struct{ *T; A int }",
			"var v T\n\terr := xml.Unmarshal([]byte(`<T><A>1</A></T>`), &v)\n\treturn v.A, err"),
		"xml of types that embed each other": toolSource("type T struct{ *U; A int }\ntype U struct{ *T; B int }",
			"raw, err := xml.Marshal(T{A: 1})\n\treturn string(raw), err"),
		"fmt of a map in itself": toolSource("",
			"m := map[string]any{}\n\tm[\"m\"] = m\n\treturn fmt.Sprint(m), nil"),
		"fmt of a slice in itself, by its verb": toolSource("",
			"s := []any{nil}\n\ts[0] = s\n\treturn fmt.Sprintf(\"%#v\", s), nil"),
		"a String that prints itself": toolSource(
			"type S int\n\nfunc (s S) String() string { return fmt.Sprint(s) }", "return fmt.Sprint(S(1)), nil"),
		"an Error that formats itself": toolSource(
			"type E struct{}\n\nfunc (e E) Error() string { return fmt.Errorf(\"%w\", e).Error() }", "return nil, E{}"),
		"xml of a type whose result embeds it": toolSource(
			"type T struct{ *T; A int }\n\nfunc (t T) MarshalJSON() ([]byte, error) { return xml.Marshal(t) }",
			"return T{A: 1}, nil"),
		"a function that calls itself in a sort": toolSource(
			"func f(s []int) { sort.Slice(s, func(i, j int) bool { f(s); return false }) }",
			"f([]int{1, 2, 3})\n\treturn 1, nil"),
	}, 4) {
		got := p.Run(t.Context(), request(source), &fakeHost{})
		if said(got) != "failure resource_exhausted/stack" || got.Failure.Ours ||
			!strings.Contains(got.Failure.Message, "stack") {
			t.Errorf("%s: got %s: %+v", name, said(got), got.Failure)
		}
	}
	if n := p.Stats().EngineFailures; n != 0 {
		t.Errorf("%d failures of the engine are counted", n)
	}
	if got := p.Run(t.Context(), request(toolSource("", `return "next", nil`)),
		&fakeHost{}); said(got) != `value "next"` {
		t.Errorf("the next program: %s", said(got))
	}
}

// stuckEngine is unusable after a check that overran its deadline, as the gate is.
type stuckEngine struct {
	nativeEngine
	stuck bool
}

func (e *stuckEngine) Load(source string) (*report.Facts, *report.Refusal, error) {
	if e.stuck = e.stuck || strings.Contains(source, "overruns"); e.stuck {
		return nil, &report.Refusal{Type: report.InvalidCode, Message: "an earlier check did not end"}, nil
	}
	return e.nativeEngine.Load(source)
}

// A runner whose gate overran is not kept. Another runner makes the next check.
func TestGateThatOverranIsNotKept(t *testing.T) {
	p := testPool(t, nil, hooks{args: []string{wire.RunnerArg, "stuck"}})
	slow := request("echo overruns")
	for range 3 {
		if got := p.Run(t.Context(), slow, &fakeHost{}); said(got) != "failure invalid_code/gate" {
			t.Errorf("the slow program: %s", said(got))
		}
		if _, f := p.Load(t.Context(), slow.Program, slow.Owner); f == nil || f.Type != report.InvalidCode {
			t.Errorf("Load of the slow program: %+v", f)
		}
		if n := p.Stats().Warm; n != 0 {
			t.Errorf("%d runners are kept", n)
		}
	}
	if got := p.Run(t.Context(), request("echo", "next"), &fakeHost{}); said(got) != `value ["next"]` {
		t.Errorf("the next program: %s", said(got))
	}
}

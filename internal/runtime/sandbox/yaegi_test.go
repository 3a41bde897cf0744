package sandbox

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// plainPrograms maps names to programs that yaegi runs, each with its result.
var plainPrograms = map[string]struct{ source, want string }{
	"sum":  {program("a, _ := call.Arg(0, \"a\").(float64)\n\tb, _ := call.Arg(1, \"b\").(float64)\n\treturn a + b, nil"), "value 5"},
	"loop": {program("n := 0\n\tfor i := 0; i < 10; i++ {\n\t\tn += i\n\t}\n\treturn n, nil"), "value 45"},
	"text": {program("return strings.ToUpper(fmt.Sprintf(\"%v-%v\", call.Args[0], len(call.Args))), nil", "fmt",
		"strings"), `value "2-2"`},
	"error": {program("return nil, recurgent.Fail(\"low_utility\", \"nothing found\")"),
		"authored low_utility: nothing found"},
	"panic": {program("var m map[string]int\n\tm[\"x\"] = 1\n\treturn m, nil"), "failure execution/panic"},
	"endless": {program("n := 0\n\tfor i := 0; i < 1000000000000; i++ {\n\t\tn += i\n\t}\n\treturn n, nil"),
		"failure timeout/deadline"},
	"refused": {program("return undefined, nil"), "failure invalid_code/gate"},
}

// Without a compiler, yaegi runs plain programs in the runner that has checked them, with the same results and effects.
func TestPlainProgramsRunByYaegi(t *testing.T) {
	p := yaegiPool(t, nil)
	for name, c := range plainPrograms {
		req := request(c.source, 2, 3)
		if name == "endless" {
			req.Timeout = defaultTimeout / 30
		}
		for range 2 { // the second time in the same runner
			got := p.Run(t.Context(), req, &fakeHost{})
			if said(got) != c.want {
				t.Errorf("%s: got %s, want %s: %+v", name, said(got), c.want, got.Failure)
			}
			if name != "refused" && (got.Tier != TierEngine || got.Facts == nil ||
				!strings.HasPrefix(got.Facts.Engine, report.EngineYaegi+" ")) {
				t.Errorf("%s: run by %q, %+v", name, got.Tier, got.Facts)
			}
			if name == "panic" && !strings.Contains(got.Failure.Message, "assignment to entry in nil map") {
				t.Errorf("%s: %+v", name, got.Failure)
			}
		}
	}
	for _, s := range spoilers {
		if s.name != "part of an element" && s.name != "replaced element" { // the others are not plain
			continue
		}
		first, second := p.Run(t.Context(), request(s.source()), &fakeHost{}),
			p.Run(t.Context(), request(s.source()), &fakeHost{})
		if first.Value == nil || said(first) != said(second) || !strings.HasPrefix(first.Facts.Engine,
			report.EngineYaegi+" ") {
			t.Errorf("the second run sees the first: %s, then %s", said(first), said(second))
		}
	}
	for _, name := range []string{"pure", "clock", "own", "failing"} {
		req := request(replayed()[name], 1, "two")
		got := p.Run(t.Context(), req, &fakeHost{})
		rec := Recording{Request: req, Journal: got.Effects.Journal, Value: got.Value, Authored: got.Authored}
		if got.Failure != nil {
			rec.FailureType = got.Failure.Type
		}
		rec.Now = rec.Now.AddDate(1, 0, 0)
		if cmp, err := Replay(t.Context(), p, rec,
			&refusingHost{}); err != nil || !cmp.Equal || !strings.HasPrefix(got.Facts.Engine, report.EngineYaegi+" ") {
			t.Errorf("%s: %+v, %v", name, cmp, err)
		}
	}
	if n := p.Stats().EngineFailures; n != 0 {
		t.Errorf("%d failures of the engine are counted", n)
	}
}

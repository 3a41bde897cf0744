package sandbox

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// plainPrograms are those that yaegi runs, each with its end.
var plainPrograms = map[string]struct{ source, want string }{
	"sum":     {program("a, _ := call.Arg(0, \"a\").(float64)\n\tb, _ := call.Arg(1, \"b\").(float64)\n\treturn a + b, nil"), "value 5"},
	"loop":    {program("n := 0\n\tfor i := 0; i < 10; i++ {\n\t\tn += i\n\t}\n\treturn n, nil"), "value 45"},
	"text":    {program("return strings.ToUpper(fmt.Sprintf(\"%v-%v\", call.Args[0], len(call.Args))), nil", "fmt", "strings"), `value "2-2"`},
	"error":   {program("return nil, recurgent.Fail(\"low_utility\", \"nothing found\")"), "authored low_utility: nothing found"},
	"context": {program("n, _ := call.Context[\"n\"].(float64)\n\tcall.Context[\"n\"] = n + 1\n\treturn n, nil"), "value 41"},
	"nested":  {program("o := call.Tool(\"adder\").Call(\"add\", 1, 2)\n\treturn o.Value, nil"), `value "nested"`},
	"json":    {program("raw, err := json.Marshal(call.Args)\n\treturn string(raw), err", "encoding/json"), `value "[2,3]"`},
	"panic":   {program("var m map[string]any\n\tm[\"x\"] = 1\n\treturn m, nil"), "failure execution/panic"},
	"endless": {program("for {\n\t}"), "failure timeout/deadline"},
	"refused": {program("return undefined, nil"), "failure invalid_code/gate"},
}

// Where no compiler is, yaegi runs plain programs in the runner that has checked them, and what they do and take is the same.
func TestPlainProgramsRunByYaegi(t *testing.T) {
	p := yaegiPool(t, nil)
	for name, c := range plainPrograms {
		req := request(c.source, 2, 3)
		req.Context = map[string]json.RawMessage{"n": json_("41")}
		if name == "endless" {
			req.Timeout = defaultTimeout / 30
		}
		for range 2 { // the second time in the same runner
			got := p.Run(t.Context(), req, &fakeHost{})
			if said(got) != c.want {
				t.Errorf("%s: got %s, want %s: %+v", name, said(got), c.want, got.Failure)
			}
			if name != "refused" && (got.Tier != TierEngine || got.Facts == nil || !strings.HasPrefix(got.Facts.Engine, report.EngineYaegi+" ")) {
				t.Errorf("%s: run by %q, %+v", name, got.Tier, got.Facts)
			}
			if name == "panic" && !strings.Contains(got.Failure.Message, "assignment to entry in nil map") {
				t.Errorf("%s: %+v", name, got.Failure)
			}
		}
	}
	if n := p.Stats().EngineFailures; n != 0 {
		t.Errorf("%d failures of the engine are counted", n)
	}
}

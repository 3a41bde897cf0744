package operator_test

import (
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// A verdict that agrees with a person's example is kept, and the example stays the person's.
func TestVerdictOnGivenExample(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"tax.net": {run("\treturn call.Args[0].(float64) * 0.7, nil")}})
	given, err := g.op.PutExamples(t.Context(), operator.ExamplesPut{Role: "tax", Method: "net", Actor: "op",
		Examples: []agent.Example{{Args: []json.RawMessage{json.RawMessage("1000")},
			Expect: agent.Expectation{Value: json.RawMessage("700")}}}})
	if err != nil {
		t.Fatal(err)
	}
	call := g.conversation(t, "tax")
	v, _, err := g.op.Judge(t.Context(), call("net", 1000).CallID, operator.Judgement{Verdict: agent.VerdictRight,
		Actor: "ann", MayOperate: true})
	if err != nil || v.Verdict != agent.VerdictRight || v.ExampleID != nil {
		t.Errorf("the verdict is %+v (%v), want one without an example", v, err)
	}
	list, err := g.op.Examples(t.Context(), "tax", "net")
	if err != nil || len(list) != 1 || list[0].ID != given[0].ID {
		t.Errorf("the examples are %+v (%v), want %s alone", list, err, given[0].ID)
	}
}

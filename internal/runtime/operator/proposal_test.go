package operator_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A verdict by a person without the scope operate is a proposal: it forges, drops and doubts nothing until it is
// accepted. If rejected, it leaves nothing.
func TestProposals(t *testing.T) {
	t.Parallel()
	for _, accept := range []bool{true, false} {
		g := newRig(t, map[string][]string{"tax.net": {run("\treturn call.Args[0].(float64) * 0.6, nil"),
			run("\treturn call.Args[0].(float64) * 0.7, nil")}})
		_, err := g.ChangePolicy(t.Context(), func(p agent.Policy) (agent.Policy, *agent.AuditEntry, error) {
			p.Correction = agent.CorrectNextCall
			return p, nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		call := g.conversation(t, "tax")
		judged := call("net", 1000)
		v, _, err := g.op.Judge(t.Context(), judged.CallID, operator.Judgement{Verdict: agent.VerdictWrong,
			Expected: json.RawMessage("700"), Note: "70 percent", Actor: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if v.ExampleState == nil || *v.ExampleState != agent.ExampleProposed || v.DroppedFixtures != 0 ||
			v.Correction.State != agent.CorrectionNone {
			t.Fatalf("a verdict without the right to operate is %+v", v)
		}
		if r := call("net", 1000); string(r.Outcome.Value) != "600" || r.Program.Doubted {
			t.Fatalf("while it is proposed the answer is %s, doubted %v", r.Outcome.Value, r.Program.Doubted)
		}
		decision := operator.ExampleDecision{Role: "tax", Method: "net", ID: *v.ExampleID, Accept: accept, Actor: "op"}
		if _, err := g.op.DecideExample(t.Context(), decision); err != nil {
			t.Fatal(err)
		}
		if _, err := g.op.DecideExample(t.Context(), decision); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a second decision ends in %v, want not found", err)
		}
		want, requests := "600", 1
		if accept {
			want, requests = "700", 2
		}
		if r := call("net", 1000); string(r.Outcome.Value) != want || g.model.Count("tax.net", "") != requests {
			t.Errorf("accepted %v: the answer is %s after %d model requests, want %s after %d", accept, r.Outcome.Value,
				g.model.Count("tax.net", ""), want, requests)
		}
		list, err := g.op.Examples(t.Context(), "tax", "net")
		if err != nil || accept != (len(list) == 1 && list[0].State == agent.ExampleActive) || !accept &&
			len(list) != 0 {
			t.Errorf("accepted %v: the examples are %+v (%v)", accept, list, err)
		}
	}
}

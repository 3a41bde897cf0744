package operator_test

import (
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
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

// An example that a person states again without its id is the person's own: it outlives the session of the call that
// gave it. One that is sent back with its id goes with the session.
func TestStatedExampleOutlivesTheSession(t *testing.T) {
	t.Parallel()
	for _, withID := range []bool{false, true} {
		g := newRig(t, map[string][]string{"tax.net": {run("\treturn call.Args[0].(float64) * 0.7, nil")}})
		reply := g.conversation(t, "tax")("net", 1000)
		if _, _, err := g.op.Judge(t.Context(), reply.CallID, operator.Judgement{Verdict: agent.VerdictRight,
			Actor: "ann", MayOperate: true}); err != nil {
			t.Fatal(err)
		}
		list, err := g.op.Examples(t.Context(), "tax", "net")
		if err != nil || len(list) != 1 || list[0].SessionID == "" {
			t.Fatalf("the examples are %+v (%v), want one of the call's session", list, err)
		}
		stated := agent.Example{Args: list[0].Args, Expect: list[0].Expect}
		session, id := list[0].SessionID, list[0].ID
		if withID {
			stated.ID = id
		}
		if list, err = g.op.PutExamples(t.Context(), operator.ExamplesPut{Role: "tax", Method: "net", Actor: "op",
			Examples: []agent.Example{stated}, Revision: store.AnyRevision}); err != nil || len(list) != 1 ||
			list[0].ID != id {
			t.Fatalf("the examples are %+v (%v), want %s", list, err, id)
		}
		if err = g.memory.DeleteSession(t.Context(), session, nil); err != nil {
			t.Fatal(err)
		}
		if list, err = g.op.Examples(t.Context(), "tax", "net"); err != nil || len(list) == 0 != withID {
			t.Errorf("with its id %t: after the session's deletion the examples are %+v (%v)", withID, list, err)
		}
	}
}

package agent_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// The newest verdicts are kept. Proposals, which any caller can make, do not displace active ones.
func TestVerdictsAreBounded(t *testing.T) {
	t.Parallel()
	a := (*agent.Artifact)(nil).Apply(adopt("gen-1", "initial_forge", "none"))
	judge := func(id, state string) {
		c := change("")
		c.Verdict = &agent.Verdict{CallID: id, Verdict: agent.VerdictWrong, State: state,
			Args: []json.RawMessage{json.RawMessage(`"` + id + `"`)}}
		a = a.Apply(c)
	}
	judge("the first", agent.ExampleActive)
	for i := range agent.MaxVerdicts + 5 {
		judge(fmt.Sprintf("proposal %d", i), agent.ExampleProposed)
	}
	if v := a.Verdict("the first"); v == nil || !v.Wrong() || len(a.Verdicts) != agent.MaxVerdicts+1 ||
		a.Verdict("proposal 4") != nil || a.Verdict("proposal 5") == nil {
		t.Errorf("%d verdicts are kept, the first is %+v", len(a.Verdicts), v)
	}
	for i := range agent.MaxVerdicts {
		judge(fmt.Sprintf("call %d", i), agent.ExampleActive)
	}
	if a.Verdict("the first") != nil || a.Verdict("call 0") == nil || len(a.Verdicts) != 2*agent.MaxVerdicts {
		t.Errorf("%d verdicts are kept", len(a.Verdicts))
	}
}

// Withdrawing or replacing a proposal does not remove an example that an operator has since put in its place.
func TestProposalsTakeNothingThatCounts(t *testing.T) {
	t.Parallel()
	seven, six := json.RawMessage("7"), json.RawMessage("6")
	proposed := agent.Verdict{CallID: "call_1", Verdict: agent.VerdictWrong, State: agent.ExampleProposed,
		Expected: seven, ExampleID: "ex_1"}
	x := agent.Example{ID: "ex_1", CallID: "call_1", State: agent.ExampleProposed,
		Expect: agent.Expectation{Value: seven}}
	a := (*agent.Artifact)(nil).Apply(adopt("gen-1", "initial_forge", "none"))
	c := change("")
	c.Verdict, c.Example, c.Proposal = &proposed, &x, true
	a = a.Apply(c)
	if c.Renews() {
		t.Error("a proposal is a new beginning for the method")
	}
	theirs := x
	theirs.State, theirs.Expect.Value = agent.ExampleActive, six
	c = change("")
	c.Examples = &[]agent.Example{theirs}
	a = a.Apply(c)
	if !c.Renews() {
		t.Error("examples that are put are no new beginning")
	}
	again := proposed
	again.ExampleID = ""
	for name, c := range map[string]agent.ArtifactChange{"taken back": {DropVerdict: "call_1"},
		"replaced": {Verdict: &again}} {
		c.Role, c.MethodName = a.Role, a.MethodName
		if left := a.Apply(c).Examples; len(left) != 1 || left[0].State != agent.ExampleActive {
			t.Errorf("%s: %+v are left", name, left)
		}
	}
}

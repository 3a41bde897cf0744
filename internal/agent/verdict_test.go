package agent_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Of many verdicts the newest are kept. Proposals, which anybody who may call can make, displace none that counts.
func TestVerdictsAreBounded(t *testing.T) {
	t.Parallel()
	a := (*agent.Artifact)(nil).Apply(adopt("gen-1", "initial_forge", "none"))
	judge := func(id, state string) {
		c := change("")
		c.Verdict = &agent.Verdict{CallID: id, Verdict: agent.VerdictWrong, State: state, Args: []json.RawMessage{json.RawMessage(`"` + id + `"`)}}
		a = a.Apply(c)
	}
	judge("the first", agent.ExampleActive)
	for i := range agent.MaxVerdicts + 5 {
		judge(fmt.Sprintf("proposal %d", i), agent.ExampleProposed)
	}
	if v := a.Verdict("the first"); v == nil || !v.Wrong() || len(a.Verdicts) != agent.MaxVerdicts+1 || a.Verdict("proposal 4") != nil || a.Verdict("proposal 5") == nil {
		t.Errorf("%d verdicts are kept, the first is %+v", len(a.Verdicts), v)
	}
	for i := range agent.MaxVerdicts {
		judge(fmt.Sprintf("call %d", i), agent.ExampleActive)
	}
	if a.Verdict("the first") != nil || a.Verdict("call 0") == nil || len(a.Verdicts) != 2*agent.MaxVerdicts {
		t.Errorf("%d verdicts are kept", len(a.Verdicts))
	}
}

package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// An example that a person gave outlives the session of a call that was judged to be right for the same input. Another
// expectation of a later verdict replaces it.
func TestGivenExampleStays(t *testing.T) {
	t.Parallel()
	given := []agent.Example{{ID: "ex_given", Args: []json.RawMessage{json.RawMessage("1")}, State: agent.ExampleActive,
		Expect: agent.Expectation{Value: json.RawMessage("2")}}}
	for _, c := range []struct {
		says, want string
		left       int
	}{{"2.0", "ex_given", 1}, {"3", "ex_judged", 0}} {
		judged := agent.Example{ID: "ex_judged", Args: []json.RawMessage{json.RawMessage("1.0")},
			State: agent.ExampleActive, Expect: agent.Expectation{Value: json.RawMessage(c.says)},
			CallID: "call_1", SessionID: "sess_1"}
		a := new(agent.Artifact).Apply(agent.ArtifactChange{Role: "r", MethodName: "m", Examples: &given}).
			Apply(agent.ArtifactChange{Role: "r", MethodName: "m", Example: &judged})
		if len(a.Examples) != 1 || a.Examples[0].ID != c.want {
			t.Errorf("after a verdict that says %s: the examples are %+v, want %s", c.says, a.Examples, c.want)
		}
		a = a.Apply(agent.ArtifactChange{Role: "r", MethodName: "m", ForgetSession: "sess_1"})
		if len(a.Examples) != c.left {
			t.Errorf("without the session of a verdict that says %s: %d examples, want %d", c.says, len(a.Examples), c.left)
		}
	}
}

package runtime

import (
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
)

// approvalOfReach describes what a person has to allow before the program serves.
func approvalOfReach(c *call.Selection, beyond *agent.Effects) *fetch.Approval {
	if m := c.Artifact.Manifest; c.Policy.Effects == agent.EffectsEnforce && m != nil &&
		!slices.ContainsFunc([][]string{beyond.Hosts, beyond.Methods, beyond.Tools},
			func(l []string) bool { return slices.Contains(l, "*") }) {
		if lacks := m.Missing(*beyond); !lacks.Empty() {
			return attempt.ApprovalOf(c.Role, c.Method, "reach what its predecessors did not", lacks)
		}
	}
	a := attempt.ApprovalOf(c.Role, c.Method, "", *beyond)
	a.Request = "POST " + attempt.ToolPath(c.Role, c.Method) + "/approve"
	a.Message = "it would reach what its predecessors did not (" + strings.Join(reached(beyond), ", ") +
		"): recurgentd tools approve " + attempt.ShellWord(c.Role) + " " + attempt.ShellWord(c.Method)
	return a
}

// reached returns the names of the effects. A "*" becomes a description.
func reached(e *agent.Effects) (all []string) {
	for _, l := range []struct {
		computed string
		list     []string
	}{{"hosts that it computes", e.Hosts}, {"HTTP methods that it computes", e.Methods},
		{"tools that it computes", e.Tools}} {
		for _, name := range l.list {
			if name == "*" {
				name = l.computed
			}
			all = append(all, name)
		}
	}
	return all
}

// repairAwaits is the value of metadata.repair of a failure while a program that may do better waits for a person.
const repairAwaits = "awaiting_approval"

// withWaiting adds to a failure that a newer program waits for a person's approval, and of what. It returns o unchanged
// if beyond is nil.
func withWaiting(c *call.Selection, o agent.Outcome, beyond *agent.Effects) agent.Outcome {
	if o.OK() || beyond == nil {
		return o
	}
	a := approvalOfReach(c, beyond)
	o.ErrorMessage += "; another program waits for a person's approval: " + a.Message
	o.Metadata = judge.With(judge.With(judge.With(o.Metadata, "approve", a.Request), "lacks", a.Details), "repair",
		repairAwaits)
	return o
}

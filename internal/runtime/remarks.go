package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of the remarks in a prompt.
const (
	remarkEntries = 200  // requests for programs in the audit trail that are read,
	remarkScan    = 2000 // among so many of its newest entries
	shownRemarks  = 3    // entries, and calls of each kind, that are shown
)

// describeReasons says why people asked for another program, or for a stronger contract, since the current one was written.
func (c *selected) describeReasons(ctx context.Context, e *evidenceText) {
	g := c.artifact
	if g == nil || g.Current() == nil {
		return
	}
	since := agent.FormatTime(g.Current().CreatedAt)
	entries, err := c.r.store.Audit(ctx, store.AuditQuery{Limit: remarkEntries, Actions: []string{"artifact.regenerate", "recommendation.apply"}, Scan: &store.Scan{Most: remarkScan}})
	if err != nil {
		return // a poorer prompt is better than no program
	}
	shown := 0
	for i := range entries {
		a := &entries[i]
		if a.Timestamp < since || shown == shownRemarks {
			return
		}
		if a.Reason != "" && c.asksForProgram(a) {
			e.add("a person's reason to ask for this program: %s", Clip(a.Reason, 600))
			shown++
		}
	}
}

// asksForProgram reports whether the operation asked for another program of the method.
func (c *selected) asksForProgram(a *agent.AuditEntry) bool {
	switch a.Action {
	case "artifact.regenerate":
		return a.Target == c.role+"."+c.method
	case "recommendation.apply":
		var advice struct{ Role, Method string }
		return json.Unmarshal(a.After, &advice) == nil && advice.Role == c.role && advice.Method == c.method
	}
	return false
}

// describeRemarks says which answers of the method were weak, with the newest sample of each kind, and what was asked again
// after one. A nested call counts as asked again where its root was.
func (c *selected) describeRemarks(ctx context.Context, e *evidenceText) {
	known, err := c.r.store.Evidence(ctx, c.role, c.method)
	if err != nil {
		return
	}
	shown := map[string]bool{} // reasons, and what was asked again
	weak, again := 0, 0
	for _, n := range slices.Backward(known.Notes) {
		if reasons := strings.Join(n.Weak, ", "); reasons != "" && weak < shownRemarks && !shown[reasons] {
			weak, shown[reasons] = weak+1, true
			e.add("a weak answer (%s): args %s were answered with %s", reasons, Clip(c.argsOf(ctx, n.CallID), 120), Clip(c.valueOf(ctx, n.CallID), 200))
		}
		if n.CorrectedBy != "" && again < shownRemarks {
			line := fmt.Sprintf("after an answer to args %s the caller asked again: %s", Clip(c.argsOf(ctx, n.CallID), 120), Clip(c.argsOf(ctx, n.CorrectedBy), 120))
			if !shown[line] {
				again, shown[line] = again+1, true
				e.add("%s", line)
			}
		}
		if weak == shownRemarks && again == shownRemarks {
			return
		}
	}
}

// argsOf are the arguments of a call, secrets masked, while the log has it.
func (c *selected) argsOf(ctx context.Context, callID string) string {
	got, err := c.r.store.Call(ctx, callID)
	if err != nil {
		return "that are not kept any more"
	}
	return string(rawArray(got.Log.Args))
}

// valueOf is the value of a call while it is kept, secrets masked.
func (c *selected) valueOf(ctx context.Context, callID string) string {
	got, err := c.r.store.Call(ctx, callID)
	if err != nil || got.Outcome == nil {
		return "a value that is not kept any more"
	}
	masked, _ := c.rules.JSON(got.Outcome.Value)
	return string(masked)
}

package runtime

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of what is read for remarks: the newest calls of the log and entries of the audit trail, and of these the ones
// that are shown.
const (
	remarkCalls   = 1000
	remarkEntries = 200
	shownRemarks  = 3
)

// describeReasons says why people asked for another program, or for a stronger contract, since the current one was written.
func (c *selected) describeReasons(ctx context.Context, e *evidenceText) {
	g := c.artifact
	if g == nil || g.Current() == nil {
		return
	}
	since := agent.FormatTime(g.Current().CreatedAt)
	entries, err := c.r.store.Audit(ctx, "", remarkEntries)
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

// describeRemarks says which answers of the method were weak, with a sample, and what was asked again after one. A nested
// call counts as asked again where its root was.
func (c *selected) describeRemarks(ctx context.Context, e *evidenceText) {
	entries, err := c.r.store.ListCalls(ctx, store.CallQuery{Limit: remarkCalls})
	if err != nil {
		return
	}
	byID := make(map[string]*agent.LogEntry, len(entries))
	for i := range entries {
		byID[entries[i].CallID] = &entries[i]
	}
	weak, again := 0, 0
	for i := range entries { // newest first
		x := &entries[i]
		if x.Role != c.role || x.Method != c.method {
			continue
		}
		if len(x.WeakSuccessReasons) > 0 && weak < shownRemarks {
			weak++
			e.add("a weak answer (%s): args %s were answered with %s", strings.Join(x.WeakSuccessReasons, ", "), Clip(string(rawArray(x.Args)), 120), Clip(c.valueOf(ctx, x.CallID), 200))
		}
		if root := rootOf(byID, x); root.CorrectedBy != "" && again < shownRemarks {
			again++
			asked := "the same"
			if next := byID[root.CorrectedBy]; next != nil {
				asked = string(rawArray(next.Args))
			}
			e.add("after an answer to args %s the caller asked again: %s", Clip(string(rawArray(x.Args)), 120), Clip(asked, 120))
		}
	}
}

// rootOf is the call of a client under which the call was made, or the highest that is known.
func rootOf(byID map[string]*agent.LogEntry, e *agent.LogEntry) *agent.LogEntry {
	for e.ParentCallID != "" && byID[e.ParentCallID] != nil {
		e = byID[e.ParentCallID]
	}
	return e
}

// valueOf is the value of a call while it is kept, secrets masked.
func (c *selected) valueOf(ctx context.Context, callID string) string {
	got, err := c.r.store.Call(ctx, callID)
	if err != nil || got.Outcome == nil {
		return "a value that is not kept any more"
	}
	masked, _ := history.Mask(got.Outcome.Value, c.policy.RedactKeys)
	return string(masked)
}

package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of the remarks in a prompt.
const (
	remarkEntries = 200  // requests for programs that are read from the audit trail,
	remarkScan    = 2000 // among this many of its newest entries
	ShownRemarks  = 3    // entries, and calls of each kind, that are shown
)

// describeReasons adds why people asked for another program, or for a stronger contract, since the current program was
// written.
func describeReasons(ctx context.Context, c *call.Selection, e *evidenceText) {
	g := c.Artifact
	if g == nil || g.Current() == nil {
		return
	}
	since := agent.FormatTime(g.Current().CreatedAt)
	entries, err := c.Env.Store.Audit(ctx, store.AuditQuery{Limit: remarkEntries,
		Actions: []string{"artifact.regenerate", "recommendation.apply"}, Since: since,
		Scan: &store.Scan{Most: remarkScan}})
	if err != nil {
		return // a poorer prompt is better than no program
	}
	shown := 0
	for i := range entries {
		a := &entries[i]
		if shown == ShownRemarks {
			return
		}
		if a.Reason != "" && asksForProgram(c, a) {
			e.say("a person's reason to ask for this program: %s", agent.Clip(a.Reason, 600))
			shown++
		}
	}
}

// asksForProgram reports whether the operation asked for another program of the method.
func asksForProgram(c *call.Selection, a *agent.AuditEntry) bool {
	switch a.Action {
	case "artifact.regenerate":
		return a.Target == c.Role+"."+c.Method
	case "recommendation.apply":
		var advice struct{ Role, Method string }
		return json.Unmarshal(a.After, &advice) == nil && advice.Role == c.Role && advice.Method == c.Method
	}
	return false
}

// describeRemarks adds which answers of the method were weak, with the newest sample of each kind, and what callers
// asked again after an answer. A nested call counts as asked again if its root call was.
func describeRemarks(ctx context.Context, c *call.Selection, e *evidenceText) {
	known, err := c.Env.Store.Evidence(ctx, c.Role, c.Method)
	if err != nil {
		return
	}
	shown := map[string]bool{} // reasons, and what was asked again
	weak, again := 0, 0
	for _, n := range slices.Backward(known.Notes) {
		if reasons := strings.Join(n.Weak, ", "); reasons != "" && weak < ShownRemarks && !shown[reasons] {
			weak, shown[reasons] = weak+1, true
			e.add(weakAnswer(c, readLogged(ctx, c, n.CallID), n.Weak))
		}
		if n.CorrectedBy != "" && again < ShownRemarks {
			q := askedAgain(c, readLogged(ctx, c, n.CallID), readLogged(ctx, c, n.CorrectedBy))
			if line := q.For(c.Reader()); !shown[line] {
				again, shown[line] = again+1, true
				e.add(q)
			}
		}
		if weak == ShownRemarks && again == ShownRemarks {
			return
		}
	}
}

// weakAnswer describes an answer that was a weak success.
func weakAnswer(c *call.Selection, was loggedCall, reasons []string) prompt.Quote {
	return c.Quote(was.owner, fmt.Sprintf("a weak answer (%s): args %s were answered with %s",
		strings.Join(reasons, ", "), agent.Clip(was.args, 120), agent.Clip(was.value, 200)),
		fmt.Sprintf("a weak answer (%s) to an input of the form %s",
			strings.Join(evolve.WeakKinds(reasons, c.Declared), ", "), was.form))
}

// askedAgain describes an answer after which the caller asked again.
func askedAgain(c *call.Selection, was, next loggedCall) prompt.Quote {
	return c.Quote(was.owner, fmt.Sprintf("after an answer to args %s the caller asked again: %s", agent.Clip(was.args,
		120),
		agent.Clip(next.args, 120)),
		"after an answer to an input of the form "+was.form+" the caller asked again")
}

// A loggedCall is a logged call as prompts quote it, secrets masked.
type loggedCall struct {
	owner string // "" if it is unknown
	args  string
	value string
	form  string // shape of the arguments, without their content
}

// readLogged reads a call from the log. If the call is gone, the texts state that.
func readLogged(ctx context.Context, c *call.Selection, callID string) loggedCall {
	was := loggedCall{args: "that are not kept any more", value: "a value that is not kept any more",
		form: "that is not kept any more"}
	got, err := c.Env.Store.Call(ctx, callID)
	if err != nil {
		return was
	}
	if was.owner = got.Log.Owner; was.owner == "" {
		was.owner = c.OwnerOfSession(ctx, got.Log.SessionID)
	}
	was.args, was.form = string(jsonenc.Array(got.Log.Args)), c.Outlined(got.Log.Args, got.Log.Kwargs)
	if got.Outcome != nil {
		masked, _ := c.Rules.JSON(got.Outcome.Value)
		was.value = string(masked)
	}
	return was
}

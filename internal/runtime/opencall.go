package runtime

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/lifetime"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// A Call is a checked request of a client or a program. Except for the fields marked otherwise, it does not change once it
// is registered as running: views, flights and nested calls read it concurrently.
type Call struct {
	env     *env.Env
	policy  *agent.Policy // as of the start of the call
	rules   *mask.Rules   // rules for secrets, as of the start of the call
	session agent.Session
	id      string
	traceID string
	depth   int
	speaker string
	owner   string

	operates bool // the owner's token has the scope operate

	parent        string // ID of the call whose program made this one; "" at depth 0
	root          string // ID of the client's call at the root; "" at depth 0
	parentAttempt string // attempt that made this call; "" at depth 0

	role, method string
	args         []json.RawMessage
	kwargs       json.RawMessage
	inputHistory json.RawMessage     // nil if the call has none
	inputTurns   []history.Turn      // decoded inputHistory
	signature    *contract.Signature // describes the turns; nil if there is none

	// JSON pointer to the argument that held inputHistory; "" if it came as the call's history
	historyArgument string
	// contract resolved for the check of the history input; reused unless the call waits for its turn
	early   *terms
	asked   *agent.Contract // contract given by the caller
	started time.Time
	fence   int64 // epoch under which its session is owned; 0 without other replicas

	inherited []string                   // secrets of the calls above
	input     atomic.Pointer[shownInput] // args and kwargs as they may be shown
	first     shownInput                 // the first value of input; saves an allocation

	tree      *tree
	own       tree         // tree of a root call
	begins    fetch.Place  // position in the tree's ledger at which the call's programs begin
	slept     atomic.Int64 // nanoseconds that its programs slept
	weakBelow atomic.Int32 // weak successes among the calls below it
	deadline  time.Time    // of the whole call; zero if there is none
	life      lifetime.Context
	// files of its programs, and of the programs that wait for this call, which it may read; used only by the goroutine
	// that runs the call
	drafts, lent []*files.Draft
	progress     progress.Log
	span         *telemetry.Span // nil if traces are off
}

// A tree holds what a root call shares with the nested calls below it. Only the fields that several goroutines may use
// at once are atomic.
type tree struct {
	made    atomic.Int32 // nested calls
	refused atomic.Bool  // one refusal has been recorded
	written atomic.Bool  // a model was asked for a program
	usage   agent.Usage  // of the nested calls; written by the goroutine that runs the tree
	writes  fetch.Ledger // writes of all calls; used by the same goroutine
}

// named adds the names under which an outcome is reported, and bounds its message.
func (c *Call) named(o agent.Outcome) agent.Outcome {
	o.ToolRole, o.MethodName = c.role, c.method
	if !o.OK() {
		o.ErrorMessage = agent.Clip(o.ErrorMessage, 4000)
	}
	return o
}

// dispatch reports whether the method is one whose program is written anew for each call.
func (c *Call) dispatch() bool { return slices.Contains(c.policy.DispatchMethods, c.method) }

// charge returns the hook that is asked before each model request made for the call.
func (c *Call) charge() provider.Charge {
	return c.env.Spend.Charge(spend.Request{Role: c.role, Method: c.method, Owner: c.owner, Model: c.model()})
}

// underSwitch reports whether a switch makes the call forge.
func (c *Call) underSwitch() bool { return selection.Switch(c.policy, c.role) != "" }

// runsFor returns the owner that a program runs as when its input belongs to the owner named by of; "" means the call's
// own input. Another owner's input gets a separate owner, and so a process that no call of this call's owner uses.
func (c *Call) runsFor(of string) agent.Owner {
	if of == "" || of == c.reader() {
		return c.env.Owner(c.owner)
	}
	return c.env.Owner(c.owner + "\x00" + of)
}

// overBudget returns why the nested call exceeds the policy's depth or number of calls, or "".
func (c *Call) overBudget() string {
	switch {
	case c.depth > c.policy.DelegationDepth:
		return "calls are nested too deep"
	case c.tree.made.Add(1) > int32(c.policy.NestedCallBudget):
		return "the call has made as many nested calls as it may"
	}
	return ""
}

// hasArgs reports whether the call has any argument, positional or by name.
func (c *Call) hasArgs() bool { return len(c.args) > 0 || len(c.kwargs) > len("{}") }

// model returns the session's model, or the daemon's default if the session has none.
func (c *Call) model() string {
	if c.session.Model != "" {
		return c.session.Model
	}
	return c.env.Model
}

// entry returns a log entry for a call that is still running.
func (c *Call) entry() agent.LogEntry {
	return agent.LogEntry{Timestamp: agent.FormatTime(c.started), Runtime: "go", SessionID: c.session.ID,
		Owner: agent.LoggedOwner(c.session.Owner), TraceID: c.traceID, CallID: c.id,
		ParentCallID: c.parent, Depth: c.depth, Role: c.role, Model: c.model(), Method: c.method, Args: c.shown().args,
		Kwargs:     c.shown().kwargs,
		DurationMs: agent.Milliseconds(c.env.Now().Sub(c.started)), OutcomeStatus: agent.StatusRunning,
		Stage: c.progress.Last(), SandboxLevel: string(c.env.Level)}
}

// beginSpan begins the call's span if traces are on: below the calling call's span, or in the client's trace.
func (c *Call) beginSpan(traceParent string, parent *telemetry.Span) {
	if c.env.Tracer == nil {
		return
	}
	c.span = c.env.Tracer.Start(telemetry.SpanStart{Name: "call " + c.role + "." + c.method, TraceID: c.traceID,
		TraceParent: traceParent,
		Parent:      parent, At: c.started})
}

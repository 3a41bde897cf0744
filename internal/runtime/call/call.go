// Package call holds the checked request of a client or a program, with its contract and its secrets, and the Selection
// of the program that answers it. It masks everything that leaves a call for the store, a log or a model. The package
// knows nothing about how programs are written or run.
package call

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

// A Call is a checked request of a client or a program. Except for the fields marked otherwise, it does not change once
// it is registered as running: views, flights and nested calls read it concurrently.
type Call struct {
	Env     *env.Env
	Policy  *agent.Policy // as of the start of the call
	Rules   *mask.Rules   // rules for secrets, as of the start of the call
	Session agent.Session
	ID      string
	TraceID string
	Depth   int
	Speaker string
	Owner   string

	Operates bool // the owner's token has the scope operate

	Parent        string // ID of the call whose program made this one; "" at depth 0
	Root          string // ID of the client's call at the root; "" at depth 0
	ParentAttempt string // attempt that made this call; "" at depth 0

	Role, Method string
	Args         []json.RawMessage
	Kwargs       json.RawMessage
	InputHistory json.RawMessage     // nil if the call has none
	inputTurns   []history.Turn      // decoded inputHistory
	signature    *contract.Signature // describes the turns; nil if there is none

	// JSON pointer to the argument that held inputHistory; "" if it came as the call's history
	historyArgument string
	// contract resolved for the check of the history input; reused unless the call waits for its turn
	Early   *Terms
	Asked   *agent.Contract // contract given by the caller
	Started time.Time
	Fence   int64 // epoch under which its session is owned; 0 without other replicas

	Inherited []string              // secrets of the calls above
	input     atomic.Pointer[Input] // args and kwargs as they may be shown
	first     Input                 // the first value of input; saves an allocation

	Tree      *Tree
	Own       Tree         // tree of a root call
	Begins    fetch.Place  // position in the tree's ledger at which the call's programs begin
	Slept     atomic.Int64 // total sleep of its programs in nanoseconds
	WeakBelow atomic.Int32 // weak successes among the calls below it
	Deadline  time.Time    // of the whole call; zero if there is none
	Life      lifetime.Context
	// files of its programs, and files that it may read of the programs that wait for this call; used only by the
	// goroutine that runs the call
	Drafts, Lent []*files.Draft
	Progress     progress.Log
	Span         *telemetry.Span // nil if traces are off
}

// A Tree holds what a root call shares with the nested calls below it. Only the fields that several goroutines may use
// at once are atomic.
type Tree struct {
	made    atomic.Int32 // nested calls
	Refused atomic.Bool  // one refusal has been recorded
	Written atomic.Bool  // a model was asked for a program
	Usage   agent.Usage  // of the nested calls; written by the goroutine that runs the tree
	Writes  fetch.Ledger // writes of all calls; used by the same goroutine
}

// Named adds the names under which an outcome is reported, and bounds its message.
func (c *Call) Named(o agent.Outcome) agent.Outcome {
	o.ToolRole, o.MethodName = c.Role, c.Method
	if !o.OK() {
		o.ErrorMessage = agent.Clip(o.ErrorMessage, 4000)
	}
	return o
}

// Dispatch reports whether each call of the method gets a new program.
func (c *Call) Dispatch() bool { return slices.Contains(c.Policy.DispatchMethods, c.Method) }

// Charge returns the hook that is asked before each model request made for the call.
func (c *Call) Charge() provider.Charge {
	return c.Env.Spend.Charge(spend.Request{Role: c.Role, Method: c.Method, Owner: c.Owner, Model: c.Model()})
}

// UnderSwitch reports whether a switch makes the call forge.
func (c *Call) UnderSwitch() bool { return selection.Switch(c.Policy, c.Role) != "" }

// RunsFor returns the owner that a program runs as when its input belongs to the owner named by of; "" means the call's
// own input. Another owner's input gets a separate owner, and so a process that no call of this call's owner uses.
func (c *Call) RunsFor(of string) agent.Owner {
	if of == "" || of == c.Reader() {
		return c.Env.Owner(c.Owner)
	}
	return c.Env.Owner(c.Owner + "\x00" + of)
}

// OverBudget returns why the nested call exceeds the policy's depth or number of calls, or "".
func (c *Call) OverBudget() string {
	switch {
	case c.Depth > c.Policy.DelegationDepth:
		return "calls are nested too deep"
	case c.Tree.made.Add(1) > int32(c.Policy.NestedCallBudget):
		return "the call has made as many nested calls as it may"
	}
	return ""
}

// HasArgs reports whether the call has any argument, positional or by name.
func (c *Call) HasArgs() bool { return len(c.Args) > 0 || len(c.Kwargs) > len("{}") }

// Model returns the session's model, or the daemon's default if the session has none.
func (c *Call) Model() string {
	if c.Session.Model != "" {
		return c.Session.Model
	}
	return c.Env.Model
}

// Entry returns a log entry for a call that is still running.
func (c *Call) Entry() agent.LogEntry {
	return agent.LogEntry{Timestamp: agent.FormatTime(c.Started), Runtime: "go", SessionID: c.Session.ID,
		Owner: agent.LoggedOwner(c.Session.Owner), TraceID: c.TraceID, CallID: c.ID,
		ParentCallID: c.Parent, Depth: c.Depth, Role: c.Role, Model: c.Model(), Method: c.Method, Args: c.Shown().Args,
		Kwargs:     c.Shown().Kwargs,
		DurationMs: agent.Milliseconds(c.Env.Now().Sub(c.Started)), OutcomeStatus: agent.StatusRunning,
		Stage: c.Progress.Last(), SandboxLevel: string(c.Env.Level)}
}

// BeginSpan begins the call's span if traces are on: below the calling call's span, or in the client's trace.
func (c *Call) BeginSpan(traceParent string, parent *telemetry.Span) {
	if c.Env.Tracer == nil {
		return
	}
	c.Span = c.Env.Tracer.Start(telemetry.SpanStart{Name: "call " + c.Role + "." + c.Method, TraceID: c.TraceID,
		TraceParent: traceParent,
		Parent:      parent, At: c.Started})
}

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// call is one call on its way. It belongs to one goroutine, but for what flights and views read: the fields above the
// line, which do not change once it is entered.
type call struct {
	r       *Runtime
	p       *agent.Policy // as it was when the call began
	session agent.Session
	id      string
	traceID string
	parent  string // call id of the caller, "" at depth 0
	attempt string // the caller's attempt that made this call
	depth   int
	speaker string
	owner   string

	role, method string
	args         []json.RawMessage
	kwargs       json.RawMessage
	inputHistory json.RawMessage
	asked        *agent.Contract // by the caller
	started      time.Time
	root         *call
	nested       nestedBudget // of the root: for the whole tree of calls
	cancel       context.CancelCauseFunc
	progress     progress
	key          *store.Idempotent
	maskedArgs   []json.RawMessage
	maskedKwargs json.RawMessage
	masked       bool // something was masked: the call cannot be replayed and is no fixture

	// ----

	contract       *agent.Contract
	contractSource string
	fingerprint    string
	checked        string // fingerprint of the machine-checked parts
	schema         *contract.Schema

	context   map[string]json.RawMessage
	artifact  *agent.Artifact
	decision  Decision
	drifted   bool                       // what the stored program failed of is that the outside changed its form
	delegated map[string]*agent.Contract // contracts this call's program delegated with

	attempts int // programs run or refused, for attempt ids
	budgets  budgets
	leaves   []func() // flights to leave at the end
	found    findings
	changes  []agent.ArtifactChange
	adopting *adoption
	stages   telemetry.Stages
	span     *telemetry.Span // nil without traces
}

// nestedBudget bounds the nested calls of one root call.
type nestedBudget struct {
	made    atomic.Int32
	refused atomic.Bool // a refusal is on record
}

// budgets are what is left of the policy's attempts for this call.
type budgets struct{ guardrail, execution, outcome int }

// Call takes one client's call and returns when it is durable. ctx ends with the client: the call is then
// canceled. Errors mean that no call took place.
func (r *Runtime) Call(ctx context.Context, q CallRequest) (CallResult, error) {
	ctx, c, replay, err := r.open(ctx, q)
	if c == nil {
		return replay, err
	}
	return r.carry(ctx, c, q.Timeout)
}

// Start takes a call that nobody waits for: it outlives its request. done gets the one result.
func (r *Runtime) Start(q CallRequest) (callID string, done <-chan CallResult, err error) {
	ctx, c, replay, err := r.open(r.life, q)
	if err != nil {
		return "", nil, err
	}
	result := make(chan CallResult, 1)
	if c == nil {
		result <- replay
		close(result)
		return replay.CallID, result, nil
	}
	go func() {
		res, err := r.carry(ctx, c, q.Timeout)
		if err != nil {
			r.o.Logger.Error().Err(err).Str("call_id", c.id).Msg("an asynchronous call could not be kept")
		}
		result <- res
		close(result)
	}()
	return c.id, result, nil
}

// open checks the request and makes the call known as running. A request whose idempotency key was answered before
// gets that answer and no call. The call's context is its own from here on, since whoever knows of a call may cancel it.
func (r *Runtime) open(ctx context.Context, q CallRequest) (_ context.Context, c *call, replay CallResult, err error) {
	if err := r.o.Store.Ready(); err != nil {
		return nil, nil, CallResult{}, err
	}
	session, err := r.store.Session(ctx, q.SessionID)
	if err != nil {
		return nil, nil, CallResult{}, err
	}
	if q.Role == "" {
		q.Role = session.Role
	}
	if err := r.checkCall(&q); err != nil {
		return nil, nil, CallResult{}, err
	}
	c = r.newCall(q, session)
	if err := c.checkInputHistory(ctx); err != nil {
		return nil, nil, CallResult{}, err
	}
	if q.IdempotencyKey != "" {
		c.key = &store.Idempotent{Key: q.IdempotencyKey, BodyHash: q.BodyHash, CallID: c.id}
		if replay, err := r.claimKey(ctx, c.key); err != nil || replay.Replayed {
			return nil, nil, replay, err
		}
	}
	ctx, c.cancel = context.WithCancelCause(ctx)
	if err := r.enter(c); err != nil {
		c.cancel(nil)
		r.releaseKey(c.key)
		return nil, nil, CallResult{}, err
	}
	c.beginSpan(q.TraceParent, nil)
	return ctx, c, CallResult{}, nil
}

func (r *Runtime) newCall(q CallRequest, session agent.Session) *call {
	p := r.policy.Load()
	c := &call{r: r, p: p, session: session, id: q.CallID, traceID: q.TraceID, speaker: agent.SpeakerUser, owner: q.Owner,
		role: q.Role, method: q.Method, args: q.Args, kwargs: q.Kwargs, inputHistory: q.History, asked: q.Contract,
		started: r.o.Now()}
	c.root = c
	if c.id == "" {
		c.id = agent.NewID("call")
	}
	if c.traceID == "" {
		c.traceID = agent.NewTraceID()
	}
	if c.owner == "" {
		c.owner = "local"
	}
	c.init()
	return c
}

// init completes a call whose fixed fields are set.
func (c *call) init() {
	if c.args == nil {
		c.args = []json.RawMessage{}
	}
	if len(c.kwargs) == 0 {
		c.kwargs = json.RawMessage("{}")
	}
	c.budgets = budgets{c.p.GuardrailRecoveryBudget, c.p.ExecutionRepairBudget, c.p.OutcomeRepairBudget}
	c.maskedArgs, c.maskedKwargs, c.masked = maskCall(c.args, c.kwargs, c.p.RedactKeys)
}

func maskCall(args []json.RawMessage, kwargs json.RawMessage, keys []string) ([]json.RawMessage, json.RawMessage, bool) {
	out, masked := args, false
	for i, a := range args {
		m, changed := history.Mask(a, keys)
		if !changed {
			continue
		}
		if !masked {
			out = append([]json.RawMessage{}, args...)
			masked = true
		}
		out[i] = m
	}
	k, changed := history.Mask(kwargs, keys)
	return out, k, masked || changed
}

func (r *Runtime) checkCall(q *CallRequest) error {
	if err := agent.CheckName("role", q.Role); err != nil {
		return err
	}
	if err := agent.CheckName("method", q.Method); err != nil {
		return err
	}
	if q.Timeout < 0 || q.Timeout > r.o.MaxTimeout {
		return &InputError{Code: "invalid_timeout", Pointer: "/timeout_ms", Detail: fmt.Sprintf("must be 1 to %d", r.o.MaxTimeout.Milliseconds()),
			Hint: "leave timeout_ms out for the default"}
	}
	if setterKey(q.Method) != "" && len(q.Args) != 1 {
		return &InputError{Code: "invalid_setter", Pointer: "/args", Detail: "a method that ends in = takes exactly one argument",
			Hint: `{"method": "name=", "args": ["the value"]}`}
	}
	return checkContract(q.Contract, "/contract")
}

// carry takes an open call through the session's queue to its end.
func (r *Runtime) carry(ctx context.Context, c *call, timeout time.Duration) (CallResult, error) {
	defer r.releaseKey(c.key)
	defer r.leave(c)
	if timeout == 0 {
		timeout = r.o.CallTimeout
	}
	defer c.cancel(nil)
	// Not a context of its own: that would cost a warm call four more allocations.
	defer time.AfterFunc(timeout, func() { c.cancel(errCallTimeout) }).Stop()
	err := r.sessions.enter(ctx, c.session.ID, r.o.MaxQueue, &c.progress)
	if errors.Is(err, ErrQueueFull) {
		return CallResult{}, err // nothing was recorded
	}
	if err != nil {
		return c.finish(c.cut(ctx))
	}
	defer r.sessions.leave(c.session.ID)
	turn := r.o.Now()
	c.stages.Queue = turn.Sub(c.started)
	c.span.Stage("queue", c.started, turn)
	return c.finish(c.perform(ctx))
}

// perform takes the call to its outcome; finish keeps it.
func (c *call) perform(ctx context.Context) agent.Outcome {
	if key := setterKey(c.method); key != "" {
		return c.set(key)
	}
	if err := c.prepare(ctx); err != nil {
		return c.storeFailed(err)
	}
	if c.decision.Decision != DecideRun {
		c.progress.tell(EventSelected, c.found.selection)
	}
	return c.follow(ctx)
}

// follow does what the selection decided.
func (c *call) follow(ctx context.Context) agent.Outcome {
	switch c.decision.Decision {
	case DecideRun:
		return c.runStored(ctx, c.decision.Generation)
	case DecideRepair:
		return c.mendFirst(ctx, c.decision.Generation)
	case DecideRefuse:
		return c.waitsForApproval()
	}
	return c.forge(ctx, c.decision.Generation, forgeTrigger(c.artifact, c.p, c.decision.Reason))
}

// prepare reads what a selection needs and selects.
func (c *call) prepare(ctx context.Context) error {
	r := c.r
	began := r.o.Now()
	if err := c.resolveContract(ctx); err != nil {
		return err
	}
	var err error
	if c.depth > 0 {
		c.context = map[string]json.RawMessage{}
	} else if c.context, err = r.store.Context(ctx, c.session.ID); err != nil {
		return err
	}
	c.artifact, err = r.store.Artifact(ctx, c.role, c.method)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	c.selectProgram()
	ended := r.o.Now()
	c.stages.Select = ended.Sub(began)
	c.span.Stage("select", began, ended)
	return nil
}

func (c *call) selectProgram() {
	c.decision = Select(c.selectInput(c.artifact))
	c.found.selection = c.decision.selection()
}

func (c *call) selectInput(a *agent.Artifact) SelectInput {
	return SelectInput{Role: c.role, Method: c.method, HasArgs: c.hasArgs(), Artifact: a, CheckedFingerprint: c.checked,
		Policy: c.p, Now: c.started, ImportAllowed: c.r.o.AllowImport, IgnoresArgs: c.r.ignoresArgs}
}

func (c *call) hasArgs() bool { return len(c.args) > 0 || len(c.kwargs) > len("{}") }

// setterKey returns the context key that a method named "key=" writes, or "".
func setterKey(method string) string {
	key, isSetter := strings.CutSuffix(method, "=")
	if !isSetter {
		return ""
	}
	return key
}

func (c *call) set(key string) agent.Outcome {
	c.decision = Decision{Decision: DecideNone, Reason: ReasonSetter}
	c.found.selection = c.decision.selection()
	c.found.source = agent.SourceNone
	if c.depth == 0 {
		c.found.context = &agent.ContextChange{Set: map[string]json.RawMessage{key: c.args[0]}}
	}
	return agent.Outcome{Status: agent.StatusOK, Value: c.args[0]}
}

// interrupted is the outcome and the class of a call that something outside ended. Only the end of the call's own
// time is anybody's failure: the outside took too long.
func interrupted(ctx context.Context) (agent.Outcome, agent.Class) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errCallTimeout):
		return agent.Failed(agent.ErrTimeout, "the call did not end within its time"), agent.ClassExtrinsic
	case errors.Is(cause, errShutdown):
		o := agent.Failed(agent.ErrCanceled, "the daemon is shutting down")
		o.Retriable = true
		return o, agent.ClassNone
	case errors.Is(cause, errCanceled):
		return agent.Failed(agent.ErrCanceled, "the call was canceled"), agent.ClassNone
	}
	return agent.Failed(agent.ErrCanceled, "the client went away"), agent.ClassNone
}

// cut is interrupted for a call that had no program to blame.
func (c *call) cut(ctx context.Context) agent.Outcome {
	o, class := interrupted(ctx)
	c.found.class = class
	return o
}

// storeFailed is the outcome of a call for which the store could not be read.
func (c *call) storeFailed(err error) agent.Outcome {
	c.r.o.Logger.Error().Err(err).Str("call_id", c.id).Msg("the store failed a call")
	return agent.Failed(agent.ErrResourceExhausted, "the daemon could not read what it needs for this call")
}

func (c *call) waitsForApproval() agent.Outcome {
	c.found.source = agent.SourceNone
	o := agent.Failed(agent.ErrDenied, fmt.Sprintf("the program of %s.%s waits for a person's approval", c.role, c.method))
	o.Metadata = map[string]any{"approve": "POST " + toolPath(c.role, c.method) + "/approve"}
	return o
}

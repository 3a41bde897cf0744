package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// An opened call is a checked request of a client or a program. Except for the fields marked otherwise, it does not
// change once it is registered as running: views, flights and nested calls read it concurrently.
type opened struct {
	r       *Runtime
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
	key     *store.Idempotent // nil if there is none

	inherited []string                   // secrets of the calls above
	input     atomic.Pointer[shownInput] // args and kwargs as they may be shown
	first     shownInput                 // the first value of input; saves an allocation

	tree      *tree
	own       tree         // tree of a root call
	begins    fetch.Place  // position in the tree's ledger at which the call's programs begin
	slept     atomic.Int64 // nanoseconds that its programs slept
	weakBelow atomic.Int32 // weak successes among the calls below it
	deadline  time.Time    // of the whole call; zero if there is none
	life      lifetime
	shared    *sharedKey // nil unless other replicas may receive the same key
	fence     int64      // epoch under which its session is owned; 0 without other replicas; guarded like hasTurn
	place     place      // in the session's queue
	hasTurn   bool       // holds the session's turn; used only by the goroutine that runs the call
	// files of its programs, and of the programs that wait for this call, which it may read; guarded like hasTurn
	drafts, lent []*files.Draft
	held         store.Bytes // reserved in its owner's shares; guarded like hasTurn
	unattended   bool        // no client waits for the answer
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

// open checks the request, registers the call as running and takes its place in the session's queue. A client's calls
// therefore run in the order in which they were acknowledged. If the idempotency key of the request was used before,
// open returns that answer and a nil call. The returned context is the call's own; it can be canceled through the
// registry of running calls.
func (r *Runtime) open(ctx context.Context,
	q CallRequest) (_ context.Context, c *opened, replay CallResult, err error) {
	// The steps that can reject the request come first, and those that have to be undone last. Each later failure
	// undoes the earlier steps in reverse.
	if err := r.o.Store.Ready(); err != nil {
		return nil, nil, CallResult{}, err
	}
	session, err := r.sessionOf(ctx, &q)
	if err != nil {
		return nil, nil, CallResult{}, err
	}
	if err := r.checkCall(&q, session.Role); err != nil {
		return nil, nil, CallResult{}, err
	}
	if c, err = r.newInShare(ctx, q, session); err != nil {
		return nil, nil, CallResult{}, err
	}
	if err := c.readInputHistory(ctx); err != nil {
		return nil, nil, CallResult{}, err
	}
	if !q.Ephemeral {
		if c.fence, err = r.own(ctx, session.ID); err != nil {
			return nil, nil, CallResult{}, err
		}
	}
	if q.IdempotencyKey != "" {
		c.key = &store.Idempotent{Key: q.IdempotencyKey, BodyHash: q.BodyHash, CallID: c.id}
		if replay, err := r.claimKey(ctx, c, q.Ephemeral); err != nil || replay.Replayed {
			r.disown(session.ID, c.fence)
			return nil, nil, replay, err
		}
	}
	// Reserve room before the call becomes visible: a call that runs must be able to leave a record.
	if err := c.enterRoom(ctx); err != nil {
		r.releaseKey(c)
		r.disown(session.ID, c.fence)
		return nil, nil, CallResult{}, err
	}
	c.life.begin(ctx, cmp.Or(q.Timeout, r.o.CallTimeout))
	c.life.stays = &c.tree.written
	if err := r.begin(&c.life, c, q.Ephemeral); err != nil {
		c.life.cancel(nil)
		c.leaveRoom()
		r.releaseKey(c)
		r.disown(session.ID, c.fence)
		return nil, nil, CallResult{}, err
	}
	c.life.begun = true
	// Take the place in the queue last. Whoever has a place must await its turn, so nothing may fail after this.
	if c.place, err = r.sessions.join(session.ID, r.o.MaxQueue); err != nil {
		c.close()
		return nil, nil, CallResult{}, err
	}
	if q.Follow != nil {
		q.Follow(&c.progress)
	}
	if c.place.ahead > 0 {
		c.progress.Add(progress.Queued, map[string]any{"ahead": c.place.ahead})
	}
	c.watchKey()
	c.beginSpan(q.TraceParent, nil)
	return &c.life, c, CallResult{}, nil
}

// newInShare runs newCall in the owner's share of heavy work, because masking a large input takes long.
func (r *Runtime) newInShare(ctx context.Context, q CallRequest, session agent.Session) (*opened, error) {
	owner, weight := r.Owner(q.Owner), q.bytes()
	if err := r.o.Heavy.Enter(ctx, owner, weight); err != nil {
		return nil, err
	}
	defer r.o.Heavy.Leave(owner, weight)
	return r.newCall(q, session), nil
}

// close releases everything that open acquired, except the place in the queue.
func (c *opened) close() {
	c.life.cancel(nil)
	c.leaveRoom()
	c.r.leave(c)
	c.r.releaseKey(c)
	c.r.disown(c.session.ID, c.fence)
}

// sessionOf returns the call's session, and fills in the role if the request leaves it to the session. It does not
// store an ephemeral session: begin does, so a rejected or replayed request leaves none behind.
func (r *Runtime) sessionOf(ctx context.Context, q *CallRequest) (agent.Session, error) {
	if q.Ephemeral {
		now := r.o.Now().UTC()
		s := agent.Session{ID: q.SessionID, Role: q.Role, Owner: cmp.Or(q.Owner, "local"), Ephemeral: true,
			CreatedAt: now, UpdatedAt: now}
		return s, nil
	}
	s, err := r.store.Session(ctx, q.SessionID)
	if err == nil && !q.Operates && !s.OwnedBy(q.Owner) {
		return s, store.ErrNotFound
	}
	if q.Role == "" {
		q.Role = s.Role
	}
	return s, err
}

// sessionLimit bounds the time for creating the session of a call.
const sessionLimit = 30 * time.Second

// begin registers the call as running and stores its session if it is new. The session is stored even if the call ends
// meanwhile, by a cancellation or at its deadline. Such a call is recorded as one that never started.
func (r *Runtime) begin(ctx context.Context, c *opened, newSession bool) (err error) {
	if err := r.enter(c); err != nil || !newSession {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionLimit)
	defer cancel()
	if c.fence, err = r.create(ctx, c.session); err != nil {
		r.leave(c)
	}
	return err
}

// newCall returns the call for a checked request.
func (r *Runtime) newCall(q CallRequest, session agent.Session) *opened {
	c := &opened{r: r, policy: r.policy.Load(), rules: r.rules.Load(), session: session, id: q.CallID,
		traceID: q.TraceID, speaker: agent.SpeakerUser, owner: q.Owner, operates: q.Operates,
		role: q.Role, method: q.Method, args: q.Args, kwargs: q.Kwargs, inputHistory: q.History, asked: q.Contract,
		started: r.o.Now()}
	c.deadline = c.started.Add(cmp.Or(q.Timeout, r.o.CallTimeout))
	if c.id == "" {
		c.id = ids.New("call")
	}
	if c.traceID == "" {
		c.traceID = ids.NewTrace()
	}
	if c.owner == "" {
		c.owner = "local"
	}
	c.tree = &c.own
	c.tree.writes.Call = c.id
	if q.IdempotencyKey != "" { // a client that repeats its call after a crash of the daemon means the same writes
		c.tree.writes.Call = "key " + q.IdempotencyKey + " " + q.BodyHash
	}
	c.init()
	return c
}

// init completes a call whose other fields are set.
func (c *opened) init() {
	if c.args == nil {
		c.args = []json.RawMessage{}
	}
	if len(c.kwargs) == 0 {
		c.kwargs = json.RawMessage("{}")
	}
	c.compact()
	c.maskInput(c.storedInterface())
}

// compact removes insignificant whitespace from the inputs. Doing it once pays off: they are checked, and copied for
// the run, the journal, the history and the log.
func (c *opened) compact() {
	shared := true
	for i, a := range c.args {
		text := jsonenc.Compact(a)
		if len(text) == len(a) {
			continue
		}
		if shared {
			c.args, shared = slices.Clone(c.args), false
		}
		c.args[i] = text
	}
	c.kwargs, c.inputHistory = jsonenc.Compact(c.kwargs), jsonenc.Compact(c.inputHistory)
}

// checkCall checks the request and normalises its names. The role of an existing session is kept as it is.
func (r *Runtime) checkCall(q *CallRequest, sessions string) error {
	role := q.Role
	err := agent.Names(&q.Role, &q.Method)
	if err == nil {
		if role == sessions {
			q.Role = role
		}
		q.Kwargs, err = agent.KeywordArguments(q.Kwargs)
	}
	if err != nil {
		return err
	}
	if q.Timeout < 0 || q.Timeout > r.o.MaxTimeout {
		return &agent.InputError{Code: "invalid_timeout", Pointer: "/timeout_ms",
			Detail: fmt.Sprintf("must be 1 to %d", r.o.MaxTimeout.Milliseconds()),
			Hint:   "leave timeout_ms out for the default"}
	}
	if setterKey(q.Method) != "" && len(q.Args) != 1 {
		return &agent.InputError{Code: "invalid_setter", Pointer: "/args",
			Detail: "a method that ends in = takes exactly one argument",
			Hint:   `{"method": "name=", "args": ["the value"]}`}
	}
	return contract.CheckTerms(q.Contract, "/contract")
}

// setterKey returns the context key that a method named "key=" writes, or "".
func setterKey(method string) string {
	key, isSetter := strings.CutSuffix(method, "=")
	if !isSetter {
		return ""
	}
	return key
}

// hasArgs reports whether the call has any argument, positional or by name.
func (c *opened) hasArgs() bool { return len(c.args) > 0 || len(c.kwargs) > len("{}") }

// model returns the session's model, or the daemon's default if the session has none.
func (c *opened) model() string {
	if c.session.Model != "" {
		return c.session.Model
	}
	return c.r.o.Model
}

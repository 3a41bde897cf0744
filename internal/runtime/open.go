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

// An opened call is what a client or a program asked for, checked. It does not change once it is registered as running:
// views, flights and nested calls read it concurrently.
type opened struct {
	r       *Runtime
	policy  *agent.Policy // as it was when the call began
	rules   *mask.Rules   // for secrets, as they were then
	session agent.Session
	id      string
	traceID string
	depth   int
	speaker string
	owner   string

	operates bool // the owner's token has the scope operate

	parent        string // id of the call whose program made this one, "" at depth 0
	root          string // id of the client's call above, "" at depth 0
	parentAttempt string // and the attempt that did

	role, method string
	args         []json.RawMessage
	kwargs       json.RawMessage
	inputHistory json.RawMessage     // nil when the call brought none
	inputTurns   []history.Turn      // decoded inputHistory
	signature    *contract.Signature // describes the turns; nil without one

	// pointer to the argument that held inputHistory; "" if it came as the call's history
	historyArgument string
	// the contract as of the check of the history input, for a call that did not wait after it
	early   *terms
	asked   *agent.Contract // by the caller
	started time.Time
	key     *store.Idempotent // nil without

	inherited []string                   // secrets of the calls above
	input     atomic.Pointer[shownInput] // args and kwargs as they may be seen
	first     shownInput                 // what input is at first

	tree      *tree
	own       tree         // of a root call
	begins    fetch.Place  // of the tree's ledger: where the call's programs begin
	slept     atomic.Int64 // by its programs, in nanoseconds
	weakBelow atomic.Int32 // weak successes among the calls below it
	deadline  time.Time    // of the whole call; zero for none
	life      lifetime
	shared    *sharedKey // nil unless other replicas may get the same key
	fence     int64      // the epoch under which its session is owned; 0 without other replicas; as hasTurn
	place     place      // in its session's queue
	hasTurn   bool       // of its session; used by the goroutine that runs the call only
	// of its programs, and of those that wait for this call, which may read them; as hasTurn
	drafts, lent []*files.Draft
	held         store.Bytes // of its owner's shares; as hasTurn
	unattended   bool        // nobody waits for its answer
	progress     progress.Log
	span         *telemetry.Span // nil without traces
}

// A tree is what a root call and the nested calls below it share. Its calls run one after another, so only the counters
// that several calls may touch at once are atomic.
type tree struct {
	made    atomic.Int32 // nested calls
	refused atomic.Bool  // one refusal is on record
	written atomic.Bool  // a model was asked for a program
	usage   agent.Usage  // of the nested calls; written by the goroutine that runs the tree
	writes  fetch.Ledger // of all of them; used by that goroutine
}

// open checks the request, registers the call as running and takes its place in the session's queue, so that calls of one client have their turns
// in the order in which it was answered that they had begun. A request whose idempotency key was answered before returns
// that answer and no call. The returned context is the call's own: whoever knows of the call may cancel it.
func (r *Runtime) open(ctx context.Context,
	q CallRequest) (_ context.Context, c *opened, replay CallResult, err error) {
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
	if err := c.enterRoom(ctx); err != nil {
		r.releaseKey(c)
		r.disown(session.ID, c.fence)
		return nil, nil, CallResult{}, err
	}
	c.life.begin(ctx, cmp.Or(q.Timeout, r.o.CallTimeout))
	if q.Outlives {
		c.life.stays = &c.tree.written
	}
	if err := r.begin(&c.life, c, q.Ephemeral); err != nil {
		c.life.cancel(nil)
		c.leaveRoom()
		r.releaseKey(c)
		r.disown(session.ID, c.fence)
		return nil, nil, CallResult{}, err
	}
	c.life.begun = true
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

// newInShare is newCall in the owner's share: masking a long input takes long.
func (r *Runtime) newInShare(ctx context.Context, q CallRequest, session agent.Session) (*opened, error) {
	owner, weight := r.Owner(q.Owner), q.bytes()
	if err := r.o.Heavy.Enter(ctx, owner, weight); err != nil {
		return nil, err
	}
	defer r.o.Heavy.Leave(owner, weight)
	return r.newCall(q, session), nil
}

// close gives back what open took, but for the place in the queue.
func (c *opened) close() {
	c.life.cancel(nil)
	c.leaveRoom()
	c.r.leave(c)
	c.r.releaseKey(c)
	c.r.disown(c.session.ID, c.fence)
}

// sessionOf returns the call's session, and fills in the role where the request leaves it to the session. An ephemeral one
// is stored by begin: a request that is refused, or was answered before, leaves none behind.
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

// sessionLimit is how long the session of a call may take to be made.
const sessionLimit = 30 * time.Second

// begin registers the call as running, and stores its session where that is new. A call that ends meanwhile, canceled by who has seen that it
// runs or at its deadline, has its session nevertheless: it is kept as a call that never started.
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

// newCall makes the call of a checked request.
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

// compact drops the whitespace between the values, once: what a call brings is checked and copied for its run, the journal, the history and
// the log.
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

// checkCall checks the request, and brings its names into the form in which they are kept; the role of a session of before stays what it is.
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

func (c *opened) hasArgs() bool { return len(c.args) > 0 || len(c.kwargs) > len("{}") }

func (c *opened) model() string {
	if c.session.Model != "" {
		return c.session.Model
	}
	return c.r.o.Model
}

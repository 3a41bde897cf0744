package runtime

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/keys"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
)

// An opened call is a call that is registered as running.
type opened struct {
	call.Call

	r *Runtime

	key        *keys.Claim // nil if the call has no idempotency key
	registered bool        // as running
	place      turns.Place // in the session's queue
	hasTurn    bool        // holds the session's turn; used only by the goroutine that runs the call
	held       store.Bytes // reserved in its owner's shares; guarded like hasTurn

	unattended bool // no client waits for the answer
}

// open checks the request, registers the call as running and takes its place in the session's queue. A client's calls
// therefore run in the order in which they were acknowledged. If the idempotency key of the request was used before,
// open returns that answer and a nil call. The returned context is the call's own; it can be canceled through the
// registry of running calls.
func (r *Runtime) open(ctx context.Context,
	q CallRequest) (_ context.Context, c *opened, replay CallResult, err error) {
	// The steps that can reject the request come first, and those that have to be undone last. close undoes what was
	// done until then.
	defer func() {
		if c != nil && (err != nil || replay.Replayed) {
			c.close()
			c = nil
		}
	}()
	if err := r.env.Options.Store.Ready(); err != nil {
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
	if err := c.ReadInputHistory(ctx); err != nil {
		return nil, nil, CallResult{}, err
	}
	if !q.Ephemeral {
		if c.Fence, err = r.Own(ctx, session.ID); err != nil {
			return nil, c, CallResult{}, err
		}
	}
	if q.IdempotencyKey != "" {
		key := store.Idempotent{Key: q.IdempotencyKey, BodyHash: q.BodyHash, CallID: c.ID}
		var was *store.Idempotent
		if c.key, was, err = r.keys.Claim(ctx, key, q.Ephemeral && r.env.Owners != nil); err != nil {
			return nil, c, CallResult{}, err
		}
		if was != nil {
			return nil, c, replayed(was), nil
		}
	}
	// Reserve room before the call becomes visible: a call that runs must be able to leave a record.
	if err := c.enterRoom(ctx); err != nil {
		return nil, c, CallResult{}, err
	}
	c.Life.Begin(ctx, cmp.Or(q.Timeout, r.env.CallTimeout))
	c.Life.Stays = &c.Tree.Written
	if err := c.begin(&c.Life, q.Ephemeral); err != nil {
		return nil, c, CallResult{}, err
	}
	c.Life.Begun = true
	// Take the place in the queue last. Whoever has a place must await its turn, so nothing may fail after this.
	if c.place, err = r.Sessions.Queue.Join(session.ID, r.env.MaxQueue); err != nil {
		return nil, c, CallResult{}, err
	}
	if q.Follow != nil {
		q.Follow(&c.Progress)
	}
	if c.place.Ahead > 0 {
		c.Progress.Add(progress.Queued, map[string]any{"ahead": c.place.Ahead})
	}
	if life := &c.Life; c.key != nil { // a call without a key does not pay for a function
		c.key.Watch(func() { life.Cancel(interrupt.ErrShutdown) })
	}
	c.BeginSpan(q.TraceParent, nil)
	return &c.Life, c, CallResult{}, nil
}

// newInShare runs newCall in the owner's share of heavy work, because masking a large input takes long.
func (r *Runtime) newInShare(ctx context.Context, q CallRequest, session agent.Session) (*opened, error) {
	owner, weight := r.Owner(q.Owner), q.bytes()
	if err := r.env.Heavy.Enter(ctx, owner, weight); err != nil {
		return nil, err
	}
	defer r.env.Heavy.Leave(owner, weight)
	return r.newCall(q, session), nil
}

// close releases everything that open has acquired so far, except the place in the queue.
func (c *opened) close() {
	c.Life.Cancel(nil)
	c.leaveRoom()
	if c.registered {
		c.r.Calls.Leave(&c.Call)
	}
	c.key.Release()
	c.r.Disown(c.Session.ID, c.Fence)
}

// sessionOf returns the call's session, and fills in the role if the request leaves it to the session. It does not
// store an ephemeral session: begin does, so a rejected or replayed request leaves none behind.
func (r *Runtime) sessionOf(ctx context.Context, q *CallRequest) (agent.Session, error) {
	if q.Ephemeral {
		now := r.env.Now().UTC()
		s := agent.Session{ID: q.SessionID, Role: q.Role, Owner: cmp.Or(q.Owner, "local"), Ephemeral: true,
			CreatedAt: now, UpdatedAt: now}
		return s, nil
	}
	s, err := r.env.Store.Session(ctx, q.SessionID)
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
func (c *opened) begin(ctx context.Context, newSession bool) (err error) {
	if err := c.r.Enter(&c.Call); err != nil {
		return err
	}
	if c.registered = true; !newSession {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionLimit)
	defer cancel()
	c.Fence, err = c.r.Sessions.Create(ctx, c.Session)
	return err
}

// newCall returns the call for a checked request.
func (r *Runtime) newCall(q CallRequest, session agent.Session) *opened {
	c := &opened{r: r, Call: call.Call{Env: r.env, Policy: r.PolicyInForce(), Rules: r.Rules(), Session: session,
		ID: q.CallID, TraceID: q.TraceID, Speaker: agent.SpeakerUser, Owner: q.Owner, Operates: q.Operates,
		Role: q.Role, Method: q.Method, Args: q.Args, Kwargs: q.Kwargs, InputHistory: q.History, Asked: q.Contract,
		Started: r.env.Now()}}
	if q.IdempotencyKey != "" { // a client that repeats its call after a crash of the daemon means the same writes
		c.Own.Writes.Call = "key " + q.IdempotencyKey + " " + q.BodyHash
	}
	c.InitRoot(cmp.Or(q.Timeout, r.env.CallTimeout))
	return c
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
	if q.Timeout < 0 || q.Timeout > r.env.MaxTimeout {
		return &agent.InputError{Code: "invalid_timeout", Pointer: "/timeout_ms",
			Detail: fmt.Sprintf("must be 1 to %d", r.env.MaxTimeout.Milliseconds()),
			Hint:   "leave timeout_ms out for the default"}
	}
	if call.SetterKey(q.Method) != "" && len(q.Args) != 1 {
		return &agent.InputError{Code: "invalid_setter", Pointer: "/args",
			Detail: "a method that ends in = takes exactly one argument",
			Hint:   `{"method": "name=", "args": ["the value"]}`}
	}
	return contract.CheckTerms(q.Contract, "/contract")
}

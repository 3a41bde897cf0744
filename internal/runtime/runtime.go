// Package runtime runs calls. A call opens its session, selects a program, forges or repairs one if no healthy one is
// stored, runs it in a runner, judges the result, and commits. Every exit path makes exactly one store commit, with one
// history record and one log entry. Start with Call in call.go, which names the five phases in order.
//
// Context changes of a failed attempt are dropped. An interrupted call does not lower any program's health. The package
// knows nothing about HTTP or about people's operations on tools (package operator). Store, sandbox, provider, clock
// and metrics are passed in.
//
// Work over the bytes of a call is linear in them, or n log n if it sorts keys: masking, checks, encoding, comparing,
// and the search for weak answers and known tools. The part of the registry that it reads is bounded. From 64 KiB on,
// such work waits for a place in its owner's share (Options.Heavy); checks and masking stop when the call ends.
package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/correct"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/keys"
	"github.com/recurgentd/recurgentd/internal/runtime/policies"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/running"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/runtime/verify"
)

// Runtime runs calls. Its methods may be called concurrently.
type Runtime struct {
	Corrections *correct.Corrector

	*policies.Policies
	*sessions.Sessions
	*running.Calls
	*verify.Verifier

	env      *env.Env // what calls use of the daemon
	unfollow func()   // ends following the store; nil unless the store is shared

	adoption turns.Locks // admits one new generation, or one person's operation, per artifact at a time
	forges   *forge.Forger

	recent recentCalls
	feed   progress.Feed

	life context.Context         // lifetime of asynchronous calls and flights, which outlive their clients
	end  context.CancelCauseFunc // ends life

	keys *keys.Keys
}

// New wires a Runtime and reads the policy. If Options.Shared is set, it starts following the store, so Stop must be
// called.
func New(ctx context.Context, o env.Options) (*Runtime, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	held, err := o.Store.Namespace(o.Namespace)
	if err != nil {
		return nil, err
	}
	e := &env.Env{Options: o, Store: held, Level: o.Sandbox.Status().Level}
	r := &Runtime{env: e, Calls: running.New(), keys: keys.New(held)}
	if r.Policies, err = policies.Read(ctx, e); err != nil {
		return nil, err
	}
	r.Verifier = verify.New(e, r.Policies, nester{r})
	r.Sessions = sessions.New(e, r.Calls, r.Rules)
	r.life, r.end = context.WithCancelCause(context.Background())
	r.forges = forge.New(r.life)
	r.Corrections = correct.New(correct.Parts{Env: e, Policy: r.PolicyInForce, Rules: r.Rules, Life: r.life,
		Forges: r.forges, Adoption: &r.adoption, Nester: nester{r}})
	if o.Shared {
		if r.unfollow, err = r.follow(); err != nil {
			return nil, err
		}
	} else {
		r.feed.Follow = r.follow
	}
	return r, nil
}

// Ready returns nil if calls are accepted, otherwise the reason why not.
func (r *Runtime) Ready() error {
	if r.Draining() {
		return ErrDraining
	}
	return r.env.Options.Store.Ready()
}

// Stop rejects new calls and waits for the running ones until ctx ends. Then it cancels them and waits for their
// commits, at most Options.CancelGrace longer. It returns nil if every call ended by itself, otherwise ctx's cause, or
// an error if calls are still running. It may be called twice.
func (r *Runtime) Stop(ctx context.Context) error {
	idle := r.Drain()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	// Flights end after the calls that wait for them: calls have ended by now, or have had their time.
	r.end(interrupt.ErrShutdown)
	if r.unfollow != nil {
		r.unfollow()
	}
	if err != nil {
		r.Cancel(func(*call.Call) bool { return true }, interrupt.ErrShutdown)
	}
	ended := make(chan struct{})
	go func() {
		<-idle
		r.Corrections.Wait() // first, because corrections forge
		r.forges.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-time.After(r.env.CancelGrace):
		return fmt.Errorf("calls are still running %v after they were canceled", r.env.CancelGrace)
	}
}

// Owner returns the owner of calls made with the access token of that name.
func (r *Runtime) Owner(name string) agent.Owner { return r.env.Owner(name) }

// Life returns a context that ends, with a cause, when the Runtime stops.
func (r *Runtime) Life() context.Context { return r.life }

// Settled waits until everything that was read so far is durable; see store.Store.
func (r *Runtime) Settled() error { return r.env.Options.Store.Settled() }

// Feed returns the feed that announces every committed call.
func (r *Runtime) Feed() *progress.Feed { return &r.feed }

// RunTimeout returns the limit of a program's own computing time.
func (r *Runtime) RunTimeout() time.Duration { return r.env.RunTimeout }

// HoldAdoption prevents new generations of the method's artifact from being adopted until release is called.
func (r *Runtime) HoldAdoption(role, method string) (release func()) {
	return r.lockAdoption(turns.Method{Role: role, Method: method})
}

// lockAdoption locks the method's artifact against adoptions.
func (r *Runtime) lockAdoption(k turns.Method) (unlock func()) {
	return r.adoption.Lock(k)
}

// Idle reports whether nothing runs, waits, or is being forged or corrected, and no failure delays the next forge. An
// idle Runtime can be replaced by a new one without a difference in behaviour.
func (r *Runtime) Idle() bool {
	if running, waiting := r.Load(); running+waiting > 0 {
		return false
	}
	return !r.Corrections.Pending() && !r.forges.UnderWay() && !r.forges.Delayed(r.env.Now())
}

// Load returns the number of running calls, nested ones included, and of calls that wait for their session's turn.
func (r *Runtime) Load() (running, waiting int) {
	waiting = r.Sessions.Queue.Length()
	return max(r.Calls.Count()-waiting, 0), waiting
}

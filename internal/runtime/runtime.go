// Package runtime runs calls. A call opens its session, selects a program, has one forged or repaired if no healthy one
// is stored, runs it in a runner, judges the result, and commits. On every exit path there is exactly one store commit,
// with one history record and one log entry. Read Call in call.go first: it names the five phases in order.
//
// Changes that a failed attempt made to the context are dropped. An interrupted call lowers no program's health. The
// package knows nothing of HTTP and nothing of what people do with tools (package operator); store, sandbox, provider,
// clock and metrics are passed in.
//
// What it does over the bytes of a call (masking, checks, encoding, comparing, looking for weak answers and known tools) takes a time linear in them,
// or n log n where keys are sorted; how much of the registry it looks at is bounded. From 64 KiB on such work waits for a place in its owner's share
// (Options.Heavy), and checks and masking end with the call.
package runtime

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Runtime runs calls. Its methods may be called concurrently.
type Runtime struct {
	o       Options
	store   store.Namespace
	box     sandbox.Sandbox
	model   provider.Provider
	metrics *telemetry.Metrics
	level   sandbox.Level // observed at the start

	policy   atomic.Pointer[agent.Policy]
	rules    atomic.Pointer[mask.Rules] // of the policy
	onPolicy atomic.Pointer[func()]     // is called when it has changed; nil: nobody waits for it
	policyMu sync.Mutex                 // held while the policy changes

	policyRevision int64  // of the policy in force; guarded by policyMu
	unfollow       func() // ends following the store; nil unless it is shared

	sessions queues   // one call of a session at a time
	adoption keyLocks // one new generation, or one operation of a person, per artifact at a time
	flights  flights
	backoffs backoffs
	corrects corrector
	compiled compiledContracts
	facts    factsCache
	words    wordsCache
	intact   intactCache

	irreproducible failedProofs // of calls with secrets

	commits sharedDeadline
	recent  recentCalls
	feed    progress.Feed

	life context.Context         // of what outlives a client: asynchronous calls and flights
	end  context.CancelCauseFunc // of life
	idle chan struct{}           // closed, under mu, when draining and no call runs

	mu       sync.Mutex
	running  map[string]*opened // by call id, nested calls too; guarded by mu
	keys     map[string]bool    // idempotency keys of running calls; guarded by mu
	draining bool               // no more calls are accepted; guarded by mu
}

// New wires a Runtime and reads the policy.
func New(ctx context.Context, o Options) (*Runtime, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	held, err := o.Store.Namespace(o.Namespace)
	if err != nil {
		return nil, err
	}
	p, revision, err := held.Policy(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	life, end := context.WithCancelCause(context.Background())
	r := &Runtime{o: o, store: held, box: o.Sandbox, model: o.Provider, metrics: o.Metrics,
		level:   o.Sandbox.Status().Level,
		running: map[string]*opened{}, keys: map[string]bool{}, idle: make(chan struct{}), life: life, end: end,
		policyRevision: revision}
	r.enforce(&p)
	if o.Shared {
		if r.unfollow, err = r.follow(); err != nil {
			return nil, err
		}
	} else {
		r.feed.Follow = r.follow
	}
	return r, nil
}

// Ready returns nil when calls are accepted, else why not.
func (r *Runtime) Ready() error {
	r.mu.Lock()
	draining := r.draining
	r.mu.Unlock()
	if draining {
		return ErrDraining
	}
	return r.o.Store.Ready()
}

// Stop accepts no more calls and waits for the running ones until ctx ends. Then it cancels them and waits for their
// commits, at most Options.CancelGrace longer. It returns nil when every call ended by itself. It may be called twice.
func (r *Runtime) Stop(ctx context.Context) error {
	r.mu.Lock()
	if !r.draining {
		r.draining = true
		if len(r.running) == 0 {
			close(r.idle)
		}
	}
	r.mu.Unlock()
	var err error
	select {
	case <-r.idle:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.end(interrupt.ErrShutdown)
	if r.unfollow != nil {
		r.unfollow()
	}
	if err != nil {
		r.cancelRunning(func(*opened) bool { return true }, interrupt.ErrShutdown)
	}
	ended := make(chan struct{})
	go func() {
		<-r.idle
		r.flights.under.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-time.After(r.o.CancelGrace):
		return fmt.Errorf("calls are still running %v after they were canceled", r.o.CancelGrace)
	}
}

// Owner is whose calls run under that access token's name.
func (r *Runtime) Owner(name string) agent.Owner {
	return agent.Owner{Namespace: r.o.Namespace, Name: name}
}

// lifeFor is the life of what begins for ctx and outlives it: in the background where nobody waits for that either.
func (r *Runtime) lifeFor(ctx context.Context) context.Context {
	if sandbox.InBackground(ctx) {
		return sandbox.Background(r.life)
	}
	return r.life
}

// Life returns a context that ends, with its cause, when the Runtime stops.
func (r *Runtime) Life() context.Context { return r.life }

// Settled returns when everything that was read so far is durable: see store.Store.
func (r *Runtime) Settled() error { return r.o.Store.Settled() }

// Feed announces every committed call.
func (r *Runtime) Feed() *progress.Feed { return &r.feed }

// RunTimeout is the limit of a program's own computing time.
func (r *Runtime) RunTimeout() time.Duration { return r.o.RunTimeout }

// HoldAdoption keeps new generations of the method's artifact from being adopted until release is called.
func (r *Runtime) HoldAdoption(role, method string) (release func()) {
	return r.lockAdoption(methodKey{role, method})
}

// lockAdoption locks the method's artifact against adoptions.
func (r *Runtime) lockAdoption(k methodKey) (unlock func()) {
	return r.adoption.lock(k)
}

// cancelRunning cancels the running calls that match.
func (r *Runtime) cancelRunning(match func(*opened) bool, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.running {
		if match(c) {
			c.life.cancel(cause)
		}
	}
}

// enter registers a call as running; leave undoes it.
func (r *Runtime) enter(c *opened) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining && c.depth == 0 {
		return ErrDraining
	}
	r.running[c.id] = c
	return nil
}

func (r *Runtime) leave(c *opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, c.id)
	c.progress.End()
	if r.draining && len(r.running) == 0 {
		select {
		case <-r.idle:
		default:
			close(r.idle)
		}
	}
}

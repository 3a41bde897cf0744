// Package runtime is the way of a call: open the session, select a program, forge or repair one where there is none
// that is healthy, run it in a runner, judge what came back, and finish: one commit, one record, one log entry, on
// every way out and exactly once. What a failed attempt did to the context is dropped. Interrupted is not failed.
//
// It knows nothing of HTTP. What it needs (store, sandbox, provider, clock, metrics) is handed in.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Causes of a call's end from outside, found by context.Cause.
var (
	errCallTimeout = fmt.Errorf("the call's time is over: %w", context.DeadlineExceeded)
	errShutdown    = errors.New("the daemon is shutting down")
	errCanceled    = errors.New("the call was canceled")
)

// Runtime takes calls. Its methods may be called concurrently.
type Runtime struct {
	o       Options
	store   store.Namespace
	box     sandbox.Sandbox
	model   provider.Provider
	metrics *telemetry.Metrics

	policy   atomic.Pointer[agent.Policy]
	policyMu sync.Mutex // held while the policy changes
	undoing  sync.Mutex // held while an act is taken back

	sessions queues   // one call of a session at a time
	adoption keyLocks // one adoption of an artifact's generation, or act of a person on it, at a time
	flights  flights
	compiled compiledContracts
	facts    factsCache
	recent   recentCalls
	ledger   ledger
	counted  adviceCount
	feed     feed
	level    sandbox.Level // what confinement was observed at the start

	life   context.Context         // of what outlives a client: asynchronous calls, flights, maintenance
	end    context.CancelCauseFunc // of life
	tended chan struct{}           // closed when maintenance has ended
	idle   chan struct{}           // closed, under mu, when draining and nothing is under way

	mu       sync.Mutex
	running  map[string]*call // by call id, depth 0 and nested; guarded by mu
	keys     map[string]bool  // idempotency keys of calls under way; guarded by mu
	draining bool             // no more calls are taken; guarded by mu
}

// New wires a Runtime and reads the policy.
func New(ctx context.Context, o Options) (*Runtime, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	held, err := o.Store.Namespace(agent.DefaultNamespace)
	if err != nil {
		return nil, err
	}
	p, err := held.Policy(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	life, end := context.WithCancelCause(context.Background())
	r := &Runtime{o: o, store: held, box: o.Sandbox, model: o.Provider, metrics: o.Metrics,
		running: map[string]*call{}, keys: map[string]bool{}, level: o.Sandbox.Status().Level, ledger: ledger{store: held},
		idle: make(chan struct{}), tended: make(chan struct{}), life: life, end: end}
	r.policy.Store(&p)
	go r.maintain(life)
	return r, nil
}

// Ready returns nil when calls can be taken, else why not.
func (r *Runtime) Ready() error {
	r.mu.Lock()
	draining := r.draining
	r.mu.Unlock()
	if draining {
		return ErrDraining
	}
	return r.o.Store.Ready()
}

// Stop takes no more calls, waits for those under way until ctx ends, then ends them as canceled and waits for
// their records. What works in the background has ended when it returns. It may be called twice.
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
	r.end(errShutdown)
	if err != nil {
		r.cancelRunning(func(*call) bool { return true }, errShutdown)
		<-r.idle
	}
	r.flights.under.Wait()
	<-r.tended
	return err
}

// cancelRunning cancels the calls under way that are meant.
func (r *Runtime) cancelRunning(meant func(*call) bool, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.running {
		if meant(c) {
			c.cancel(cause)
		}
	}
}

// enter makes the call known as running; leave undoes it.
func (r *Runtime) enter(c *call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining && c.depth == 0:
		return ErrDraining
	case c.depth == 0 && len(r.running) >= r.o.MaxCalls:
		return ErrQueueFull
	}
	r.running[c.id] = c
	return nil
}

func (r *Runtime) leave(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, c.id)
	c.progress.end()
	if r.draining && len(r.running) == 0 {
		select {
		case <-r.idle:
		default:
			close(r.idle)
		}
	}
}

// Load counts the calls that are under way, nested ones included, and those that wait for their session's turn.
func (r *Runtime) Load() (running, waiting int) {
	waiting = r.sessions.length()
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(len(r.running)-waiting, 0), waiting
}

// VersionInfo is what /v1/version tells.
type VersionInfo struct {
	Name                string         `json:"name"`
	Version             string         `json:"version"`
	Revision            string         `json:"revision,omitempty"`
	ToolstoreSchema     int            `json:"toolstore_schema_version"`
	PromptVersion       string         `json:"prompt_version"`
	ABI                 string         `json:"runtime_version"`
	Model               string         `json:"model"`
	Provider            string         `json:"provider"`
	Engine              string         `json:"engine"` // the setting: auto, ssa or yaegi
	Sandbox             sandbox.Status `json:"sandbox"`
	KnownToolsPrompt    int            `json:"known_tools_prompt_limit"`
	MaxRepairsBeforeGen int            `json:"max_repairs_before_regen"`
}

// Version tells what this daemon is and what confinement was observed.
func (r *Runtime) Version() VersionInfo {
	p := r.Policy()
	return VersionInfo{Name: "recurgentd", Version: r.o.Version, Revision: r.o.Revision, ToolstoreSchema: agent.SchemaVersion,
		PromptVersion: prompt.Version, ABI: agent.ABI, Model: r.o.Model, Provider: r.model.Name(), Engine: r.o.Engine, Sandbox: r.box.Status(),
		KnownToolsPrompt: p.KnownToolsPromptLimit, MaxRepairsBeforeGen: p.MaxRepairsBeforeRegen}
}

package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Options configures a Runtime. Start from DefaultOptions.
type Options struct {
	Store    store.Store        // required
	Sandbox  sandbox.Sandbox    // required
	Provider provider.Provider  // required
	Metrics  *telemetry.Metrics // required
	Tracer   *telemetry.Tracer  // nil: no traces
	Logger   zerolog.Logger
	Now      func() time.Time // the clock of records and windows

	Model       string        // asked where a session names none
	RunTimeout  time.Duration // of a program's own computing
	CallTimeout time.Duration // of a whole call that names no timeout
	MaxTimeout  time.Duration // the longest timeout a call may name

	MaxQueue    int // calls of one session that may wait
	MaxCalls    int // depth-0 calls under way or waiting in the daemon
	MaxContext  int // bytes of a session's context
	AllowImport func(path string) bool
	Dialect     string // what prompts say of the allowed packages
	Version     string // of the daemon

	MaintenanceTick time.Duration // how often it is looked whether maintenance is due
	Revision        string        // of its source
}

// DefaultOptions returns the options of a daemon, but for what is required.
func DefaultOptions() Options {
	return Options{
		Logger: zerolog.Nop(), Now: time.Now, Model: "gpt-4.1",
		RunTimeout: 30 * time.Second, CallTimeout: 10 * time.Minute, MaxTimeout: time.Hour,
		MaxQueue: 256, MaxCalls: 1024, MaxContext: 1 << 20, Version: "dev", MaintenanceTick: time.Minute,
	}
}

func (o Options) validate() error {
	switch {
	case o.Store == nil || o.Sandbox == nil || o.Provider == nil || o.Metrics == nil:
		return errors.New("runtime: Store, Sandbox, Provider and Metrics are required")
	case o.Now == nil || o.AllowImport == nil:
		return errors.New("runtime: Now and AllowImport are required")
	case o.RunTimeout <= 0 || o.CallTimeout <= 0 || o.MaxTimeout < o.CallTimeout:
		return errors.New("runtime: RunTimeout and CallTimeout must be positive, MaxTimeout at least CallTimeout")
	case o.MaintenanceTick <= 0:
		return errors.New("runtime: MaintenanceTick must be positive")
	case o.MaxQueue < 1 || o.MaxCalls < 1 || o.MaxContext < 1:
		return errors.New("runtime: MaxQueue, MaxCalls and MaxContext must be at least 1")
	}
	return nil
}

// Causes of a call's end from outside, found by context.Cause.
var (
	errCallTimeout = fmt.Errorf("the call's time is over: %w", context.DeadlineExceeded)
	errShutdown    = errors.New("the daemon is shutting down")
	errCanceled    = errors.New("the call was canceled")
)

// Runtime takes calls. Its methods may be called concurrently.
type Runtime struct {
	o       Options
	store   store.Store
	box     sandbox.Sandbox
	model   provider.Provider
	metrics *telemetry.Metrics

	policy   atomic.Pointer[agent.Policy]
	policyMu sync.Mutex // held while the policy changes

	sessions queues   // one call of a session at a time
	adoption keyLocks // one adoption of an artifact's generation at a time
	flights  flights
	compiled compiledContracts
	facts    factsCache
	recent   recentCalls
	ledger   ledger
	feed     feed
	level    sandbox.Level

	mu       sync.Mutex
	running  map[string]*call // by call id, depth 0 and nested; guarded by mu
	keys     map[string]bool  // idempotency keys of calls under way; guarded by mu
	draining bool             // guarded by mu
	idle     chan struct{}    // closed when draining and nothing is under way; guarded by mu
	life     context.Context  // of asynchronous calls and forges
	end      context.CancelCauseFunc
	tended   chan struct{} // closed when maintenance has ended
}

// New wires a Runtime and reads the policy.
func New(ctx context.Context, o Options) (*Runtime, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	p, err := o.Store.Policy(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	life, end := context.WithCancelCause(context.Background())
	r := &Runtime{o: o, store: o.Store, box: o.Sandbox, model: o.Provider, metrics: o.Metrics,
		running: map[string]*call{}, keys: map[string]bool{}, level: o.Sandbox.Status().Level,
		idle: make(chan struct{}), life: life, end: end}
	r.policy.Store(&p)
	r.tended = make(chan struct{})
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
	return r.store.Ready()
}

// Stop takes no more calls, waits for those under way until ctx ends, then ends them as canceled and waits for
// their records. It may be called twice.
func (r *Runtime) Stop(ctx context.Context) error {
	r.mu.Lock()
	if !r.draining {
		r.draining = true
		if len(r.running) == 0 {
			close(r.idle)
		}
	}
	r.mu.Unlock()
	select {
	case <-r.idle:
		r.end(errShutdown)
		<-r.tended
		return nil
	case <-ctx.Done():
	}
	r.end(errShutdown)
	r.mu.Lock()
	for _, c := range r.running {
		c.cancel(errShutdown)
	}
	r.mu.Unlock()
	<-r.idle
	<-r.tended
	return context.Cause(ctx)
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
	Sandbox             sandbox.Status `json:"sandbox"`
	KnownToolsPrompt    int            `json:"known_tools_prompt_limit"`
	MaxRepairsBeforeGen int            `json:"max_repairs_before_regen"`
}

// Version tells what this daemon is and what confinement was observed.
func (r *Runtime) Version() VersionInfo {
	p := r.Policy()
	return VersionInfo{Name: "recurgentd", Version: r.o.Version, Revision: r.o.Revision, ToolstoreSchema: agent.SchemaVersion,
		PromptVersion: prompt.Version, ABI: agent.ABI, Model: r.o.Model, Provider: r.model.Name(), Sandbox: r.box.Status(),
		KnownToolsPrompt: p.KnownToolsPromptLimit, MaxRepairsBeforeGen: p.MaxRepairsBeforeRegen}
}

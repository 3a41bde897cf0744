package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api"
	"github.com/recurgentd/recurgentd/internal/mcp"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/catalog"
	"github.com/recurgentd/recurgentd/internal/runtime/connections"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// services implements api.Runtime for one namespace: calls, operations and views, predictions. It holds caches and
// calls in progress, nothing that could not be rebuilt from the store.
type services struct {
	*runtime.Runtime
	*operator.Operator
	*predict.Service
	*files.Keeper
	*spend.Account
	secrets *connections.Service
	tools   *catalog.Catalog
	agents  *mcp.Server
	mcp     http.Handler

	server   *provider.OpenAI // of the model; nil if there is none
	box      loader
	fetchMax Bytes

	name agent.Namespace
	held store.Namespace
	log  zerolog.Logger

	users   atomic.Int64 // number of requests and other holders; far below zero once closed
	touched atomic.Bool  // set by enter, reset by dropIdle
	leave   func()       // the method release, stored once so that requests do not allocate it

	erased context.Context // ends when the namespace is erased: of streams
	erase  context.CancelCauseFunc

	background context.Context // of what goes on without a request; ends with the services
	end        context.CancelFunc
	resumed    chan struct{} // closed when interrupted corrections are running again; nil until resume
}

// errErased is the cause with which streams and calls of a deleted namespace end.
var errErased = errors.New("the namespace was deleted")

// closed is added to users to close the services. It is too large for any number of users to make the sum positive.
const closed = -1 << 40

// enter counts one more user. It returns false if the services are closed.
func (s *services) enter() bool {
	if s.users.Add(1) <= 0 {
		s.users.Add(-1)
		return false
	}
	if !s.touched.Load() { // it is usually set: avoid the write
		s.touched.Store(true)
	}
	return true
}

// release ends what a successful enter began.
func (s *services) release() { s.users.Add(-1) }

// newKeeper returns the file keeper of a namespace. It sets ro.Storage, the shares of stored bytes.
func newKeeper(p parts, ro *env.Options, held store.Namespace,
	policy func() *agent.Policy) (_ *files.Keeper, err error) {
	if ro.Storage, err = storage.New(storage.Options{Store: held, Policy: policy, Most: p.most,
		Several: p.options.Guarded(), OnRefusal: ro.Metrics.StorageRefused}); err != nil {
		return nil, err
	}
	o := files.DefaultOptions()
	o.Store, o.Namespace, o.Now, o.Policy, o.Room = ro.Store, ro.Namespace, ro.Now, policy, p.room
	o.Shares, o.MaxFile, o.MaxAll = ro.Storage, int64(p.options.FileMax), int64(p.options.FilesMax)
	o.OnDamaged = func(f agent.File) {
		ro.Metrics.FileDamaged()
		ro.Logger.Error().Str("file", f.ID).Str("owner",
			f.Owner).Msg("a stored file has other bytes than were stored: it is not served")
	}
	return files.New(o)
}

// newServices wires the services of a namespace. It serves nothing and does not start maintenance.
func newServices(ctx context.Context, name agent.Namespace, p parts) (*services, error) {
	ro, b := p.runtime, p.build
	ro.Namespace, ro.Metrics = name, ro.Metrics.In(name)
	if name != agent.DefaultNamespace {
		ro.Logger = ro.Logger.With().Str("namespace", string(name)).Logger()
	}
	secrets, err := openConnections(p.options, name, p.transport)
	if err != nil {
		return nil, err
	}
	held, err := p.memory.Namespace(name)
	if err != nil {
		return nil, err
	}
	secrets.Use(held)
	var run *runtime.Runtime
	policy := func() *agent.Policy { return run.PolicyInForce() }
	kept, err := newKeeper(p, &ro, held, policy)
	if err != nil {
		return nil, err
	}
	ro.Files, ro.Owners = kept, p.owners(name, held)
	if ro.Spend, err = p.spend.Account(ctx, name, func() *agent.Policy {
		if run == nil {
			return nil // called while the runtime is being made
		}
		return run.PolicyInForce()
	}); err != nil {
		return nil, err
	}
	if run, err = runtime.New(ctx, ro); err != nil {
		return nil, err
	}
	op, err := operator.New(operator.Options{Store: ro.Store, Shared: ro.Shared, Namespace: name, Sandbox: ro.Sandbox,
		Calls: run, Secrets: secrets, Metrics: ro.Metrics, Logger: ro.Logger, Now: ro.Now, Cost: p.spend.Cost,
		Usage: ro.Spend.Usage, Provider: ro.Provider.Name(),
		Model: ro.Model, Engine: p.options.Engine, StoreName: p.options.storeName(), Durability: p.options.Durability,
		Version: b.Version, Revision: b.Revision})
	if err != nil {
		return nil, err
	}
	answers, err := predict.NewService(predict.Options{Store: ro.Store, Namespace: name, Provider: ro.Provider,
		Calls: run, Spend: ro.Spend, Metrics: ro.Metrics, Tracer: ro.Tracer, Now: ro.Now,
		Model: ro.Model, Timeout: ro.CallTimeout, MaxContext: ro.MaxContext,
		SandboxLevel: string(ro.Sandbox.Status().Level)})
	if err != nil {
		return nil, err
	}
	tools, err := catalog.New(catalog.Options{Store: ro.Store, Namespace: name, Policy: run.PolicyInForce,
		Serving: run.Serving})
	if err != nil {
		return nil, err
	}
	run.OnPolicy(tools.Hint)
	s := &services{Runtime: run, Operator: op, Service: answers, Keeper: kept, Account: ro.Spend, secrets: secrets,
		tools: tools, name: name, held: held, log: ro.Logger,
		server: p.server, box: p.box, fetchMax: p.options.FetchMax}
	s.leave = s.release
	s.erased, s.erase = context.WithCancelCause(context.Background())
	s.background, s.end = context.WithCancel(context.Background())
	if s.agents, err = mcp.New(mcp.Options{Runtime: s, Tools: tools, Version: b.Version, Address: p.options.publicURL(),
		Now: ro.Now, Logger: ro.Logger}); err != nil {
		return nil, err
	}
	s.mcp = s.agents.Handler(p.maxBody)
	return s, nil
}

// Functions is part of api.Runtime.
func (s *services) Functions() *catalog.Catalog { return s.tools }

// MCP is part of api.Runtime.
func (s *services) MCP() http.Handler { return s.mcp }

// Erased is part of api.Runtime.
func (s *services) Erased() context.Context { return s.erased }

// stale reports whether the namespace was erased after the services or their account were made.
func (s *services) stale(ctx context.Context) bool {
	_, _, err := s.held.Policy(ctx)
	return errors.Is(err, store.ErrGone) || s.Account.Erased(ctx)
}

// begin applies the policy of the start-up settings, and resumes corrections that a stop interrupted, in the
// background. It is called once per namespace in the life of the daemon, so a later change of the policy by a person
// stays.
func (s *services) begin(ctx context.Context, patch map[string]any) error {
	if err := s.PolicyAtStart(ctx, patch); err != nil {
		return fmt.Errorf("set the policy of namespace %s: %w", s.name, err)
	}
	s.resumed = make(chan struct{})
	s.users.Add(1)
	go func() {
		defer s.release()
		defer close(s.resumed)
		if err := s.Corrections.Resume(s.background); err != nil && s.background.Err() == nil {
			s.log.Warn().Err(err).Msg("corrections that a stop interrupted could not be resumed")
		}
	}()
	return nil
}

// Holdings counts the contents of the namespace. It reads everything, page by page.
func (s *services) Holdings(ctx context.Context) (*api.Holdings, error) {
	h := &api.Holdings{}
	for after := ""; ; {
		page, _, err := s.Runtime.ListSessions(ctx, sessions.Query{After: after, Limit: countAtOnce})
		if err != nil {
			return nil, err
		}
		h.Sessions += int64(len(page))
		if len(page) < countAtOnce {
			break
		}
		after = page[len(page)-1].ID
	}
	for after := ""; ; {
		page, err := s.ListTools(ctx, after, countAtOnce)
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			methods, err := s.ListArtifacts(ctx, t.Role)
			if err != nil {
				return nil, err
			}
			h.Methods += int64(len(methods))
			after = t.Role
		}
		h.Tools += int64(len(page))
		if len(page) < countAtOnce {
			break
		}
	}
	all, err := s.ListConnections(ctx, "", math.MaxInt)
	h.Connections = int64(len(all))
	return h, err
}

// countAtOnce is the number of entries on a page.
const countAtOnce = 500

// idle reports whether the services have no users and no calls, so closing them loses nothing.
func (s *services) idle() bool { return s.users.Load() == 0 && s.Runtime.Idle() }

// Stop stops the runtime, then the background work. It returns the runtime's error.
func (s *services) Stop(ctx context.Context) error {
	err := s.Runtime.Stop(ctx)
	s.end()
	s.agents.Close()
	s.tools.Close()
	s.Operator.Close()
	if s.resumed != nil {
		<-s.resumed
	}
	return err
}

// stopNow cancels the calls in progress and waits for their end.
func (s *services) stopNow() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Nanosecond, errErased)
	defer cancel()
	// the context must have ended, or Stop could still wait for calls
	<-ctx.Done()
	if err := s.Stop(ctx); err != nil && !errors.Is(err, errErased) {
		return err
	}
	return nil
}

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
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// services is what the REST interface asks of one namespace: calls, operations and views, predictions. It holds caches and what is under way,
// nothing that could not be made anew from the store.
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

	server   *provider.OpenAI // of the model; nil: none is asked
	box      loader
	fetchMax Bytes

	name agent.Namespace
	held store.Namespace
	log  zerolog.Logger

	users   atomic.Int64 // requests and others that hold the services; far below zero once they are closed
	touched atomic.Bool  // since the last look at who is idle
	leave   func()       // the method release: a value of its own, so that nobody's request allocates one

	erased context.Context //nolint:containedctx // ends when the namespace is erased: of streams
	erase  context.CancelCauseFunc

	background context.Context //nolint:containedctx // of what goes on without a request; ends with the services
	end        context.CancelFunc
	resumed    chan struct{} // closed when interrupted corrections are under way again; nil until resume
}

// errErased is why streams and calls of a deleted namespace end.
var errErased = errors.New("the namespace was deleted")

// closed is added to the users of services that take no more.
const closed = -1 << 40

// enter counts one more user. It reports false when the services are closed.
func (s *services) enter() bool {
	if s.users.Add(1) <= 0 {
		s.users.Add(-1)
		return false
	}
	if !s.touched.Load() { // most often it is set: nobody writes then
		s.touched.Store(true)
	}
	return true
}

func (s *services) release() { s.users.Add(-1) }

func newKeeper(p parts, ro *runtime.Options, held store.Namespace,
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

// newServices wires the services of a namespace.
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
			return nil // it is read in a moment
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
		server: p.server, box: p.pool, fetchMax: p.options.FetchMax}
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

// Functions is what agents see.
func (s *services) Functions() *catalog.Catalog { return s.tools }

// MCP serves it.
func (s *services) MCP() http.Handler { return s.mcp }

// Erased ends when the namespace is deleted.
func (s *services) Erased() context.Context { return s.erased }

// stale reports whether the namespace was erased since the services were made, or since the account was that they use.
func (s *services) stale(ctx context.Context) bool {
	_, _, err := s.held.Policy(ctx)
	return errors.Is(err, store.ErrGone) || s.Account.Erased(ctx)
}

// begin applies the policy of the start-up settings, and queues the corrections that a stop interrupted. It is called once in the life of the
// daemon for each namespace: a person's later change of the policy holds.
func (s *services) begin(ctx context.Context, patch map[string]any) error {
	if err := s.PolicyAtStart(ctx, patch); err != nil {
		return fmt.Errorf("set the policy of namespace %s: %w", s.name, err)
	}
	s.resumed = make(chan struct{})
	s.users.Add(1)
	go func() {
		defer s.release()
		defer close(s.resumed)
		if err := s.ResumeCorrections(s.background); err != nil && s.background.Err() == nil {
			s.log.Warn().Err(err).Msg("corrections that a stop interrupted could not be resumed")
		}
	}()
	return nil
}

// Holdings counts what the namespace holds.
func (s *services) Holdings(ctx context.Context) (*api.Holdings, error) {
	h := &api.Holdings{}
	for after := ""; ; {
		page, _, err := s.Runtime.ListSessions(ctx, runtime.SessionQuery{After: after, Limit: countAtOnce})
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

// countAtOnce is how many entries are read at once to count them.
const countAtOnce = 500

// idle reports whether nothing would be lost if the services were made anew at their next use.
func (s *services) idle() bool { return s.users.Load() == 0 && s.Runtime.Idle() }

// Stop stops the runtime, then what runs in the background. It returns the runtime's error.
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

// stopNow cancels the calls under way and waits for their end.
func (s *services) stopNow() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Nanosecond, errErased)
	defer cancel()
	<-ctx.Done()
	if err := s.Stop(ctx); err != nil && !errors.Is(err, errErased) {
		return err
	}
	return nil
}

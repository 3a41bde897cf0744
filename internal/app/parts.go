package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	openapi "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api"
	"github.com/recurgentd/recurgentd/internal/cluster"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/store/postgres"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// parts are shared by all namespaces. They are made in the order of wire, and do not change after it.
type parts struct {
	options   Options
	memory    store.Store
	box       sandbox.Sandbox
	pool      *sandbox.Pool // the box if it consists of processes, otherwise nil
	model     provider.Provider
	server    *provider.OpenAI // OpenAI-compatible server behind model; nil if there is none
	metrics   *telemetry.Metrics
	tracer    *telemetry.Tracer
	build     Build
	compiling env.Compiling // whether programs are compiled
	compiled  func() int64  // bytes of compiled programs on disk; nil if programs are not compiled
	compiler  *compiler     // nil if programs are not compiled
	transport *fetch.Transport
	fetch     *fetch.Client
	heavy     *fair.Heavy[agent.Owner] // turns for masking large bodies
	room      *files.Room
	most      store.Bytes // limits for all namespaces together
	spend     *spend.Ledger
	database  *postgres.Store  // the shared store, if it is a database
	shared    store.Store      // memory without the daemon's own files, if replicas share it; else nil
	cluster   *cluster.Cluster // nil without replicas
	runtime   env.Options      // Namespace is not set
	maxBody   int64            // bytes of an MCP message
	// named reports whether an access token names the namespace, which makes it exist
	named func(agent.Namespace) bool
}

// flushTime bounds how long a stop waits for pending spans, even if the collector does not answer.
const flushTime = time.Second

// openTracer starts to send traces. Without o.Traces the tracer is nil, which traces nothing.
func (a *App) openTracer(ctx context.Context, o Options, m *telemetry.Metrics,
	version string) (*telemetry.Tracer, error) {
	if o.Traces == nil {
		return nil, nil
	}
	to := *o.Traces
	to.Metrics, to.Logger, to.Version = m, a.log, version
	if o.Provider != "replay" { // replay sends no requests
		to.Server = telemetry.ModelServer(o.OpenAIBaseURL)
	}
	tracer, err := telemetry.NewTracer(ctx, to)
	if err != nil {
		return nil, err
	}
	a.onStop("traces", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, flushTime)
		defer cancel()
		if err := tracer.Shutdown(ctx); err != nil {
			a.log.Warn().Err(err).Msg("the last traces were not sent")
		}
		return nil
	})
	return tracer, nil
}

// openStoreAndSandbox opens both concurrently: the store replays its journal while the sandbox starts processes.
func (a *App) openStoreAndSandbox(ctx context.Context, o Options, p *parts) (err error) {
	so := o.SandboxOptions()
	so.Fetch = p.fetch
	_, why := FindCompiler(nil)
	if so.Native = o.compiles() && why == ""; so.Native {
		// do not keep blank runners: compiled programs need one only for a check after the model has written for
		// seconds
		so.Blank = 0
	}
	if o.World.Files == nil {
		tighten(o.DataDir, a.log)
		_ = os.MkdirAll(o.DataDir, 0o700) // the runners' binary goes there; the store reports errors
	}
	var boxErr error
	var opened sync.WaitGroup
	if p.box = o.World.Sandbox; p.box == nil {
		opened.Go(func() {
			p.pool, boxErr = sandbox.New(so)
			p.box = p.pool
		})
	}
	p.memory, err = a.openStore(ctx, o, p)
	opened.Wait()
	if boxErr == nil {
		a.onStop("the sandbox", func(context.Context) error { return p.box.Close() })
	}
	return cmp.Or(err, boxErr)
}

// openStore opens the data directory or the database, or takes o.Shared.
func (a *App) openStore(ctx context.Context, o Options, p *parts) (store.Store, error) {
	if o.Shared != nil {
		p.shared = o.Shared
		return files.Inside(o.Shared), nil
	}
	if o.Database() {
		return a.openDatabase(ctx, o, p)
	}
	so := disk.DefaultOptions()
	if o.Now != nil {
		so.Now = o.Now
	}
	so.Logger, so.FS = a.log, o.World.Files
	var err error
	if so.Interval, err = o.interval(); err != nil {
		return nil, err
	}
	if so.Interval > 0 {
		a.log.Warn().Str("durability",
			o.Durability).Msg("replies do not wait for the disk: a power cut takes the calls of the last interval; adoptions and operations of people are always synced")
	}
	s, err := disk.Open(o.DataDir, so)
	if errors.Is(err, store.ErrInUse) {
		return nil, fmt.Errorf("the data directory %s is in use by another recurgentd; "+
			"stop it, or set another --data-dir", o.DataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the data directory %s: %w", o.DataDir, err)
	}
	a.onStop("the store", s.Close)
	return files.Inside(s), nil
}

// openProvider returns the provider, limited to provider.MaxRequests requests at once, and the server behind it or nil.
func (a *App) openProvider(o Options) (provider.Provider, *provider.OpenAI, error) {
	if o.World.Model != nil {
		return provider.Shared(o.World.Model, provider.MaxRequests), nil, nil
	}
	if provider.WholeURL(o.OpenAIBaseURL) {
		a.log.Warn().Str("base_url",
			provider.MaskURL(o.OpenAIBaseURL)).Msg(
			"the base URL of the model's server ends in /chat/completions, which requests append; that part is ignored")
	}
	po := o.ProviderOptions()
	po.OpenAI.Changed = a.logModel(o)
	po.OnRecordError = func(err error) { a.log.Error().Err(err).Msg("an answer of the model was not recorded") }
	p, err := provider.New(po)
	if err != nil {
		return nil, nil, err
	}
	if c, ok := p.(io.Closer); ok {
		a.onStop("the recording", func(context.Context) error { return c.Close() })
	}
	server := provider.ServerOf(p)
	if server != nil {
		a.lookAtModel(server)
	}
	return provider.Shared(p, provider.MaxRequests), server, nil
}

// modelName returns the model that is recorded as the author of programs. A recording may name another one.
func modelName(o Options) string {
	if o.Provider == "replay" {
		return "recording"
	}
	return o.Model
}

// openNamespaces opens the default namespace, which stays open. Others are opened at their first use.
func (a *App) openNamespaces(ctx context.Context, o Options, p *parts) error {
	ro, tick := env.DefaultOptions(), time.Minute
	if o.Now != nil {
		ro.Now, tick = o.Now, 20*time.Millisecond // only tests set a clock
	}
	ro.Shared = p.shared != nil
	ro.Store, ro.Sandbox, ro.Provider, ro.Metrics, ro.Tracer, ro.Logger = p.memory, p.box, p.model, p.metrics,
		p.tracer, a.log
	ro.Compiling, ro.Heavy = p.compiling, p.heavy
	ro.Model, ro.RunTimeout = modelName(o), o.CallTimeout
	ro.AllowImport = func(path string) bool { _, ok := allow.Find(path); return ok }
	ro.Dialect = allow.Dialect()
	ro.FetchMax, ro.Scheme = o.FetchMax.String(), p.transport.Scheme
	if p.server != nil {
		ro.ModelContext = p.server.Context
	}
	p.runtime, p.room, p.maxBody, p.named, p.most = ro, &files.Room{}, api.DefaultOptions().MaxBody, named(o),
		o.mostStored()
	patch, err := agent.PolicyPatchOf(o.Policy)
	if err != nil {
		return refuse("policy", "%s", err)
	}
	a.spaces.parts, a.spaces.patch = *p, patch
	a.onStop("calls under way", a.drain)
	var bad *agent.PolicyError
	s, err := a.spaces.use(ctx, agent.DefaultNamespace, false)
	if errors.As(err, &bad) {
		return refuse("policy", "%s %s", strings.ReplaceAll(strings.TrimPrefix(bad.Field, "/"), "/", "."), bad.Reason)
	} else if err != nil {
		return err
	}
	defer s.release()
	end := a.spaces.begin(tick)
	a.onStop("maintenance", func(context.Context) error { end(); return nil })
	if p.cluster != nil {
		a.onStop("sessions", func(context.Context) error { p.cluster.Drain(); return nil })
	}
	return nil
}

// named returns a function that reports whether a current access token names the namespace.
func named(o Options) func(agent.Namespace) bool {
	return func(name agent.Namespace) bool {
		tokens, _ := o.Auth.(*access.Tokens)
		if o.tokens != nil {
			tokens = o.tokens.now.Load()
		}
		return tokens != nil && tokens.Names(name)
	}
}

// handler returns the REST interface.
func (a *App) handler(o Options, m *telemetry.Metrics, registry *prometheus.Registry) (http.Handler, error) {
	w := api.DefaultOptions()
	w.Namespaces, w.Metrics, w.Registry, w.Logger = a.spaces, m, registry, a.log
	w.Auth, w.Hosts, w.Origins, w.OpenAPI = o.Auth, o.AllowedHosts, o.CORSOrigins, openapi.OpenAPI
	w.MetricsPublic, w.Issuer, w.PublicURL = o.MetricsPublic, o.OIDCIssuer, o.publicURL()
	w.Cluster = a.spaces.parts.cluster
	w.Forward = cmp.Or(o.ReplicaMove, w.Forward)
	return api.New(w)
}

// byKind converts stored bytes to the label values of the metric.
func byKind(b store.Bytes) map[string]int64 {
	out := map[string]int64{}
	for _, kind := range store.Kinds() {
		out[kind] = b.Of(kind)
	}
	return out
}

// sources returns the functions that metrics call when they are scraped.
func (a *App) sources(p parts) telemetry.Sources {
	s, box := p.memory, p.box
	var others func() telemetry.Cluster
	if p.cluster != nil {
		others = func() telemetry.Cluster { return telemetry.Cluster(p.cluster.Stats()) }
	}
	var database func() telemetry.Database
	if p.database != nil {
		database = func() telemetry.Database { return telemetry.Database(p.database.Figures()) }
	}
	return telemetry.Sources{
		Cluster:         others,
		Database:        database,
		Model:           func() telemetry.Model { return modelFigures(p.server) },
		Spend:           func() telemetry.Spend { return spendStats(p.spend) },
		ProgramCache:    p.compiled,
		Ready:           a.spaces.Ready,
		Calls:           a.spaces.calls,
		Artifacts:       func() map[string]int { return s.Stats().Artifacts },
		Recommendations: a.spaces.recommendations,
		Store: func() telemetry.Store {
			f := s.Stats()
			return telemetry.Store{Commits: f.Commits, Fsyncs: f.Fsyncs, JournalBytes: f.JournalBytes,
				Quarantined:   f.Quarantined,
				CheckpointLag: f.CheckpointLagEntries, Sessions: f.Sessions, Tools: f.Tools, Stored: byKind(f.Stored),
				StoredMost: byKind(p.most)}
		},
		Runners: func() telemetry.Runners {
			f := box.Stats()
			return telemetry.Runners{Busy: f.Busy, Idle: f.Idle, Warm: f.Warm, WarmBytes: f.WarmBytes,
				Spawned: f.Spawned, EngineFailures: f.EngineFailures, Killed: f.Killed}
		},
	}
}

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
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/connections"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/tier"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// parts are what the runtime works with.
type parts struct {
	memory  store.Store
	box     sandbox.Sandbox
	model   provider.Provider
	metrics *telemetry.Metrics
	tracer  *telemetry.Tracer
	build   Build
	native  *tier.Tier
	secrets *connections.Service
}

// flushTime bounds how long spans that wait hold up a stop: a collector that does not answer holds nothing up.
const flushTime = time.Second

// openTracer begins to send traces where that is wanted; else the tracer is nil.
func (a *App) openTracer(ctx context.Context, o Options, m *telemetry.Metrics, version string) (*telemetry.Tracer, error) {
	if o.Traces == nil {
		return nil, nil
	}
	to := *o.Traces
	to.Metrics, to.Logger, to.Version = m, a.log, version
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

// openStoreAndSandbox opens both at once: the one replays its journal, while the other starts processes and observes them.
func (a *App) openStoreAndSandbox(o Options, metrics *telemetry.Metrics) (memory store.Store, box *sandbox.Pool, secrets *connections.Service, err error) {
	client, secrets, err := a.openFetch(o, metrics)
	if err != nil {
		return nil, nil, nil, err
	}
	so := o.SandboxOptions()
	so.Fetch = client
	tighten(o.DataDir, a.log)
	_ = os.MkdirAll(o.DataDir, 0o700) // for the runners' program; the store reports what is wrong with it
	var boxErr error
	var opened sync.WaitGroup
	opened.Go(func() { box, boxErr = sandbox.New(so) })
	memory, err = a.openStore(o)
	opened.Wait()
	if boxErr == nil {
		a.onStop("the sandbox", func(context.Context) error { return box.Close() })
	}
	if err = cmp.Or(err, boxErr); err != nil {
		return memory, box, secrets, err
	}
	held, err := memory.Namespace(agent.DefaultNamespace)
	secrets.Use(held)
	return memory, box, secrets, err
}

func (a *App) openStore(o Options) (store.Store, error) {
	so := disk.DefaultOptions()
	if o.Now != nil {
		so.Now = o.Now
	}
	so.Logger = a.log
	var err error
	if so.Interval, err = o.interval(); err != nil {
		return nil, err
	}
	if so.Interval > 0 {
		a.log.Warn().Str("durability", o.Durability).Msg("replies do not wait for the disk: a power cut takes the calls of the last interval; adoptions and operations of people are always synced")
	}
	s, err := disk.Open(o.DataDir, so)
	if errors.Is(err, store.ErrInUse) {
		return nil, fmt.Errorf("the data directory %s is in use by another recurgentd; stop it, or name another --data-dir", o.DataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the data directory %s: %w", o.DataDir, err)
	}
	a.onStop("the store", s.Close)
	return files.Inside(s), nil
}

func (a *App) openProvider(o Options) (provider.Provider, error) {
	po := o.ProviderOptions()
	po.OnRecordError = func(err error) { a.log.Error().Err(err).Msg("an answer of the model was not recorded") }
	p, err := provider.New(po)
	if err != nil {
		return nil, err
	}
	if c, ok := p.(io.Closer); ok {
		a.onStop("the recording", func(context.Context) error { return c.Close() })
	}
	return provider.Shared(p, provider.MaxRequests), nil
}

// modelName is what programs are said to be written by; a recording may know better.
func modelName(o Options) string {
	if o.Provider == "replay" {
		return "recording"
	}
	return o.Model
}

func (a *App) openRuntime(ctx context.Context, o Options, p parts) error {
	ro, tick := runtime.DefaultOptions(), time.Minute
	if o.Now != nil {
		ro.Now, tick = o.Now, 20*time.Millisecond // only tests have a clock of their own
	}
	ro.Store, ro.Sandbox, ro.Provider, ro.Metrics, ro.Tracer, ro.Logger = p.memory, p.box, p.model, p.metrics, p.tracer, a.log
	ro.Native = p.native
	ro.Model, ro.RunTimeout = modelName(o), o.CallTimeout
	ro.AllowImport = func(path string) bool { _, ok := allow.Find(path); return ok }
	ro.Dialect = allow.Dialect()
	ro.FetchMax = o.FetchMax.String()
	run, err := newServices(ctx, ro, o, p, tick)
	if err != nil {
		return err
	}
	a.run = run
	p.native.Begin(func(context.Context, agent.Namespace) (tier.Source, func(), error) {
		return run.NativeSource(), func() {}, nil
	})
	a.onStop("calls under way", a.drain)
	a.onStop("the native tier", func(context.Context) error { p.native.Stop(); return nil }) // first: what runs natively goes on
	patch, err := agent.PolicyPatchOf(o.Policy)
	if err != nil {
		return refuse("policy", "%s", err)
	}
	var bad *agent.PolicyError
	if err := run.PolicyAtStart(ctx, patch); errors.As(err, &bad) {
		return refuse("policy", "%s %s", strings.ReplaceAll(strings.TrimPrefix(bad.Field, "/"), "/", "."), bad.Reason)
	} else if err != nil {
		return err
	}
	run.Begin()
	return nil
}

func (a *App) handler(o Options, m *telemetry.Metrics, registry *prometheus.Registry) (http.Handler, error) {
	w := api.DefaultOptions()
	w.Runtime, w.Metrics, w.Registry, w.Logger = a.run, m, registry, a.log
	w.Auth, w.Hosts, w.OpenAPI, w.Tools = o.Auth, o.AllowedHosts, openapi.OpenAPI, a.run.tools
	w.MetricsPublic = o.MetricsPublic
	w.MCP = a.run.agents.Handler(w.MaxBody)
	return api.New(w)
}

// sources is what metrics read when they are scraped.
func (a *App) sources(s store.Store, box sandbox.Sandbox, native *tier.Tier) telemetry.Sources {
	return telemetry.Sources{
		NativePrograms: native.Counts,
		Ready:          a.run.Ready,
		Calls:          a.run.Load,
		Artifacts:      func() map[string]int { return s.Stats().Artifacts },
		Recommendations: func() int {
			n, err := a.run.OpenRecommendations(context.Background())
			if err != nil {
				a.log.Warn().Err(err).Msg("cannot count the recommendations")
			}
			return n
		},
		Store: func() telemetry.Store {
			f := s.Stats()
			return telemetry.Store{Commits: f.Commits, Fsyncs: f.Fsyncs, JournalBytes: f.JournalBytes, Quarantined: f.Quarantined,
				CheckpointLag: f.CheckpointLagEntries, Sessions: f.Sessions, Tools: f.Tools}
		},
		Runners: func() telemetry.Runners {
			f := box.Stats()
			return telemetry.Runners{Busy: f.Busy, Idle: f.Idle, Warm: f.Warm, WarmBytes: f.WarmBytes, Spawned: f.Spawned, EngineFailures: f.EngineFailures, Killed: f.Killed}
		},
	}
}

// Package app is the daemon as a value: it wires store, sandbox, model, runtime and REST interface together, serves, and
// shuts all of it down in reverse order. Several daemons can live in one process, each with its own data directory.
//
// It reads no flags and no environment: Options configures everything. It needs one thing of its process, the runner:
// the sandbox re-executes the binary with the argument "runner", which package main hands to sandbox/worker.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// Limits of the HTTP server. Bodies are bounded by the API, calls by their own timeout.
const (
	ReadHeaderTimeout = 5 * time.Second
	ReadTimeout       = 60 * time.Second // of a whole request, its body included
	IdleTimeout       = 60 * time.Second
	MaxHeaderBytes    = 64 << 10
)

// StopTime is how long a clean stop should be given: the deadline of the context of Stop.
const StopTime = 10 * time.Second

// An App is one daemon. New makes it, Start serves, Stop ends it. Its methods may be called from several goroutines.
type App struct {
	log      zerolog.Logger
	listener net.Listener
	server   *http.Server
	spaces   *namespaces
	facts    facts
	scheme   string      // http or https
	peers    *peerServer // nil without --advertise
	files    *watched
	look     func() // at the model, once it serves; nil: none is asked
	prepare  func() // what programs are compiled with, then; nil: nothing

	failed chan error    // what Serve ended with, unless by Stop; holds one
	served chan struct{} // closed when Serve has returned; nil until Start

	steps    []step // in the order of making; undone in reverse
	stopping sync.Once
	stopped  chan struct{} // closed when all steps have run
	stopErr  error         // of all steps; read after stopped

	mu      sync.Mutex
	current string // the step that is being undone; guarded by mu
}

// facts are what the daemon runs with, for the line of its start.
type facts struct {
	version, dataDir, provider, model string
	runners                           int
	sandbox                           sandbox.Level
	durability                        string
	native                            string
}

// A step undoes a part of the App. It hurries when ctx ends.
type step struct {
	name string
	undo func(ctx context.Context) error
}

// New wires an App without serving: the port is taken, the data directory is locked and read, the confinement has been
// observed. When it fails, what was made is undone. The error is one line; an *OptionError names the option that is refused.
func New(ctx context.Context, o Options) (*App, error) {
	if err := o.Resolve(); err != nil {
		return nil, err
	}
	a := &App{log: o.Logger, spaces: newNamespaces(o.Logger), failed: make(chan error, 1), stopped: make(chan struct{})}
	if err := a.wire(ctx, o); err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTime)
		defer cancel()
		return nil, errors.Join(err, a.undo(end))
	}
	return a, nil
}

// wire makes the parts, from the outermost resource to the handler.
func (a *App) wire(ctx context.Context, o Options) error {
	// The port first: that it is taken is the commonest fault and the cheapest to find.
	if err := a.listen(o.Listen); err != nil {
		return err
	}
	build := ReadBuild()
	registry := telemetry.NewRegistry()
	metrics := telemetry.New(registry, telemetry.Build{Version: build.Version, Revision: build.Revision,
		GoVersion: build.Go}, o.measured()...)
	tracer, err := a.openTracer(ctx, o, metrics, build.Version)
	if err != nil {
		return err
	}
	model, server, err := a.openProvider(o)
	if err != nil {
		return err
	}
	p := parts{options: o, model: model, server: server, metrics: metrics, tracer: tracer, build: build}
	if err := a.openFetch(o, &p); err != nil {
		return err
	}
	if err := a.openStoreAndSandbox(ctx, o, &p); err != nil {
		return err
	}
	if err := a.openSpend(ctx, o, &p); err != nil {
		return err
	}
	a.makeServer(o.H2C)
	if err := a.openCluster(ctx, o, &p); err != nil {
		return err
	}
	if err := a.openAccess(&o, metrics); err != nil {
		return err
	}
	o = a.renamed(o)
	p.options = o
	if p.compiling, err = a.openCompiler(o, &p); err != nil {
		return err
	}
	if err := a.openNamespaces(ctx, o, &p); err != nil {
		return err
	}
	metrics.Watch(a.sources(p))
	if a.server.Handler, err = a.handler(o, metrics, registry); err != nil {
		return err
	}
	status := p.pool.Status()
	if status.Level == sandbox.LevelProcess {
		a.log.Warn().Msg("programs run in processes of their own, but nothing else confines them: run only models that you trust")
	}
	a.log.Info().Msg(status.String())
	a.facts = facts{build.Version, o.DataDir, model.Name(), modelName(o), o.Runners, status.Level, o.Durability, "on"}
	if c := p.compiling; c.Why == "" {
		a.facts.native += " (" + c.Toolchain + ", " + c.From + ")"
	} else {
		a.facts.native = "off: " + c.Why
	}
	return nil
}

// renamed returns the options in the words of this version, and logs a warning for each of an earlier one.
func (a *App) renamed(o Options) Options {
	if o.Engine == report.EngineSSA {
		a.log.Warn().Msg("--engine ssa is an earlier name: programs are compiled, as with go")
		o.Engine = report.EngineGo
	}
	if o.Native != "" {
		a.log.Warn().Msg("--native has no effect any more: programs are compiled as --engine says")
	}
	return o
}

func (a *App) onStop(name string, undo func(context.Context) error) {
	a.steps = append(a.steps, step{name, undo})
}

func (a *App) listen(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		hint := "name another --listen"
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "stop what holds it, or " + hint
		}
		return fmt.Errorf("cannot listen on %s: %w; %s", address, cause(err), hint)
	}
	a.listener = l
	a.onStop("the listener", func(context.Context) error { return closeListener(l) })
	return nil
}

// cause is the error without what the message around it says already.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// Start serves from now on. It is called once, and not after Stop.
func (a *App) Start() {
	a.servePeers()
	a.served = make(chan struct{})
	go func() {
		defer close(a.served)
		if err := a.serve(); !errors.Is(err, http.ErrServerClosed) {
			a.failed <- fmt.Errorf("the server ended: %w", err)
		}
	}()
	if a.look != nil {
		a.look()
	}
	f := a.facts
	a.log.Info().Str("version", f.version).Str("address", a.Addr()).Str("data_dir", f.dataDir).Str("provider",
		f.provider).
		Str("model", f.model).Int("runners", f.runners).Str("sandbox", string(f.sandbox)).Str("durability",
		f.durability).Str("native", f.native).Msg("ready")
	if a.prepare != nil {
		a.prepare()
	}
}

// Failed receives the error when the server ends by itself. Stop is due then, too.
func (a *App) Failed() <-chan error { return a.failed }

// Addr is host:port that the App listens on.
func (a *App) Addr() string { return a.listener.Addr().String() }

// URL is where people and commands reach the daemon: an address that stands for all is reached by loopback.
func (a *App) URL() string {
	host, port, err := net.SplitHostPort(a.Addr())
	if err != nil {
		return a.scheme + "://" + a.Addr()
	}
	switch strings.Trim(host, "[]") {
	case "0.0.0.0", "":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return a.scheme + "://" + net.JoinHostPort(host, port)
}

// Package app is the daemon as a value. It wires store, sandbox, model, runtime and REST interface together, serves,
// and shuts everything down in reverse order. Several daemons can live in one process, each with its own data
// directory.
//
// It reads no flags and no environment: Options configures everything. It needs one thing of its process: the sandbox
// re-executes the binary with the argument "runner", which package main must pass to sandbox/worker.
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

// Limits of the HTTP server. The API bounds bodies, and calls have their own timeout.
const (
	ReadHeaderTimeout = 5 * time.Second
	ReadTimeout       = 60 * time.Second // of a whole request, including its body
	IdleTimeout       = 60 * time.Second
	MaxHeaderBytes    = 64 << 10
)

// StopTime is the recommended time for a clean stop, as the deadline of Stop's context.
const StopTime = 10 * time.Second

// An App is one daemon. New makes it, Start serves, and Stop ends it. Its methods may be called concurrently, except
// that Start is called once.
type App struct {
	log      zerolog.Logger
	listener net.Listener
	server   *http.Server
	spaces   *namespaces // open namespaces
	facts    facts       // logged by Start
	scheme   string      // http or https
	peers    *peerServer // serves other replicas; nil without --advertise
	files    *watched    // token and certificate files
	look     func()      // checks the model soon after Start; nil if no model is configured
	prepare  func()      // prepares the compiler after Start; nil if there is nothing to prepare

	failed chan error    // receives the error of Serve unless Stop caused it; has room for one
	served chan struct{} // closed when Serve has returned; nil until Start

	steps    []step // in the order in which the parts were made; undone in reverse
	stopping sync.Once
	stopped  chan struct{} // closed when all steps have run
	stopErr  error         // joined errors of all steps; set before stopped is closed

	mu      sync.Mutex
	current string // name of the step that is being undone; guarded by mu
}

// facts are the effective settings that the log line of the start shows.
type facts struct {
	version, dataDir, provider, model string
	runners                           int
	sandbox                           sandbox.Level
	durability                        string
	native                            string
}

// A step undoes one part of the App. When ctx ends, it must finish quickly.
type step struct {
	name string
	undo func(ctx context.Context) error
}

// New wires an App without serving: it listens on the port, locks and reads the data directory, and checks the sandbox.
// If it fails, it undoes what it has made. The error has one line; an *OptionError names the invalid option.
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

// wire makes the parts. Each registers its step of Stop as soon as it exists, so the order here is the reverse of a
// stop.
func (a *App) wire(ctx context.Context, o Options) error {
	// Listen first: a port in use is the most common fault, and the cheapest to detect.
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

// renamed replaces values of earlier versions, and logs a warning for each.
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

// onStop registers a step of Stop. Steps run in reverse order.
func (a *App) onStop(name string, undo func(context.Context) error) {
	a.steps = append(a.steps, step{name, undo})
}

// listen opens the listener. Its error suggests what to do.
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

// cause returns the error without the operation and address, which the surrounding message names already.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// Start begins to serve, and returns at once. It must be called only once, and not after Stop.
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

// Failed receives an error if a server ends without Stop. Stop must still be called.
func (a *App) Failed() <-chan error { return a.failed }

// Addr returns the HOST:PORT that the App listens on.
func (a *App) Addr() string { return a.listener.Addr().String() }

// URL returns the address for people and commands on this machine. A wildcard address becomes the loopback address.
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

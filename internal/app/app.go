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
	stdlog "log"
	"net"
	"net/http"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/runtime"
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
	if err := a.listen(&o); err != nil {
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
	status := p.box.Status()
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
		a.log.Warn().Msg("--native no longer has an effect: --engine sets how programs run")
	}
	return o
}

// onStop registers a step of Stop. Steps run in reverse order.
func (a *App) onStop(name string, undo func(context.Context) error) {
	a.steps = append(a.steps, step{name, undo})
}

// listen opens the listener. Its error suggests what to do.
func (a *App) listen(o *Options) error {
	l := o.World.Listener
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", o.Listen); err != nil {
			hint := "set another --listen"
			if errors.Is(err, syscall.EADDRINUSE) {
				hint = "stop the process that uses it, or " + hint
			}
			return fmt.Errorf("cannot listen on %s: %w; %s", o.Listen, cause(err), hint)
		}
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

// A Build describes how the binary was built.
type Build struct {
	Version  string `json:"version"`            // release version, or "devel"
	Revision string `json:"revision,omitempty"` // VCS revision; "+changes" marks a modified tree
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// ReadBuild returns the information that the go command stamps into the binary.
func ReadBuild() Build {
	b := Build{Version: "devel", Go: goruntime.Version(), OS: goruntime.GOOS, Arch: goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && b.Revision != "" {
		b.Revision += "+changes"
	}
	return b
}

// String returns the line of the command version.
func (b Build) String() string {
	text := fmt.Sprintf("recurgentd %s %s/%s %s", b.Version, b.OS, b.Arch, b.Go)
	if b.Revision != "" {
		text += " " + b.Revision
	}
	return text
}

// errStopping is the cause with which streams and requests end at a stop.
var errStopping = runtime.ErrDraining

// Stop ends the App. It refuses new calls at once. Running calls may finish within seven tenths of the time until ctx's
// deadline, or without limit if ctx has no deadline. Then they are canceled and recorded, replies are sent, and the
// store writes its files. A failed step does not keep the others from running.
//
// Stop returns when everything has ended. If ctx ends first, it returns an error that names the current step; the other
// steps go on in the background, in a hurry. It may be called again and concurrently: all calls wait for the same end.
func (a *App) Stop(ctx context.Context) error {
	a.stopping.Do(func() {
		a.log.Info().Msg("stopping")
		go func() {
			defer close(a.stopped)
			a.stopErr = a.undo(ctx)
			a.log.Info().Msg("stopped")
		}()
	})
	select {
	case <-a.stopped:
		return a.stopErr
	case <-ctx.Done():
	}
	select {
	case <-a.stopped: // both are ready, and select chooses at random
		return a.stopErr
	default:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Errorf("%s did not end in time: %w", a.current, context.Cause(ctx))
}

// undo runs all steps in reverse order, and returns their joined errors.
func (a *App) undo(ctx context.Context) error {
	var err error
	// current is kept under mu, since Stop reads it while a step runs
	for _, s := range slices.Backward(a.steps) {
		a.mu.Lock()
		a.current = s.name
		a.mu.Unlock()
		err = errors.Join(err, s.undo(ctx))
	}
	return err
}

// most returns a context that ends after seven tenths of the time until ctx's deadline.
func most(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*7/10)
}

// drain waits for running calls and forwarded requests. Calls that had to be canceled are logged, and are not an error.
func (a *App) drain(ctx context.Context) error {
	ctx, cancel := most(ctx)
	defer cancel()
	err := a.spaces.Stop(ctx)
	if c := a.spaces.parts.cluster; c != nil {
		c.AwaitForwards(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		a.log.Warn().Msg("calls under way were canceled")
		return nil
	}
	return err
}

// makeServer makes the server, without a handler. It is made before the handler, so it stops after everything that
// serves requests.
func (a *App) makeServer(h2c bool) {
	base, hangUp := context.WithCancelCause(context.Background())
	a.server = &http.Server{ReadHeaderTimeout: ReadHeaderTimeout, ReadTimeout: ReadTimeout, IdleTimeout: IdleTimeout,
		MaxHeaderBytes: MaxHeaderBytes, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog: stdlog.New(debugWriter{a.log}, "", 0)}
	a.server.Protocols = new(http.Protocols)
	a.server.Protocols.SetHTTP1(true)
	a.server.Protocols.SetUnencryptedHTTP2(h2c)
	a.onStop("the server", func(ctx context.Context) error {
		hangUp(errStopping) // ends streams
		return shutDown(ctx, a.server, a.served)
	})
}

// shutDown ends the server once its replies are sent, or most of the time has passed. served is nil if the server was
// not started.
func shutDown(ctx context.Context, s *http.Server, served <-chan struct{}) error {
	ctx, cancel := most(ctx)
	defer cancel()
	err := s.Shutdown(ctx)
	if err != nil {
		err = s.Close() // replies that clients have not read by then are lost
	}
	if served != nil {
		<-served
	}
	return err
}

// debugWriter logs what net/http reports about broken connections at debug level.
type debugWriter struct{ log zerolog.Logger }

func (w debugWriter) Write(p []byte) (int, error) {
	w.log.Debug().Msg(strings.Join(strings.Fields(string(p)), " "))
	return len(p), nil
}

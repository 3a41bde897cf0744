package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	openapi "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/api"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// demoRecording is what replay answers from when no recording is named: the recorded answers of a real model, and
// programs that were written by hand, which are marked so.
//
//go:embed demo.jsonl
var demoRecording []byte

// Limits of the HTTP server. Bodies are bounded by the API, calls by their own timeout.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 60 * time.Second // of a whole request, its body included
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 64 << 10
)

// How long a clean stop may take, in all 10 s.
const (
	drainTime = 7 * time.Second  // for calls under way to end by themselves
	endTime   = 2 * time.Second  // for those that were then canceled to be recorded, and for replies to leave
	storeTime = 10 * time.Second // for the store to write its files; what is missing then is replayed at the next start
)

// A daemon is everything that serve starts, wired. Make it with startDaemon; it serves until stop.
type daemon struct {
	address string // host:port that it listens on
	log     zerolog.Logger
	run     *runtime.Runtime
	server  *http.Server
	served  chan error // what Serve ended with
	hangUp  context.CancelCauseFunc
	tracer  *telemetry.Tracer // nil: no traces
	closers []func() error    // in order of making; undone in reverse
}

// startDaemon wires the parts and serves. When it fails, what was made is undone. The error is one line.
func startDaemon(ctx context.Context, o Options, log zerolog.Logger, clock func() time.Time) (*daemon, error) {
	d := &daemon{log: log, served: make(chan error, 1)}
	if err := d.wire(ctx, o, clock); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// wire makes the parts, from the outermost resource to the handler, and begins to serve.
func (d *daemon) wire(ctx context.Context, o Options, clock func() time.Time) (err error) {
	var tokens []api.Token
	if o.AuthTokensFile != "" {
		if tokens, err = readTokens(o.AuthTokensFile); err != nil {
			return err
		}
	}
	// The port first: that it is taken is the commonest fault and the cheapest to find.
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		hint := "name another --listen"
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "stop what holds it, or " + hint
		}
		return fmt.Errorf("cannot listen on %s: %w; %s", o.Listen, shorter(err), hint)
	}
	d.closers = append(d.closers, func() error { return ignoreClosed(listener.Close()) })
	d.address = listener.Addr().String()

	build := readBuild()
	registry := telemetry.NewRegistry()
	metrics := telemetry.New(registry, telemetry.Build{Version: build.Version, Revision: build.Revision, GoVersion: build.Go})
	if err := d.openTracer(ctx, o, metrics, build.Version); err != nil {
		return err
	}
	memory, err := d.openStore(o, clock)
	if err != nil {
		return err
	}
	model, err := d.openProvider(o)
	if err != nil {
		return err
	}
	box, err := d.openSandbox(o)
	if err != nil {
		return err
	}
	ro := runtime.DefaultOptions()
	if clock != nil {
		ro.Now, ro.MaintenanceTick = clock, 20*time.Millisecond // only tests have a clock of their own
	}
	ro.Store, ro.Sandbox, ro.Provider, ro.Metrics, ro.Tracer, ro.Logger = memory, box, model, metrics, d.tracer, d.log
	ro.Model, ro.RunTimeout, ro.Engine, ro.Version, ro.Revision = o.Model, o.CallTimeout, o.Engine, build.Version, build.Revision
	if o.Provider == "replay" {
		ro.Model = "recording" // what programs are said to be written by, unless the recording knows
	}
	ro.AllowImport = func(path string) bool { _, ok := allow.Find(path); return ok }
	ro.Dialect = gate.Dialect()
	if d.run, err = runtime.New(ctx, ro); err != nil {
		return err
	}
	metrics.Watch(d.sources(memory, box))

	handler, err := api.New(api.Options{Runtime: d.run, Metrics: metrics, Registry: registry, Logger: d.log,
		Tokens: tokens, Hosts: o.AllowedHosts, OpenAPI: openapi.OpenAPI, MaxBody: api.DefaultOptions().MaxBody})
	if err != nil {
		return err
	}
	d.serve(listener, handler, o.H2C)
	status := box.Status()
	if status.Level == sandbox.LevelProcess {
		d.log.Warn().Msg("programs run in processes of their own, but nothing else confines them: run only models that you trust")
	}
	d.log.Info().Msg(status.String())
	d.log.Info().Str("version", build.Version).Str("address", d.address).Str("data_dir", o.DataDir).Str("provider", model.Name()).
		Str("model", ro.Model).Int("runners", o.Runners).Str("sandbox", string(status.Level)).Msg("ready")
	return nil
}

func (d *daemon) openStore(o Options, clock func() time.Time) (store.Store, error) {
	so := disk.DefaultOptions()
	if clock != nil {
		so.Now = clock
	}
	so.Logger = d.log
	s, err := disk.Open(o.DataDir, so)
	if errors.Is(err, store.ErrInUse) {
		return nil, fmt.Errorf("the data directory %s is in use by another recurgentd; stop it, or name another --data-dir", o.DataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the data directory %s: %w", o.DataDir, err)
	}
	d.closers = append(d.closers, func() error {
		end, cancel := context.WithTimeout(context.Background(), storeTime)
		defer cancel()
		return s.Close(end)
	})
	return s, nil
}

func (d *daemon) openProvider(o Options) (provider.Provider, error) {
	po := provider.Options{Kind: o.Provider, OpenAI: provider.DefaultOpenAIOptions(), Recording: o.Recording, Embedded: demoRecording,
		OnRecordError: func(err error) { d.log.Error().Err(err).Msg("an answer of the model was not recorded") }}
	po.OpenAI.Key, po.OpenAI.BaseURL, po.OpenAI.Timeout = o.OpenAIKey, o.OpenAIBaseURL, o.ProviderTimeout
	p, err := provider.New(po)
	if err != nil {
		return nil, err
	}
	if c, ok := p.(io.Closer); ok {
		d.closers = append(d.closers, c.Close)
	}
	return p, nil
}

func (d *daemon) openSandbox(o Options) (sandbox.Sandbox, error) {
	bo := sandbox.DefaultOptions()
	bo.Runners, bo.Waiting = o.Runners, max(bo.Waiting, o.Runners)
	bo.RunnerCPU = max(bo.RunnerCPU, 4*o.CallTimeout) // a call is bounded by its own deadline, not by its runner's life
	bo.Isolation, bo.Require, bo.Engine, bo.FetchAllow, bo.Log = o.Isolation, o.SandboxRequire, o.Engine, o.FetchAllow, d.log
	p, err := sandbox.New(bo)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, p.Close)
	return p, nil
}

// sources is what metrics read when they are scraped.
func (d *daemon) sources(s store.Store, box sandbox.Sandbox) telemetry.Sources {
	return telemetry.Sources{
		Ready:     d.run.Ready,
		Calls:     d.run.Load,
		Artifacts: func() map[string]int { return s.Stats().Artifacts },
		Recommendations: func() int {
			n, err := d.run.OpenRecommendations(context.Background())
			if err != nil {
				d.log.Warn().Err(err).Msg("cannot count the recommendations")
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
			return telemetry.Runners{Busy: f.Busy, Idle: f.Idle, Warm: f.Warm, Spawned: f.Spawned, Killed: f.Killed}
		},
	}
}

// serve answers requests from now on.
func (d *daemon) serve(l net.Listener, h http.Handler, h2c bool) {
	base, hangUp := context.WithCancelCause(context.Background())
	d.hangUp = hangUp
	d.server = &http.Server{Handler: h, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog: newServerLog(d.log)}
	d.server.Protocols = new(http.Protocols)
	d.server.Protocols.SetHTTP1(true)
	d.server.Protocols.SetUnencryptedHTTP2(h2c)
	go func() { d.served <- d.server.Serve(l) }()
}

var errStopping = errors.New("the daemon is shutting down")

// stop ends the daemon within 10 s: readyz goes down and new calls are refused at once, calls under way may end, what
// does not is canceled and recorded, replies leave, and the store is written out. Each step is taken even if one before it failed.
func (d *daemon) stop() error {
	d.log.Info().Msg("stopping")
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	err := d.run.Stop(drain)
	cancel()
	if errors.Is(err, context.DeadlineExceeded) {
		d.log.Warn().Msg("calls under way were canceled")
		err = nil
	}
	end, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	d.hangUp(errStopping) // streams end
	flushed := make(chan struct{})
	go func() { defer close(flushed); d.flush(end) }()
	if e := d.server.Shutdown(end); e != nil {
		e = d.server.Close()
		err = errors.Join(err, e)
	}
	<-flushed
	if e := <-d.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	err = errors.Join(err, d.close())
	d.log.Info().Msg("stopped")
	return err
}

func (d *daemon) close() error {
	var err error
	for _, c := range slices.Backward(d.closers) {
		err = errors.Join(err, c())
	}
	d.closers = nil
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) { // the server closes its listener itself
		return nil
	}
	return err
}

// shorter is the error without what the message around it says already.
func shorter(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// url is where people and commands reach the daemon: an address that stands for all is reached by loopback.
func (d *daemon) url() string {
	host, port, err := net.SplitHostPort(d.address)
	if err != nil {
		return "http://" + d.address
	}
	switch strings.Trim(host, "[]") {
	case "0.0.0.0", "":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

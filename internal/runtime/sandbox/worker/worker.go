// Package worker is the code of a runner process, the confined side of the sandbox. It confines the process before it
// reads any untrusted input. Then it gates, compiles and runs one program for the daemon at the other end of its pipe,
// until the pipe closes.
//
// It trusts the daemon and holds no secrets. It is the only part of the binary that parses a model's source. Only
// package main imports it, no package of the daemon (internal/imports_test.go).
package worker

import (
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/launch"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Main is the main function of a runner, which the daemon starts as "recurgentd runner". It confines the process,
// serves the daemon until the pipe closes, and returns the exit code. With wire.LaunchArg on the command line it is a
// launcher instead.
func Main() int {
	if slices.Contains(os.Args, wire.LaunchArg) {
		return launch.Main()
	}
	return Serve(NewEngine)
}

// Serve is the runner part of Main with another engine.
func Serve(newEngine func(setting string) (Engine, error)) int {
	rt.GrowStack()
	in, out := Open()
	base := runtime.NumGoroutine()
	cfg, engine, err := Confine(in, out, newEngine)
	if err == nil && !cfg.Probe {
		err = serve.Serve(serve.Runner{Config: cfg, In: in, Out: out, Engine: engine, Goroutines: base})
	}
	return wire.ExitCode(err)
}

// Open returns the runner's ends of the pipe. It must be called before the first byte is read, because a binary linked
// with the C library restarts itself here to get under landlock.
func Open() (in *wire.Reader, out io.Writer) {
	landlockFirst()
	return wire.Pipe()
}

// Confine reads the configuration, confines the process, and reports to the daemon that it is ready. It creates the
// engine before, because that may need what confinement forbids.
func Confine(in *wire.Reader, out io.Writer, newEngine func(setting string) (Engine,
	error)) (*wire.Config, Engine, error) {
	cfg, err := serve.Configure(in)
	if err != nil {
		return nil, nil, err
	}
	if cfg.Confine == nil {
		return nil, nil, wire.ErrFrame
	}
	ready := &wire.Ready{Layers: map[string]string{}, Build: wire.Build}
	limitProcess(cfg.Confine, ready.Layers)
	engine, err := newEngine(cfg.Engine)
	if err != nil {
		return nil, nil, err
	}
	if cfg.Probe {
		ready.Probes = map[string]string{}
	}
	// No untrusted input has been read yet, and none is read before this returns.
	confineProcess(cfg, ready)
	var wr wire.Builder
	ready.Put(&wr)
	_, err = out.Write(wr.Finish())
	return cfg, engine, err
}

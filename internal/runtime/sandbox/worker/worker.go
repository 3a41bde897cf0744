// Package worker is the confined side of the sandbox: the code of a runner process. It confines itself before it reads
// any untrusted input. Then it gates, compiles and runs one program for the daemon at the other end of its pipe, until
// the pipe closes.
//
// It trusts the daemon and holds no secrets. It is the only part of the binary that parses what a model wrote. Nothing
// of the daemon imports it; only package main does (internal/imports_test.go).
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

// Main is the whole of a runner, the process that the daemon starts as "recurgentd runner": it confines the process, then serves
// the daemon until the pipe closes. With wire.LaunchArg it launches an executable instead. It returns the exit code.
func Main() int {
	if slices.Contains(os.Args, wire.LaunchArg) {
		return launch.Main()
	}
	return Serve(NewEngine)
}

// Serve is Main with another engine.
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

// Open returns the runner's ends of the pipe, after what must come before the first byte is read: with the C library landlock needs
// a second start of the process.
func Open() (in *wire.Reader, out io.Writer) {
	landlockFirst()
	return wire.Pipe()
}

// Confine reads the configuration, confines the process, and reports to the daemon that it is ready. The engine is made before, since
// it may need what confinement forbids.
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
	// Nothing foreign has been read yet, and nothing is before this returns.
	confineProcess(cfg, ready)
	var wr wire.Builder
	ready.Put(&wr)
	_, err = out.Write(wr.Finish())
	return cfg, engine, err
}

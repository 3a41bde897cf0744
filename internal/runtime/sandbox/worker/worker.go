// Package worker is the confined side of the sandbox: the code of a runner process. It confines itself before it reads
// any untrusted input. Then it gates, compiles and runs one program for the daemon at the other end of its pipe, until
// the pipe closes.
//
// It trusts the daemon and holds no secrets. It is the only part of the binary that parses what a model wrote. Nothing
// of the daemon imports it; only package main does (internal/imports_test.go).
package worker

import (
	"encoding/json"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Main is the whole of a runner, the process that the daemon starts as "recurgentd runner": it confines the process, then serves
// the daemon until the pipe closes. It returns the exit code.
func Main() int { return Serve(NewEngine) }

// Serve is Main with another engine.
func Serve(newEngine func(setting string) (Engine, error)) int {
	in, out := Open()
	base := runtime.NumGoroutine()
	cfg, engine, err := Confine(in, out, newEngine)
	if err == nil && !cfg.Probe {
		err = serve.Serve(serve.Runner{Config: cfg, In: in, Out: out, Engine: engine, Goroutines: base})
	}
	return serve.ExitCode(err)
}

// Open returns the runner's ends of the pipe, after what must come before the first byte is read: with the C library landlock needs
// a second start of the process.
func Open() (in *wire.Reader, out io.Writer) {
	landlockFirst()
	return serve.Pipe()
}

const (
	// maxStack lies below the hard limits, so that the Go runtime dies in good order.
	maxStack = 64 << 20
	// procs is one. A collector on a second thread stands still while another process has its processor, and the program allocates on,
	// gigabytes a second: on a busy machine programs that kept almost nothing ran out of memory.
	procs = 1
)

// Confine reads the configuration, confines the process, and reports to the daemon that it is ready. The engine is made before, since
// it may need what confinement forbids.
func Confine(in *wire.Reader, out io.Writer, newEngine func(setting string) (Engine, error)) (*wire.Config, Engine, error) {
	kind, payload, err := in.Next(wire.MaxReady)
	if err != nil {
		return nil, nil, err
	}
	if kind != wire.KindConfig {
		return nil, nil, wire.ErrFrame
	}
	cfg := &wire.Config{}
	if err := json.Unmarshal(payload, cfg); err != nil {
		return nil, nil, err
	}
	runtime.GOMAXPROCS(procs)
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(cfg.Memory * 2 / 3)
	ready := &wire.Ready{Layers: map[string]string{}, Build: wire.Build}
	limitProcess(cfg, ready.Layers)
	engine, err := newEngine(cfg.Engine)
	if err != nil {
		return nil, nil, err
	}
	if cfg.Probe {
		ready.Probes = map[string]string{}
	}
	if tested, ok := engine.(interface{ SelfTest() error }); ok && cfg.Probe {
		if err := tested.SelfTest(); err != nil {
			ready.Engine = wire.BoundText([]byte(err.Error()), 1000)
		}
	}
	// Nothing foreign has been read yet, and nothing is before this returns.
	confineProcess(cfg, ready)
	var wr wire.Builder
	if err := ready.Put(&wr); err != nil {
		return nil, nil, err
	}
	_, err = out.Write(wr.Finish())
	return cfg, engine, err
}

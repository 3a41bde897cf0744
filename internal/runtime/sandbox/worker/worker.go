// Package worker is the confined side of the sandbox: the code of a runner process. It confines itself before it reads
// any untrusted input. Then it gates, compiles and runs one program for the daemon at the other end of its pipe, until
// the pipe closes.
//
// It trusts the daemon and holds no secrets. It is the only part of the binary that parses what a model wrote. Nothing
// of the daemon imports it; only package main does (internal/imports_test.go).
package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Main is the whole of a runner, the process that the daemon starts as "recurgentd runner": it confines the process, then serves
// the daemon until the pipe closes. It returns the exit code.
func Main() int { return Serve(NewEngine) }

// Serve is Main with another engine.
func Serve(newEngine func(setting string) (Engine, error)) int {
	in, out := Open()
	if err := serve(in, out, newEngine); err != nil && err != io.EOF {
		fmt.Fprintln(descriptor(2), "runner:", err)
		return 3
	}
	return 0
}

// Open returns the runner's ends of the pipe, after what must come before the first byte is read: with the C library landlock needs
// a second start of the process.
func Open() (in *wire.Reader, out io.Writer) {
	landlockFirst()
	return wire.NewReader(descriptor(0)), descriptor(wire.AnswerFD)
}

// A descriptor is read and written with plain blocking system calls: no poller, no goroutine to wake.
type descriptor int

func (f descriptor) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(f), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (f descriptor) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := syscall.Write(int(f), p[done:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

const (
	// maxStack lies below the hard limits, so that the Go runtime dies in good order.
	maxStack = 64 << 20
	// procs is one. A collector on a second thread stands still while another process has its processor, and the program allocates on,
	// gigabytes a second: on a busy machine programs that kept almost nothing ran out of memory.
	procs = 1
	// maxFrame bounds what the daemon may send, which is trusted.
	maxFrame = 1 << 30
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

// A runner serves the daemon once the process is confined.
type runner struct {
	cfg    *wire.Config
	in     *wire.Reader
	out    io.Writer
	wr     wire.Builder
	engine Engine
	loaded bool

	base   int // goroutines before confinement, whose own may not have ended yet after it
	memory []metrics.Sample
}

func serve(in *wire.Reader, out io.Writer, newEngine func(setting string) (Engine, error)) (err error) {
	r := &runner{in: in, out: out, base: runtime.NumGoroutine(), memory: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	if r.cfg, r.engine, err = Confine(in, out, newEngine); err != nil || r.cfg.Probe {
		return err
	}
	for {
		kind, payload, err := r.in.Next(maxFrame)
		if err != nil {
			return err
		}
		switch kind {
		case wire.KindLoad:
			err = r.load(payload)
		case wire.KindRun:
			err = r.run(payload)
		}
		if err != nil {
			return err
		}
	}
}

func (r *runner) send() error {
	_, err := r.out.Write(r.wr.Finish())
	r.wr.Shrink()
	return err
}

// load gates and compiles the one program that this process will ever run.
func (r *runner) load(payload []byte) error {
	source, err := wire.ParseLoad(payload)
	if err != nil || r.loaded {
		return wire.ErrFrame
	}
	r.loaded = true
	l := r.compile(source)
	l.Put(&r.wr)
	return r.send()
}

func (r *runner) compile(source string) (l wire.Loaded) {
	defer func() {
		if v := recover(); v != nil {
			l = wire.Loaded{Fault: wire.BoundText([]byte(fmt.Sprintf("compiling: %v", v)), wire.MaxMessage)}
		}
	}()
	var err error
	l.Facts, l.Refusal, err = r.engine.Load(source)
	if fault, ok := errors.AsType[*interp.Failure](err); ok {
		l.Fault = wire.BoundText([]byte(fault.Why), wire.MaxMessage)
	} else if err != nil {
		l.Error = wire.BoundText([]byte(err.Error()), wire.MaxMessage)
	}
	return l
}

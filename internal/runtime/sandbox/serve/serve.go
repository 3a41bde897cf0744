// Package serve is the protocol loop of a confined runner, whatever engine runs its program. It takes calls from the
// daemon, answers them, and forwards the questions of the program. It serves until the pipe closes, and keeps no state
// between runs apart from the loaded program.
//
// It needs only the standard library and packages of this module, because native executables are built from it as well
// (package native). It does not confine the process.
package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// An Engine prepares and runs one program inside a runner. Its methods are called from one goroutine.
type Engine interface {
	// Load gates and compiles the source. It is called at most once, before any Run.
	Load(source string) (*report.Facts, *report.Refusal, error)
	// Run runs the program. It ends in exactly one of a value with a nil error, an error that the program returned, or
	// a panic.
	Run(call *recurgent.Call, now time.Time, seed uint64) (value any, err error, panicked *rt.Panic)
	// Reads returns how often the last run read the clock and randomness.
	Reads() (clock, randomness int)
	// Encode returns the JSON encoding of a value that a program made.
	Encode(v any) (json.RawMessage, error)
}

// A Runner is a confined process that is ready for its program.
type Runner struct {
	Config     *wire.Config
	In         *wire.Reader
	Out        io.Writer
	Engine     Engine
	Goroutines int // number before confinement, whose own goroutines may still be running
}

// maxFrame bounds frames of the daemon, which is trusted.
const maxFrame = 1 << 30

// A server holds the state of Serve.
type server struct {
	cfg    *wire.Config
	in     *wire.Reader
	out    io.Writer
	wr     wire.Builder
	engine Engine
	loaded bool

	base   int // goroutines of an idle runner
	memory []metrics.Sample
	pace   *Pace
}

// Launched is the main function of a process that a launcher has confined. It serves the daemon and returns the exit
// code.
func Launched(engine Engine) int {
	base := runtime.NumGoroutine()
	in, out := wire.Pipe()
	cfg, err := Configure(in)
	if err == nil {
		err = Serve(Runner{Config: cfg, In: in, Out: out, Engine: engine, Goroutines: base})
	}
	return wire.ExitCode(err)
}

// Serve serves the daemon until the pipe closes, and then returns io.EOF. Any other error means that the protocol was
// broken. It ignores frames of unknown kinds.
func Serve(r Runner) error {
	s := &server{cfg: r.Config, in: r.In, out: r.Out, engine: r.Engine, base: r.Goroutines,
		memory: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}},
		pace:   NewPace(r.Config.Memory)}
	for {
		kind, payload, err := s.in.Next(maxFrame)
		if err != nil {
			return err
		}
		switch kind {
		case wire.KindFix:
			err = s.fix(payload)
		case wire.KindLoad:
			err = s.load(payload)
		case wire.KindRun:
			err = s.run(payload)
		case wire.KindText:
			err = s.text(payload)
		}
		if err != nil {
			return err
		}
	}
}

func (s *server) send() error {
	_, err := s.out.Write(s.wr.Finish())
	s.wr.Shrink()
	return err
}

// fix replies with the repaired text of a source. It loads nothing: the daemon decides what is loaded.
func (s *server) fix(payload []byte) error {
	m, err := wire.ParseFix(payload)
	fixer, ok := s.engine.(interface {
		Fix(source string, t report.Terms) report.Fixed
	})
	if err != nil || s.loaded {
		return wire.ErrFrame
	}
	done := wire.Fixed{Fixed: report.Fixed{Text: m.Source}}
	if ok {
		done.Fixed = fixer.Fix(m.Source, m.Terms)
	}
	if err := done.Put(&s.wr); err != nil {
		return err
	}
	return s.send()
}

// load gates and compiles the only program that this process will run.
func (s *server) load(payload []byte) error {
	source, err := wire.ParseLoad(payload)
	if err != nil || s.loaded {
		return wire.ErrFrame
	}
	s.loaded = true
	l := s.compile(source)
	l.Put(&s.wr)
	return s.send()
}

// compile loads the source into the engine. A panic is reported as a fault of the engine.
func (s *server) compile(source string) (l wire.Loaded) {
	defer func() {
		if v := recover(); v != nil {
			l = wire.Loaded{Fault: wire.BoundText([]byte(fmt.Sprintf("compiling: %v", v)), wire.MaxMessage)}
		}
	}()
	var err error
	l.Facts, l.Refusal, err = s.engine.Load(source)
	if fault, ok := errors.AsType[*rt.Failure](err); ok {
		l.Fault = wire.BoundText([]byte(fault.Why), wire.MaxMessage)
	} else if err != nil {
		l.Error = wire.BoundText([]byte(err.Error()), wire.MaxMessage)
	}
	return l
}

// A Checker is an Engine that also prepares programs for the compiler.
type Checker interface {
	// Check gates the source and returns the text to compile with its facts.
	Check(source string) (text string, facts *report.Facts, refusal *report.Refusal, err error)
}

// text replies with the text for the compiler. The process loads no program afterwards.
func (s *server) text(payload []byte) error {
	source, err := wire.ParseLoad(payload)
	checker, ok := s.engine.(Checker)
	if err != nil || s.loaded || !ok {
		return wire.ErrFrame
	}
	s.loaded = true
	c := check(source, checker)
	c.Put(&s.wr)
	return s.send()
}

// check checks the source for the compiler. A panic is reported as a fault of the engine.
func check(source string, by Checker) (c *wire.Checked) {
	defer func() {
		if v := recover(); v != nil {
			c = &wire.Checked{Loaded: wire.Loaded{Fault: wire.BoundText([]byte(fmt.Sprintf("rewriting: %v", v)),
				wire.MaxMessage)}}
		}
	}()
	c = &wire.Checked{}
	var err error
	if c.Text, c.Facts, c.Refusal, err = by.Check(source); err != nil {
		c.Error = wire.BoundText([]byte(err.Error()), wire.MaxMessage)
	}
	return c
}

const (
	// maxStack is below the hard limits, so the Go runtime reports an overflow before the kernel kills the process.
	maxStack = 64 << 20
	// procs is 1. A garbage collector on a second thread may be descheduled while the program allocates on, gigabytes a
	// second. On busy machines, programs that kept almost nothing ran out of memory.
	procs = 1
)

// Configure reads the configuration, the first frame on the pipe, and sets the limits of the Go runtime. It does not
// confine the process.
func Configure(in *wire.Reader) (*wire.Config, error) {
	kind, payload, err := in.Next(wire.MaxReady)
	if err != nil {
		return nil, err
	}
	if kind != wire.KindConfig {
		return nil, wire.ErrFrame
	}
	cfg, err := wire.ParseConfig(bytes.Clone(payload))
	if err != nil {
		return nil, err
	}
	runtime.GOMAXPROCS(procs)
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(cfg.Memory * 2 / 3)
	return cfg, nil
}

// Package support is what every native executable holds beside its program: package main calls Main, and the program's text calls the rest in the
// place of what would not follow from the call (package rewrite puts it there). It uses the standard library alone.
//
// A launcher has confined the process (package launch), and this package narrows that before anything of the program runs (package now). The text has no initialisers of package variables: Reset has them.
package support

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	_ "github.com/recurgentd/recurgentd/internal/runtime/sandbox/narrow/now"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
)

// A Program is the program of an executable.
type Program struct {
	Source string // the text that was checked
	Once   bool   // a run may leave something in the state of other packages: the process runs nothing afterwards
	Reset  func() // initialises the package variables
	Run    func(*recurgent.Call) (any, error)
}

// Main is the whole of an executable's process: it serves the daemon until the pipe closes. Tests build executables of many programs; a process runs the one that it is asked to load.
func Main(all ...Program) { os.Exit(serve.Launched(&engine{all: all})) }

// An engine is the serve.Engine of programs that are there already.
type engine struct {
	all     []Program
	program *Program
}

// Load takes the program with that source.
func (e *engine) Load(source string) (*report.Facts, *report.Refusal, error) {
	i := slices.IndexFunc(e.all, func(p Program) bool { return p.Source == source })
	if i < 0 {
		return nil, nil, errors.New("this executable holds another program")
	}
	e.program = &e.all[i]
	return &report.Facts{}, nil, nil // the daemon knows them
}

// Residue reports whether the run may have left something in the state of packages.
func (e *engine) Residue() bool { return e.program.Once }

func (e *engine) Run(call *recurgent.Call, now time.Time, seed uint64) (value any, err error, panicked *rt.Panic) {
	env.Begin(now, seed)
	returned := false
	defer func() {
		if !returned {
			line := panicLine()
			panicked = rt.PanicOf(recover())
			value, err, panicked.Line = nil, nil, line
		}
	}()
	e.program.Reset()
	value, err = e.program.Run(call)
	returned = true
	return value, err, nil
}

// panicLine returns where in the program's text the panic under way began. It must be called by the deferred function that recovers.
func panicLine() int {
	var pcs [256]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case !panicked:
			panicked = f.Function == "runtime.gopanic"
		case strings.HasPrefix(f.Function, "tool") && strings.HasSuffix(f.File, "program.go"):
			return f.Line
		}
		if !more {
			return 0
		}
	}
}

// OnSleep sets what a program of the runs to come waits in when it sleeps.
func (e *engine) OnSleep(wait func(time.Duration)) { env.OnSleep(wait) }

func (e *engine) Reads() (int, int) {
	r := env.Reads()
	return r.Clock, r.Randomness
}

func (e *engine) Encode(v any) (json.RawMessage, error) { return rt.Encode(v) }

// Zero sets a package variable to its zero value.
func Zero[T any](p *T) {
	var zero T
	*p = zero
}

// Value returns v. A call keeps its place among other calls; an expression that only reads does not.
//
//go:noinline
func Value[T any](v T) T { return v }

// ZeroOf is the zero value of another one's type.
func ZeroOf[T any](T) (zero T) { return zero }

var _ serve.Engine = (*engine)(nil)

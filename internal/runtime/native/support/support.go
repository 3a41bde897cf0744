// Package support is linked into every native executable in addition to its program. Package main calls Main. The
// program's text calls the other functions, and those of the packages below, in place of those whose results would not
// be determined by the call (package rewrite inserts them). It imports only the standard library and packages of this
// module that do the same. What stands in for larger libraries is in packages below, so that only programs that use
// these are linked with them.
//
// A launcher has confined the process (package launch), and this package narrows that confinement before anything of
// the program runs (package now). The text has no initializers of package variables; Program.Reset contains them.
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

// A Program is a program in an executable.
type Program struct {
	Source string // the text that the gate checked
	Once   bool   // a run may change the state of other packages, so the process must not run the program again
	Reset  func() // initialises the package variables
	Run    func(*recurgent.Call) (any, error)
}

// Main is the main function of an executable. It serves the daemon until the pipe closes. Tests build executables of
// several programs; a process runs the one that it is asked to load.
func Main(all ...Program) { os.Exit(serve.Launched(&engine{all: all})) }

// An engine is a serve.Engine whose programs are compiled in.
type engine struct {
	all     []Program
	program *Program
}

// Load selects the program with that source. It returns an error if the executable holds another one.
func (e *engine) Load(source string) (*report.Facts, *report.Refusal, error) {
	i := slices.IndexFunc(e.all, func(p Program) bool { return p.Source == source })
	if i < 0 {
		return nil, nil, errors.New("this executable holds another program")
	}
	e.program = &e.all[i]
	return &report.Facts{}, nil, nil // the daemon has the facts
}

// Residue reports whether the run may have changed the state of packages.
func (e *engine) Residue() bool { return e.program.Once }

// Run runs the program with freshly initialized package variables. A panic is recovered and returned.
func (e *engine) Run(call *recurgent.Call, now time.Time, seed uint64) (value any, err error, panicked *rt.Panic) {
	env.Begin(now, seed)
	for _, begin := range begins {
		begin(call)
	}
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

// begins are called at the start of each run. Packages that stand in for libraries add them.
var begins []func(*recurgent.Call)

// OnRun adds a function to call at the start of each run, before the package variables are initialised.
func OnRun(begin func(*recurgent.Call)) { begins = append(begins, begin) }

// panicLine returns the line of the program's text at which the current panic began, or 0. The deferred function that
// recovers must call it.
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

// OnSleep sets the function that performs the sleeps of later runs.
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

// Value returns v. It is a call, which keeps its place in the order of evaluation; an expression that only reads does
// not.
//
//go:noinline
func Value[T any](v T) T { return v }

// ZeroOf returns the zero value of the argument's type.
func ZeroOf[T any](T) (zero T) { return zero }

var _ serve.Engine = (*engine)(nil)

// Sent returns a function that returns its argument, converted to the element type of the channel.
func Sent[C ~chan T | ~chan<- T, T any](C) func(T) T { return func(v T) T { return v } }

// Aliases of predeclared types, for programs that redeclare their names.
type (
	Any        = any
	Bool       = bool
	Byte       = byte
	Complex128 = complex128
	Complex64  = complex64
	Error      = error
	Float32    = float32
	Float64    = float64
	Int        = int
	Int16      = int16
	Int32      = int32
	Int64      = int64
	Int8       = int8
	Rune       = rune
	String     = string
	Uint       = uint
	Uint16     = uint16
	Uint32     = uint32
	Uint64     = uint64
	Uint8      = uint8
	Uintptr    = uintptr
)

// Float, Kind, Checked, FloatAs and Decode are the functions that gate.Program.GuardDigits inserts.
func Float(v any) any { return rt.Float(v) }

func Kind(v any) any { return rt.Kind(v) }

func Checked(v any) any { return rt.Checked(v) }

func FloatAs[T any](v any) any { return rt.FloatAs[T](v) }

func Decode(d *json.Decoder, v any) error { return rt.Decode(d, v) }

// Unmarshal replaces json.Unmarshal.
func Unmarshal(data []byte, v any) error { return recurgent.Unmarshal(data, v) }

// Package yaegi runs checked programs with the interpreter github.com/traefik/yaegi. It is for the programs that gate.Choose gives to
// it: those that stay within the Go which that interpreter runs exactly as the toolchain does.
//
// The interpreter sees no files, no environment, no standard streams and no symbols but the program-visible names
// that the program itself selects. It is no boundary: programs run in a confined process.
package yaegi

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"time"

	yaegi "github.com/traefik/yaegi/interp"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Name and Version identify the engine in records of runs. Version is the one in go.mod.
const (
	Name    = "yaegi"
	Version = "v0.16.2-0.20260209085605-fcb76d1ece0c"
)

// A Compiled is a program ready to run, again and again, one run at a time.
type Compiled struct {
	env *rt.Env
	run func(*recurgent.Call) (any, error)
}

// Compile prepares a checked program. What initialises its package variables, which gate.Choose knows to be constant, runs here.
// An error says that the interpreter does not take the program; another engine may.
func Compile(p *gate.Program) (out *Compiled, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("yaegi: the program does not compile: %v", r)
		}
	}()
	c := &Compiled{env: rt.New()}
	table, err := exports(p, c.env)
	if err != nil {
		return nil, err
	}
	i := yaegi.New(yaegi.Options{
		SourcecodeFilesystem: embed.FS{}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Args: []string{}, Env: []string{},
	})
	if err := i.Use(table); err != nil {
		return nil, fmt.Errorf("yaegi: %w", err)
	}
	program, err := i.Compile(p.Source)
	if err != nil {
		return nil, fmt.Errorf("yaegi: %w", err)
	}
	returned := make(chan error, 1)
	go func() { // of its own, so that an end of the goroutine is noticed
		ended := errors.New("initialisation did not return")
		defer func() { returned <- ended }()
		_, ended = i.Execute(program)
	}()
	if err := <-returned; err != nil {
		return nil, fmt.Errorf("yaegi: %w", err)
	}
	run := i.Symbols("tool")["tool"]["Run"]
	if !run.IsValid() {
		return nil, errors.New("yaegi: the program has no Run")
	}
	f, ok := run.Interface().(func(*recurgent.Call) (any, error))
	if !ok {
		return nil, fmt.Errorf("yaegi: Run is a %s", run.Type())
	}
	c.run = f
	return c, nil
}

// Begin sets the clock and the seed of the next run.
func (c *Compiled) Begin(now time.Time, seed uint64) { c.env.Begin(now, seed) }

// Reads returns what the last run read of clock and chance.
func (c *Compiled) Reads() rt.Reads { return c.env.Reads() }

// Run calls the program's Run. Exactly one of a value with a nil error, an error that the program returned, and a
// Panic is the answer.
func (c *Compiled) Run(call *recurgent.Call) (value any, err error, panicked *interp.Panic) {
	returned := false
	defer func() {
		if returned {
			return
		}
		value, err, panicked = nil, nil, describe(recover())
	}()
	value, err = c.run(call)
	returned = true
	return value, err, nil
}

// describe tells of a panic's value without trusting its methods. The line is unknown: the interpreter knows only the function.
func describe(r any) (p *interp.Panic) {
	p = &interp.Panic{}
	defer func() {
		if again := recover(); again != nil {
			p.Class, p.Message = "error", "a panic whose text panics"
		}
		if len(p.Message) > 4096 {
			p.Message = p.Message[:4096] + "..."
		}
	}()
	if w, ok := r.(yaegi.Panic); ok {
		r = w.Value
	}
	switch r := r.(type) {
	case runtime.Error:
		p.Class, p.Message = "runtime error", r.Error()
	case *reflect.ValueError:
		p.Class, p.Message = "runtime error", "runtime error: invalid memory address or nil pointer dereference"
	case error:
		p.Class, p.Message = "error", r.Error()
		runtimeText(p)
	case nil:
		p.Class, p.Message = "exit", "Run did not return"
	case string:
		p.Class, p.Message = "string", r
		runtimeText(p)
	default:
		p.Class, p.Message = fmt.Sprintf("%T", r), fmt.Sprint(r)
	}
	return p
}

// runtimeText gives a panic that the interpreter or package reflect raised where Go's own run-time system would have,
// the class and the beginning of the text of that.
func runtimeText(p *interp.Panic) {
	text := p.Message
	switch {
	case strings.HasPrefix(text, "reflect: slice index out of range"), strings.HasPrefix(text, "reflect: array index out of range"),
		strings.HasPrefix(text, "reflect: string index out of range"):
		text = "runtime error: index out of range"
	case strings.HasPrefix(text, "reflect.Value.Slice: "), strings.HasPrefix(text, "reflect.Value.Slice3: "):
		text = "runtime error: slice bounds out of range"
	case strings.HasPrefix(text, "reflect.MakeSlice: negative len"):
		text = "runtime error: makeslice: len out of range"
	case strings.HasPrefix(text, "reflect: "), strings.HasPrefix(text, "reflect."):
		text = "runtime error: " + text
	default:
		_, conversion, ok := strings.Cut(text, "interface conversion: ")
		if !ok || len(text) > 500 {
			return
		}
		text = "interface conversion: " + conversion
	}
	p.Class, p.Message = "runtime error", text
}

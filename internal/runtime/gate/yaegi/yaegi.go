// Package yaegi runs checked programs with the interpreter github.com/traefik/yaegi. It is for programs that
// gate.WhyNotYaegi accepts: those within the part of Go that this interpreter runs exactly as the toolchain does.
//
// The interpreter sees no files, no environment, no standard streams, and only the allowed symbols that the program
// itself selects. It is not a security boundary: programs run in a confined process.
package yaegi

import (
	"embed"
	"errors"
	"fmt"
	"go/ast"
	"go/printer"
	"io"
	"reflect"
	"strings"
	"time"

	yaegi "github.com/traefik/yaegi/interp"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Name and Version identify the engine in records of runs. Version must match go.mod.
const (
	Name    = "yaegi"
	Version = "v0.16.2-0.20260209085605-fcb76d1ece0c"
)

// A Compiled is a program that is ready to run any number of times, one run at a time.
type Compiled struct {
	env *rt.Env
	run func(*recurgent.Call) (any, error)
}

// Compile prepares a checked program. It runs the initialisers of package variables, which gate.WhyNotYaegi has checked
// to be constant. It returns an error if the interpreter rejects the program.
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
	source, err := guarded(p, table)
	if err != nil {
		return nil, fmt.Errorf("yaegi: %w", err)
	}
	i := yaegi.New(yaegi.Options{
		SourcecodeFilesystem: embed.FS{}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Args: []string{}, Env: []string{},
	})
	if err := i.Use(table); err != nil {
		return nil, fmt.Errorf("yaegi: %w", err)
	}
	program, err := i.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("yaegi: %w", err)
	}
	returned := make(chan error, 1)
	go func() { // in a goroutine of its own, so that runtime.Goexit is noticed
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

// guarded returns the text of the program with guarded digits, and adds the functions that it calls to the table.
func guarded(p *gate.Program, table yaegi.Exports) (string, error) {
	const prefix = "Digits" // no name of the host package begins so
	host := table[allow.Host+"//recurgent"]
	host[prefix+"Float"], host[prefix+"Kind"] = reflect.ValueOf(rt.Float), reflect.ValueOf(rt.Kind)
	host[prefix+"Checked"] = reflect.ValueOf(rt.Checked)
	p.GuardDigits(func(name string) ast.Expr { return &ast.Ident{Name: "recurgent." + prefix + name} })
	var b strings.Builder
	err := printer.Fprint(&b, p.Fset, p.File)
	return b.String(), err
}

// OnSleep sets a function to call with the duration of each sleep. nil means that sleeps do not wait.
func (c *Compiled) OnSleep(wait func(time.Duration)) { c.env.OnSleep(wait) }

// Begin sets the clock and the seed of the next run.
func (c *Compiled) Begin(now time.Time, seed uint64) { c.env.Begin(now, seed) }

// Reads returns the last run's reads of the clock and of randomness.
func (c *Compiled) Reads() rt.Reads { return c.env.Reads() }

// Run calls the program's Run and returns one of three results: a value with a nil error, the error that the program
// returned, or a Panic. The Panic has no line, because the interpreter does not know it.
func (c *Compiled) Run(call *recurgent.Call) (value any, err error, panicked *rt.Panic) {
	returned := false
	defer func() {
		if !returned {
			value, err, panicked = nil, nil, rt.PanicOf(recover())
		}
	}()
	value, err = c.run(call)
	returned = true
	return value, err, nil
}

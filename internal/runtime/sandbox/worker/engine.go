package worker

import (
	"encoding/json"
	"runtime"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rewrite"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/yaegi"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
)

// An Engine prepares and runs one program inside a runner. Tests of confinement replace the default with engines that
// give a program everything.
type Engine = serve.Engine

// gateEngine is the default engine. Package gate checks and repairs programs, and yaegi runs those that it can.
type gateEngine struct {
	gate    *gate.Gate
	checks  bool            // it runs nothing, because programs are compiled elsewhere
	program *yaegi.Compiled // nil before Load
	residue bool            // see gate.Program
	wait    func(time.Duration)
}

// noLines guards a table of line positions, half a megabyte, that the reader of export data builds for a process's
// first package. NewEngine marks it as done, because the gate's export data has no positions.
//
//go:linkname noLines golang.org/x/tools/internal/gcimporter.fakeLinesOnce
var noLines sync.Once

// NewEngine returns the default engine. With the setting report.EngineGo it only checks programs for the compiler. With
// any other setting yaegi runs what it can.
func NewEngine(setting string) (Engine, error) {
	noLines.Do(func() {})
	g, err := gate.New(gate.Options{})
	if err != nil {
		return nil, err
	}
	return &gateEngine{gate: g, checks: setting == report.EngineGo}, nil
}

// Load checks the source and prepares it for yaegi. It refuses a program that only the compiler can run.
func (e *gateEngine) Load(source string) (*report.Facts, *report.Refusal, error) {
	p, refusal := e.gate.Check(source)
	if refusal != nil {
		return nil, refusal, nil
	}
	if e.checks {
		return nil, needsCompiler("this runner only checks programs"), nil
	}
	if why := gate.WhyNotYaegi(p); why != "" {
		return nil, needsCompiler("the program has " + why), nil
	}
	c, err := yaegi.Compile(p)
	if err != nil {
		return nil, needsCompiler(err.Error()), nil
	}
	e.program, e.residue = c, p.Residue
	p.Facts.Engine = yaegi.Name + " " + yaegi.Version
	return &p.Facts, nil, nil
}

// needsCompiler returns the refusal of a program that only a compiler can run. It explains how to get one, because
// nothing is wrong with the program.
func needsCompiler(why string) *report.Refusal {
	remedy := "Run a daemon that `make build` has built, or put the Go toolchain of " + runtime.Version() +
		" on its PATH, and start it without --engine yaegi. `recurgentd doctor` shows what is missing."
	return &report.Refusal{Type: report.Unsupported,
		Message: "the program has to be compiled, and there is no Go compiler for it: " + why + ". " + remedy,
		Hint:    remedy}
}

// Fix repairs the faults in a source that have only one possible repair.
func (e *gateEngine) Fix(source string, t report.Terms) report.Fixed {
	return e.gate.Fix(source, t)
}

// Check gates the source and returns the text for the Go compiler.
func (e *gateEngine) Check(source string) (string, *report.Facts, *report.Refusal, error) {
	p, refusal := e.gate.Check(source)
	if refusal != nil {
		return "", nil, refusal, nil
	}
	text, err := rewrite.Text(p, source)
	if err != nil {
		return "", nil, nil, err
	}
	return text, &p.Facts, nil, nil
}

// Run runs the program once.
func (e *gateEngine) Run(call *recurgent.Call, now time.Time, seed uint64) (any, error, *rt.Panic) {
	e.program.Begin(now, seed)
	e.program.OnSleep(e.wait)
	return e.program.Run(call)
}

// Residue reports whether a run may have left something in the state of packages.
func (e *gateEngine) Residue() bool { return e.residue }

// OnSleep sets the function that performs the sleeps of later runs. Nil means that sleeps only move the program's
// clock.
func (e *gateEngine) OnSleep(wait func(time.Duration)) { e.wait = wait }

// Reads returns how often the last run has read clock and randomness.
func (e *gateEngine) Reads() (int, int) {
	r := e.program.Reads()
	return r.Clock, r.Randomness
}

// Encode returns the JSON form of a program's value.
func (e *gateEngine) Encode(v any) (json.RawMessage, error) { return rt.Encode(v) }

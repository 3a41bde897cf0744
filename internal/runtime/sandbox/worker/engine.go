package worker

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rewrite"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/selftest"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/yaegi"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
)

// An Engine compiles and runs one program inside a runner. Another engine can take the place of the
// default one; the tests of confinement use some that give a program everything.
type Engine = serve.Engine

// gateEngine is the default engine: of package gate's interpreters the one that gate.Choose names.
type gateEngine struct {
	gate     *gate.Gate
	setting  string // one of report.Engines
	compiled compiled
	residue  bool                // see gate.Program
	wait     func(time.Duration) // of a program that sleeps; nil for none
}

// A compiled is a program that one of the engines has made ready.
type compiled interface {
	Begin(now time.Time, seed uint64)
	OnSleep(wait func(time.Duration))
	Run(call *recurgent.Call) (value any, err error, panicked *interp.Panic)
	Reads() rt.Reads
}

// noLines guards the table of lines that the reader of export data makes for positions, half a megabyte at a process's first package. The gate's data has
// no positions.
//
//go:linkname noLines golang.org/x/tools/internal/gcimporter.fakeLinesOnce
var noLines sync.Once

// NewEngine returns the default engine, package gate and its interpreters, under one of the settings of report.Engines.
func NewEngine(setting string) (Engine, error) {
	noLines.Do(func() {})
	g, err := gate.New(gate.Options{})
	if err != nil {
		return nil, err
	}
	return &gateEngine{gate: g, setting: setting}, nil
}

func (e *gateEngine) Load(source string) (*report.Facts, *report.Refusal, error) {
	p, refusal := e.gate.Check(source)
	if refusal != nil {
		return nil, refusal, nil
	}
	e.residue = p.Residue
	if gate.Choose(p, e.setting) == report.EngineYaegi {
		if c, err := yaegi.Compile(p); err == nil {
			e.compiled, p.Facts.Engine = c, yaegi.Name+" "+yaegi.Version
			return &p.Facts, nil, nil
		}
		// The other engine takes what this one refuses.
	}
	c, err := interp.Compile(p)
	if err != nil {
		return nil, nil, err
	}
	e.compiled, p.Facts.Engine = c, interp.Name+" "+interp.Version
	return &p.Facts, nil, nil
}

// Fix repairs what has one reading in a source.
func (e *gateEngine) Fix(source string, t report.Terms) report.Fixed {
	return e.gate.Fix(source, t)
}

// Check gates the source and returns the text that a Go compiler takes.
func (e *gateEngine) Check(source string) (string, *report.Facts, *report.Refusal, error) {
	p, refusal := e.gate.CheckAsWritten(source)
	if refusal != nil {
		return "", nil, refusal, nil
	}
	text, err := rewrite.Text(p, source)
	if err != nil {
		return "", nil, nil, err
	}
	return text, &p.Facts, nil, nil
}

func (e *gateEngine) Run(call *recurgent.Call, now time.Time, seed uint64) (any, error, *interp.Panic) {
	e.compiled.Begin(now, seed)
	e.compiled.OnSleep(e.wait)
	return e.compiled.Run(call)
}

// Residue reports whether a run may have left something in the state of packages.
func (e *gateEngine) Residue() bool { return e.residue }

// OnSleep sets what a program of the runs to come waits in when it sleeps.
func (e *gateEngine) OnSleep(wait func(time.Duration)) { e.wait = wait }

func (e *gateEngine) Reads() (int, int) {
	r := e.compiled.Reads()
	return r.Clock, r.Randomness
}

func (e *gateEngine) Encode(v any) (json.RawMessage, error) { return interp.Encode(v) }

// SelfTest runs programs whose answers are known, and returns an error that names the first that answers otherwise.
func (e *gateEngine) SelfTest() error {
	if e.setting == report.EngineGo {
		return nil // it runs nothing
	}
	programs, err := selftest.Programs()
	if err != nil {
		return err
	}
	for _, p := range programs {
		if got := e.answer(p.Source); got != p.Want {
			return fmt.Errorf("the program %q answers %.300s, and must answer %.300s", p.Name, got, p.Want)
		}
	}
	return nil
}

// answer runs a program without arguments and returns the JSON of its value, or how else it ended.
func (e *gateEngine) answer(source string) string {
	one := &gateEngine{gate: e.gate, setting: e.setting}
	if _, refusal, err := one.Load(source); refusal != nil {
		return "refused: " + refusal.Message
	} else if err != nil {
		return err.Error()
	}
	call, err := recurgent.New(recurgent.Input{}, nil)
	if err != nil {
		return err.Error()
	}
	value, err, panicked := one.Run(call, time.Unix(1790000000, 0), 1)
	if panicked != nil {
		return "panic: " + panicked.Message
	}
	if err != nil {
		return err.Error()
	}
	raw, err := one.Encode(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

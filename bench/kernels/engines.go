package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/yaegi"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	runners "github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
)

// An engine runs one compiled program.
type engine interface {
	Begin(now time.Time, seed uint64)
	Run(*recurgent.Call) (any, error, *interp.Panic)
	Close()
}

// prepareWith compiles kernels by a compiler and returns what runs them. The last program is kept, as a runner keeps it.
func prepareWith(compile func(*gate.Program) (engine, error)) func(job) (func() (any, error), error) {
	var last engine
	var lastName string
	pace := runners.NewPace(256 << 20) // as a runner has it
	return func(j job) (func() (any, error), error) {
		if last == nil || lastName != j.Kernel {
			k, err := find(j.Kernel)
			if err != nil {
				return nil, err
			}
			if last != nil {
				last.Close()
				last = nil
			}
			if last, err = check(k, compile); err != nil {
				return nil, err
			}
			lastName = j.Kernel
		}
		return runOf(last, j.N, pace)
	}
}

func check(k kernel, compile func(*gate.Program) (engine, error)) (engine, error) {
	g, err := gate.New(gate.Options{})
	if err != nil {
		return nil, err
	}
	p, refusal := g.Check(k.source())
	if refusal != nil {
		return nil, fmt.Errorf("refused: %s %q", refusal.Message, refusal.Errors)
	}
	return compile(p)
}

// runOf returns what runs the program once with the argument n.
func runOf(e engine, n int, pace *runners.Pace) (func() (any, error), error) {
	arg, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	return func() (any, error) {
		call, err := recurgent.New(recurgent.Input{Args: []json.RawMessage{arg}}, nobody{})
		if err != nil {
			return nil, err
		}
		e.Begin(time.Unix(1790000000, 0), 1)
		value, err, panicked := e.Run(call)
		pace.Ran()
		if panicked != nil {
			return nil, errors.New(panicked.Message)
		}
		return value, err
	}, nil
}

func compileSSA(p *gate.Program) (engine, error) { return interp.Compile(p) }

func compileYaegi(p *gate.Program) (engine, error) {
	c, err := yaegi.Compile(p)
	if err != nil {
		return nil, err
	}
	return alone{c}, nil
}

// alone is a program on yaegi whose runs that panic are not run by the other engine.
type alone struct{ *yaegi.Compiled }

func (a alone) Run(call *recurgent.Call) (any, error, *interp.Panic) {
	value, err, panicked := a.Compiled.Run(call)
	if a.Retold() && panicked == nil {
		panicked = &interp.Panic{Message: "panicked on yaegi alone"}
	}
	return value, err, panicked
}

type nobody struct{}

func (nobody) Ask(op string, _, _ any) error {
	return &recurgent.Failure{Type: "denied", Message: "no " + op + " here"}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/yaegi"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	runners "github.com/recurgentd/recurgentd/internal/runtime/sandbox/serve"
)

// prepareYaegi returns the prepare function for yaegi. It keeps the last program, as a runner does.
func prepareYaegi() func(job) (func() (any, error), error) {
	var last *yaegi.Compiled
	var lastName string
	pace := runners.NewPace(256 << 20) // as a runner has it
	return func(j job) (func() (any, error), error) {
		if last == nil || lastName != j.Kernel {
			k, err := find(j.Kernel)
			if err != nil {
				return nil, err
			}
			p, err := check(k)
			if err != nil {
				return nil, err
			}
			if last, err = yaegi.Compile(p); err != nil {
				return nil, err
			}
			lastName = j.Kernel
		}
		return runOf(last, j.N, pace)
	}
}

// check runs the gate on a kernel.
func check(k kernel) (*gate.Program, error) {
	g, err := gate.New(gate.Options{})
	if err != nil {
		return nil, err
	}
	p, refusal := g.Check(k.source())
	if refusal != nil {
		return nil, fmt.Errorf("refused: %s %q", refusal.Message, refusal.Errors)
	}
	return p, nil
}

// runOf returns a function that runs the program once with the argument n.
func runOf(c *yaegi.Compiled, n int, pace *runners.Pace) (func() (any, error), error) {
	arg, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	return func() (any, error) {
		call, err := recurgent.New(recurgent.Input{Args: []json.RawMessage{arg}}, nobody{})
		if err != nil {
			return nil, err
		}
		c.Begin(time.Unix(1790000000, 0), 1)
		value, err, panicked := c.Run(call)
		pace.Ran()
		if panicked != nil {
			return nil, errors.New(panicked.Message)
		}
		return value, err
	}, nil
}

// nobody is a host that denies every request.
type nobody struct{}

func (nobody) Ask(op string, _, _ any) error {
	return &recurgent.Failure{Type: "denied", Message: "no " + op + " here"}
}

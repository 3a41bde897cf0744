package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Values of Step.Result.
const (
	StepOK      = "ok"
	StepWarn    = "warn" // works, with a reservation
	StepFailed  = "failed"
	StepUnknown = "unknown" // not determined, because an earlier step failed
)

// A Step is one aspect of the model's server that a check examined.
type Step struct{ Name, Result, Detail string }

// Values of Step.Name, in order.
const (
	StepReached  = "reached"
	StepKey      = "key"
	StepModel    = "model"
	StepTools    = "tools"
	StepLimit    = "limit"
	StepContext  = "context"
	StepProgram  = "program"
	StepCompiles = "compiles"
)

// A Check is the result of asking the model for one program as calls do.
type Check struct {
	OK    bool // the program arrived and may run
	Steps []Step
	Usage agent.Usage
	Took  time.Duration
	Err   error // error of the request; nil if a program arrived
}

// Check asks the model for the program of r in the way that calls do, and reports each step. compile checks whether the
// program may run. It returns a short description, or an error that is reported.
func (p *OpenAI) Check(ctx context.Context, r Request, compile func(ctx context.Context, code string) (string,
	error)) Check {
	began := time.Now()
	r.Model = p.opts.Model
	var c Check
	reply, err := p.Program(ctx, r)
	_, c.Usage = Answered(err, reply.Usage)
	if again, ok := Again(r.Messages, err); ok {
		r.Messages = again
		reply, err = p.Program(ctx, r)
		_, more := Answered(err, reply.Usage)
		c.Usage.Add(more)
	}
	c.Err, c.Took = err, time.Since(began)
	c.Steps = p.reachedSteps(err)
	if model := &c.Steps[stepModel-stepReached]; model.Result == StepFailed {
		if names, _ := p.list(ctx); len(names) > 0 {
			model.Detail += "; the server has " + p.scrub(some(names))
		}
	}
	c.Steps = append(c.Steps, p.profileSteps(err)...)
	if err != nil {
		named := slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Result == StepFailed })
		program := Step{StepProgram, StepFailed, p.detail(err)}
		if named {
			program = Step{StepProgram, StepUnknown, ""}
		}
		c.Steps = append(c.Steps, program, Step{StepCompiles, StepUnknown, ""})
		return c
	}
	c.Steps = append(c.Steps, Step{StepProgram, StepOK, fmt.Sprintf("%d lines of Go, found in the form %s",
		strings.Count(strings.TrimSpace(reply.Code), "\n")+1, reply.Form)})
	words, err := compile(ctx, reply.Code)
	if c.OK = err == nil; err != nil {
		words = err.Error()
	}
	c.Steps = append(c.Steps, Step{StepCompiles, resultOf(err == nil, StepOK, StepFailed), words})
	return c
}

func resultOf(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

// answered reports whether the model answered, even with an invalid payload.
func answered(err error) bool { return err == nil || errors.Is(err, ErrInvalidPayload) }

func (p *OpenAI) detail(err error) string {
	if err == nil {
		return ""
	}
	return p.scrub(err.Error())
}

// reachedSteps returns the steps reached, key and model. All steps before a failed one are right.
func (p *OpenAI) reachedSteps(err error) []Step {
	steps := []Step{{StepReached, StepOK, p.BaseURL()}, {StepKey, StepOK, "accepted"},
		{StepModel, StepOK, fmt.Sprintf("%q is known", p.opts.Model)}}
	if p.opts.Key == "" {
		steps[1].Detail = "none is set, and none was asked for"
	}
	var failed *Error
	if answered(err) || errors.As(err, &failed) && failed.step >= stepLimit {
		return steps
	}
	right, wrong := 0, len(steps) // steps before right are right, step wrong is wrong, the others are unknown
	switch {
	case failed == nil:
	case failed.step > stepNone:
		wrong = int(failed.step - stepReached)
		right = wrong
	case failed.status > 0:
		right = 1
	}
	for i := right; i < len(steps); i++ {
		steps[i].Result, steps[i].Detail = StepUnknown, ""
		if i == wrong {
			steps[i].Result, steps[i].Detail = StepFailed, p.detail(err)
		}
	}
	return steps
}

// profileSteps returns the steps tools, limit and context: how the model is asked.
func (p *OpenAI) profileSteps(err error) []Step {
	profile := p.Profile(p.opts.Model)
	tools := Step{StepTools, StepOK, profile.Tools.Value}
	if profile.Tools.Value == "none" {
		tools.Result, tools.Detail = StepWarn, "none: the program comes as text"
	}
	limit := Step{StepLimit, StepOK, fmt.Sprintf("%d tokens of a reply (limit_field: %s)", profile.Limit.Value,
		profile.LimitField.Value)}
	known := Step{StepContext, StepOK, fmt.Sprintf("%d tokens", profile.Context.Value)}
	switch {
	case profile.Context.Value == 0 && p.isOllama():
		known.Result, known.Detail = StepWarn,
			"not known: Ollama holds 4096 tokens unless it is started with OLLAMA_CONTEXT_LENGTH=16384, and cuts off the rest without a word; say it by --model-context"
	case profile.Context.Value == 0:
		known.Detail = "not known; nothing was refused for it"
	case profile.Context.Value < smallContext:
		known.Result = StepWarn
		known.Detail += fmt.Sprintf(": less than the %d that requests with their replies need; give the server more",
			smallContext)
	}
	steps := []Step{tools, limit, known}
	facts := []string{profile.Tools.LearnedFrom, profile.Limit.LearnedFrom, profile.Context.LearnedFrom}
	var failed *Error
	errors.As(err, &failed)
	for i := range steps {
		if facts[i] != "" {
			steps[i].Detail += " (learned: " + facts[i] + ")"
		}
		switch {
		case i == 1 && failed != nil && failed.step == stepLimit, i == 2 && failed != nil && failed.step == stepContext:
			steps[i].Result, steps[i].Detail = StepFailed, p.detail(err)
		case !answered(err) && facts[i] == "":
			steps[i] = Step{steps[i].Name, StepUnknown, ""}
		}
	}
	return steps
}

// smallContext is how many tokens requests with their replies may need.
const smallContext = 8192

// isOllama guesses from the port or name in the address.
func (p *OpenAI) isOllama() bool {
	return strings.Contains(p.opts.BaseURL, ":11434") || strings.Contains(p.opts.BaseURL, "ollama")
}

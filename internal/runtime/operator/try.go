package operator

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/verify"
	"github.com/recurgentd/recurgentd/internal/store"
)

// TryRequest selects the program and the input of Try.
type TryRequest struct {
	Role, Method, Owner string
	Code, Generation    string // at most one is set; neither means the current program
	Args                []json.RawMessage
	Kwargs              json.RawMessage
	Context             json.RawMessage
	NoFetch             bool
}

// TryReport is the result of a dry run, with a comparison to the current program.
type TryReport struct {
	Outcome  agent.Outcome  `json:"outcome"`
	Examples ExampleSummary `json:"examples"`
	Fixtures FixtureSummary `json:"fixtures"`
}

// ExampleSummary counts the results of the method's examples.
type ExampleSummary struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// FixtureSummary counts the recorded answers that stay the same, and lists those that would change.
type FixtureSummary struct {
	Same    int                     `json:"same"`
	Changed []verify.ChangedFixture `json:"changed"`
}

// Try runs a program on the given input, on the method's examples, and on the fixtures of the current program. It
// stores and counts nothing. Nested calls run current programs without a commit, and never forge. Writes are denied.
func (o *Operator) Try(ctx context.Context, q TryRequest) (TryReport, error) {
	var report TryReport
	p, err := o.program(ctx, verify.DryRun{Role: q.Role, Method: q.Method, Owner: q.Owner}, q.Generation, q.Code)
	if err != nil {
		return report, err
	}
	p.Args, p.Kwargs, p.Context, p.NoFetch = q.Args, q.Kwargs, q.Context, q.NoFetch
	report.Outcome = o.calls.RunDry(ctx, p)
	run := ExampleRun{Results: o.calls.CheckExamples(ctx, p)}
	run.count()
	report.Examples = ExampleSummary{run.Passed, run.Failed, run.Skipped}
	report.Fixtures.Same, report.Fixtures.Changed = o.calls.CompareFixtures(ctx, p)
	return report, nil
}

// program sets the program of a dry run: the given code after the gate, or a stored generation.
func (o *Operator) program(ctx context.Context, p verify.DryRun, generation, code string) (verify.DryRun, error) {
	err := agent.Names(&p.Role, &p.Method)
	if err == nil {
		p.Kwargs, err = agent.KeywordArguments(p.Kwargs)
	}
	if err != nil {
		return p, err
	}
	if code != "" && generation != "" {
		return p, &agent.InputError{Code: "validation_failed", Pointer: "/generation",
			Detail: "generation and code cannot be used together", Hint: "leave one of them out"}
	}
	a, err := o.store.Artifact(ctx, p.Role, p.Method)
	// given code can be tried before the method exists
	if err != nil && (!errors.Is(err, store.ErrNotFound) || code == "") {
		return p, err
	}
	p.Artifact = a
	if code != "" {
		g, err := o.gated(ctx, code, agent.Declaration{}, p.Owner)
		p.Generation = g
		return p, err
	}
	p.Generation = a.Current()
	if generation != "" {
		p.Generation = a.Find(generation)
	}
	switch {
	case p.Generation == nil && generation == "":
		return p, &agent.InputError{Code: "no_program", Detail: "no program of this method is kept yet",
			Hint: "the first call forges one, which must fulfil the method's examples"}
	case p.Generation == nil:
		return p, &agent.InputError{Code: "invalid_generation", Pointer: "/generation",
			Detail: "that generation is not kept", Hint: "GET .../generations lists those that are kept"}
	}
	return p, nil
}

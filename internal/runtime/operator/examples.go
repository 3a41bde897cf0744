package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/verify"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Examples returns the method's examples, active and proposed. The list is empty if the method has none.
func (o *Operator) Examples(ctx context.Context, role, method string) ([]agent.Example, error) {
	a, err := o.store.Artifact(ctx, role, method)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return []agent.Example{}, nil
	case err != nil:
		return nil, err
	}
	return append([]agent.Example{}, a.Examples...), nil
}

// An ExamplesPut is the desired list of a method's active examples.
type ExamplesPut struct {
	Role, Method string
	Examples     []agent.Example
	Revision     int64 // required current revision; store.AnyRevision, or 0 if there must be none
	Actor        string
}

// PutExamples replaces the active examples of a method, which need not exist yet. Proposed examples stay, even if the
// list contains them. An example without an id takes over the id of the active one with the same input, and outlives
// the session of its call if no effects were recorded. An example with the id and input of an active one keeps the
// recorded effects of its call. Errors are *agent.InputError or the store's: store.ErrConflict means another revision.
func (o *Operator) PutExamples(ctx context.Context, q ExamplesPut) ([]agent.Example, error) {
	role, method, list := q.Role, q.Method, slices.Clone(q.Examples)
	if err := agent.Names(&role, &method); err != nil {
		return nil, err
	}
	unlock := o.calls.HoldAdoption(role, method) // no proposal is decided meanwhile
	defer unlock()
	a, err := o.store.Artifact(ctx, role, method)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	for i := range list {
		if list[i].Kwargs, err = agent.KeywordArguments(list[i].Kwargs); err != nil {
			return nil, err
		}
		if a.Proposes(&list[i]) {
			list[i].State = agent.ExampleProposed
		}
	}
	if err := checkExamples(method, list, a.Takes()); err != nil {
		return nil, err
	}
	entry := o.audit(q.Actor, opExamples, role+"."+method, "")
	entry.Undo = "PUT " + attempt.ToolPath(role, method) + "/examples with the examples of before"
	a, err = o.changeShown(ctx, store.Target{Role: role, Method: method}, &entry, examplesOf,
		func(a *agent.Artifact) (agent.ArtifactChange, error) {
			var was []agent.Example
			if a != nil {
				was = a.Examples
			}
			if !store.Matches(q.Revision, agent.ExamplesRevision(was)) {
				return agent.ArtifactChange{}, store.ErrConflict
			}
			next := make([]agent.Example, 0, len(list))
			for _, x := range list {
				// another replica may have accepted or rejected it meanwhile
				rejected := x.State == agent.ExampleProposed && (a == nil || a.Example(x.ID) == nil)
				if !rejected && !a.Proposes(&x) {
					next = append(next, ownIfStated(x, o.completed(a, identified(a, x, list), q.Actor)))
				}
			}
			if a == nil && len(next) == 0 {
				return agent.ArtifactChange{}, store.ErrNotFound
			}
			for _, x := range was {
				if x.State == agent.ExampleProposed && !slices.ContainsFunc(next,
					func(y agent.Example) bool { return y.ID == x.ID }) {
					next = append(next, x)
				}
			}
			return agent.ArtifactChange{Examples: &next}, nil
		})
	if err != nil {
		return nil, err
	}
	return a.Examples, nil
}

// checkExamples returns an error for a list that no program could satisfy: it would block every program of the method.
func checkExamples(method string, list []agent.Example, takes *agent.Interface) error {
	if len(list) > 0 && method != "=" && strings.HasSuffix(method, "=") {
		return &agent.InputError{Code: "no_program", Detail: "a setter has no program",
			Hint: "examples are for methods that a program answers"}
	}
	if err := agent.CheckExamples(list, takes); err != nil {
		return err
	}
	for i := range list {
		if list[i].Expect.Schema == nil {
			continue
		}
		if _, err := contract.Compile(list[i].Expect.Schema); err != nil {
			return &agent.InputError{Code: "invalid_example", Pointer: fmt.Sprintf("/examples/%d/expect/schema", i),
				Detail: err.Error(), Hint: `a JSON Schema such as {"type": "number"}`}
		}
	}
	return nil
}

// takes returns the interface of the method's current program, or nil if it is unknown.
func (o *Operator) takes(ctx context.Context, role, method string) *agent.Interface {
	a, err := o.store.Artifact(ctx, role, method)
	if err != nil {
		return nil
	}
	return a.Takes()
}

// identified gives an example without an id the id of the active example with the same input, unless another example in
// the list has it.
func identified(a *agent.Artifact, x agent.Example, list []agent.Example) agent.Example {
	if x.ID != "" {
		return x
	}
	if old := a.Asking(&x); old != nil && !slices.ContainsFunc(list,
		func(y agent.Example) bool { return y.ID == old.ID }) {
		x.ID = old.ID
	}
	return x
}

// ownIfStated returns the stored form of an example that was sent. If a person states an input and an answer without
// the id of an example, and no recorded effects of a call go with them, then they no longer depend on the call that
// gave the example, and outlive its session.
func ownIfStated(sent, stored agent.Example) agent.Example {
	if sent.ID == "" && stored.Effects == nil {
		stored.CallID, stored.SessionID = "", ""
	}
	return stored
}

// completed returns the example as it is stored.
func (o *Operator) completed(a *agent.Artifact, x agent.Example, actor string) agent.Example {
	x.Note = o.mask(x.Note)
	if a != nil && x.ID != "" {
		if old := a.Example(x.ID); old != nil && a.SameInput(old.Args, old.Kwargs, x.Args, x.Kwargs) {
			x.CallID, x.SessionID, x.Effects, x.TakenAt, x.CreatedAt, x.By = old.CallID, old.SessionID, old.Effects,
				old.TakenAt, old.CreatedAt, old.By
		}
	}
	if x.ID == "" {
		x.ID = ids.New("ex")
	}
	if x.Args == nil {
		x.Args = []json.RawMessage{}
	}
	if len(x.Kwargs) == 0 {
		x.Kwargs = json.RawMessage("{}")
	}
	if x.CreatedAt.IsZero() {
		x.CreatedAt, x.By = o.o.Now().UTC(), actor
	}
	x.State = agent.ExampleActive
	return x
}

// An ExampleDecision is a person's decision about a proposed example.
type ExampleDecision struct {
	Role, Method, ID string
	Accept           bool // otherwise reject
	Actor            string
}

// DecideExample accepts a proposed example, with the verdict that made it, or rejects it. It returns store.ErrNotFound
// if there is no such proposal.
func (o *Operator) DecideExample(ctx context.Context, q ExampleDecision) ([]agent.Example, error) {
	role, method, id := q.Role, q.Method, q.ID
	unlock := o.calls.HoldAdoption(role, method)
	defer unlock()
	action := opExampleReject
	if q.Accept {
		action = opExampleAccept
	}
	entry := o.audit(q.Actor, action, role+"."+method, id)
	entry.Undo = "PUT " + attempt.ToolPath(role, method) + "/examples"
	a, err := o.changeShown(ctx, store.Target{Role: role, Method: method}, &entry, examplesOf,
		func(a *agent.Artifact) (agent.ArtifactChange, error) {
			if a == nil {
				return agent.ArtifactChange{}, store.ErrNotFound
			}
			x := a.Example(id)
			if x == nil || x.State != agent.ExampleProposed {
				return agent.ArtifactChange{}, store.ErrNotFound
			}
			if !q.Accept {
				return agent.ArtifactChange{DropExample: id, Proposal: true}, nil
			}
			active := *x
			active.State = agent.ExampleActive
			if err := fits(a, active); err != nil {
				return agent.ArtifactChange{}, err
			}
			change := agent.ArtifactChange{Example: &active}
			if i := slices.IndexFunc(a.Verdicts, func(v agent.Verdict) bool { return v.ExampleID == id }); i >= 0 {
				v := a.Verdicts[i]
				v.State, v.Dropped = agent.ExampleActive, a.FixturesOf(v.Args, v.Kwargs)
				v.At = o.o.Now().UTC() // as of now, so that it also counts for the program that serves now
				change.Verdict = &v
				if o.corrects(a, &v) {
					change.Correction = &agent.Correction{State: agent.CorrectionQueued}
				}
			}
			return change, nil
		})
	if err != nil {
		return nil, err
	}
	if q.Accept {
		o.correct(a, q.Actor)
	}
	return a.Examples, nil
}

// ExampleRun is the result of running examples on a program.
type ExampleRun struct {
	Passed  int                   `json:"passed"`
	Failed  int                   `json:"failed"`
	Skipped int                   `json:"skipped"`
	Results []proof.ExampleResult `json:"results"`
}

// count sets the counters from Results.
func (r *ExampleRun) count() {
	for _, x := range r.Results {
		switch x.Result {
		case proof.ExamplePassed:
			r.Passed++
		case proof.ExampleFailed:
			r.Failed++
		default:
			r.Skipped++
		}
	}
}

// ExampleQuery selects the program and the examples of RunExamples.
type ExampleQuery struct {
	Role, Method, Owner string
	Code, Generation    string          // at most one is set; neither means the current program
	Examples            []agent.Example // nil means the method's active ones
}

// RunExamples runs the examples on the program. It stores and counts nothing. A given example replays the recorded
// effects of the stored one with the same id and input. Results are in the order of the examples.
func (o *Operator) RunExamples(ctx context.Context, q ExampleQuery) (ExampleRun, error) {
	run := ExampleRun{Results: []proof.ExampleResult{}}
	if err := checkExamples(q.Method, q.Examples, o.takes(ctx, q.Role, q.Method)); err != nil {
		return run, err
	}
	p, err := o.program(ctx, verify.DryRun{Role: q.Role, Method: q.Method, Owner: q.Owner}, q.Generation, q.Code)
	if err != nil {
		return run, err
	}
	if q.Examples != nil {
		with := agent.Artifact{Role: q.Role, MethodName: q.Method}
		if p.Artifact != nil {
			with = *p.Artifact
		}
		with.Examples = make([]agent.Example, 0, len(q.Examples))
		for _, x := range q.Examples {
			with.Examples = append(with.Examples, o.completed(p.Artifact, x, q.Owner))
		}
		p.Artifact = &with
	}
	run.Results = o.calls.CheckExamples(ctx, p)
	run.count()
	return run, nil
}

// BrokenExamples returns the ids of the active examples that the current program fails, for the reply to an operation
// that may have caused it. It never returns a nil list.
func (o *Operator) BrokenExamples(ctx context.Context, role, method, owner string) ([]string, error) {
	broken := []string{}
	a, err := o.store.Artifact(ctx, role, method)
	if err != nil || a.Current() == nil || len(a.ActiveExamples()) == 0 {
		return broken, err
	}
	broken, _ = o.broken(ctx, a, a.Current(), owner)
	return broken, nil
}

package proof

import (
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
)

func TestMeets(t *testing.T) {
	t.Parallel()
	value := func(v string) agent.Outcome { return agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage(v)} }
	expect := func(v string) agent.Expectation { return agent.Expectation{Value: json.RawMessage(v)} }
	number := agent.Expectation{Schema: json.RawMessage(`{"type":"number"}`)}
	one := 1.0
	tests := []struct {
		name   string
		expect agent.Expectation
		within *float64
		got    agent.Outcome
		want   bool
	}{
		{"the value", expect("1"), nil, value("1"), true},
		{"another value", expect("1"), nil, value("2"), false},
		{"a value within the tolerance", expect("1"), &one, value("2"), true},
		{"an error instead of the value", expect("1"), nil, agent.Failed("none", ""), false},
		{"the error", agent.Expectation{ErrorType: "none"}, nil, agent.Failed("none", ""), true},
		{"another error", agent.Expectation{ErrorType: "none"}, nil, agent.Failed("other", ""), false},
		{"a value instead of the error", agent.Expectation{ErrorType: "none"}, nil, value("1"), false},
		{"of the schema", number, nil, value("1"), true},
		{"not of the schema", number, nil, value(`"1"`), false},
		{"of a schema that makes no sense", agent.Expectation{Schema: json.RawMessage(`{"type":7}`)}, nil, value("1"),
			false},
		{"an error instead of the schema", number, nil, agent.Failed("none", ""), false},
	}
	for _, tt := range tests {
		if got := Meets(tt.got, &agent.Example{Expect: tt.expect, Tolerance: tt.within}); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The request after a program broke an example.
func TestBrokenExample(t *testing.T) {
	t.Parallel()
	p := agent.DefaultPolicy()
	c := &call.Call{Policy: &p}
	x := example("ex_1", "2", "7")
	x.Note = "twice"
	a := brokenExample(c, &judge.Judged{Outcome: agent.Outcome{Status: agent.StatusOK,
		Value: json.RawMessage("1")}},
		&x)
	if a.Hint.For(agent.LocalOwner) != "for args [7] kwargs {} the answer must be 2, it is 1. twice" ||
		a.Hint.For("ben") != "for args [7] kwargs {} the answer must be 2, it is another. twice" ||
		a.Example != "ex_1" || a.Class != agent.ClassIntrinsic || a.Outcome.ErrorType != agent.ErrExecution {
		t.Errorf("got %v, %+v", a.Hint, a.Outcome)
	}
	x.Note = ""
	a = brokenExample(c, &judge.Judged{Outcome: agent.Failed("none", "there is none")}, &x)
	if a.Hint.For(agent.LocalOwner) != "for args [7] kwargs {} the answer must be 2, it is none: there is none" {
		t.Errorf("got %v", a.Hint)
	}
}

// A digest of the examples shows whether they changed since a candidate was proven.
func TestExamplesDigest(t *testing.T) {
	t.Parallel()
	wrong := agent.Verdict{CallID: "call_1", Verdict: agent.VerdictWrong, State: agent.ExampleActive, Args: texts("7"),
		Kwargs: json.RawMessage("{}"), Got: json.RawMessage("1")}
	with := func(examples []agent.Example, verdicts ...agent.Verdict) string {
		return ExamplesDigest(selectiontest.Artifact(func(a *agent.Artifact) {
			a.Examples, a.Verdicts = examples,
				verdicts
		}))
	}
	one, other := example("ex_1", "1", "7"), example("ex_1", "2", "7")
	proposed := one
	proposed.State = agent.ExampleProposed
	if with(nil) != "" || ExamplesDigest(nil) != "" || with([]agent.Example{proposed}) != "" {
		t.Error("nothing has a digest")
	}
	all := map[string]bool{}
	for _, d := range []string{with([]agent.Example{one}), with([]agent.Example{other}),
		with([]agent.Example{one, other}), with(nil, wrong)} {
		all[d] = true
	}
	if len(all) != 4 || all[""] {
		t.Errorf("%d digests of four", len(all))
	}
	if with([]agent.Example{one}) != with([]agent.Example{one, proposed}) {
		t.Error("a proposed example counts")
	}
}

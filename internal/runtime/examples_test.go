package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
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
		if got := proof.Meets(tt.got, &agent.Example{Expect: tt.expect, Tolerance: tt.within}); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Results of examples and fixtures, without anything being kept. An example proves nothing while a source is down, or
// if the program asks for something that was not recorded.
func TestDryRuns(t *testing.T) {
	t.Parallel()
	by := func(q sandbox.Request) string { return strings.Trim(string(jsonenc.Array(q.Args)), "[]") }
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{
		"one": runtimetest.Returns("1"),
		"new": func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
			switch by(q) {
			case "1":
				return runtimetest.Value("1")
			case "2":
				return fetched("", 503, runtimetest.Raises("unavailable", ""))(ctx, q, h)
			case "3":
				res := runtimetest.Raises("denied", "")(ctx, q, h)
				res.Effects.Fetches = []sandbox.Fetch{{ErrorKind: "denied"}}
				return res
			case "4":
				return sandbox.Result{Failure: &sandbox.Failure{Type: agent.ErrExecution,
					Detail: sandbox.DetailDiverged}}
			case "5":
				return sandbox.Result{Failure: &sandbox.Failure{Type: agent.ErrResourceExhausted, Ours: true}}
			case "6":
				return fetched("", 503, runtimetest.Returns("1"))(ctx, q, h)
			case "7":
				return runtimetest.Failure(agent.ErrExecution, "boom")
			case "8":
				return fetched("", 404, runtimetest.Raises("none", ""))(ctx, q, h)
			}
			return runtimetest.Value(string(q.Context["k"]))
		},
	}}
	r, _ := scripted(t, box, map[string][]string{"r.m": {"one"}}, nil)
	id, invoke := conversation(t, r, SessionRequest{Role: "r"})
	var examples []agent.Example
	for i := range 8 {
		n := string(rune('1' + i))
		invoke("m", i+1)
		examples = append(examples, example("ex_"+n, "1", n))
	}
	broken := example("ex_9", "1", "9")
	broken.Context = json.RawMessage("[]")
	context := example("ex_c", "1", "9")
	context.Context = json.RawMessage(`{"k":1}`)
	proposed := example("ex_p", "5", "1")
	proposed.State = agent.ExampleProposed
	examples = append(examples, broken, context, proposed)
	a := operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", Examples: &examples})
	g := &agent.Generation{ID: "gen-2", Code: "new", CodeChecksum: agent.Checksum("new")}
	got := map[string]string{}
	for _, x := range r.CheckExamples(t.Context(), DryRun{Role: "r", Method: "m", Artifact: a, Generation: g}) {
		got[x.ID] = x.Result + " " + string(x.Got) + x.ErrorType
	}
	want := map[string]string{"ex_1": "passed 1", "ex_2": "skipped unavailable", "ex_3": "skipped denied",
		"ex_4": "skipped execution", "ex_5": "skipped resource_exhausted",
		"ex_6": "passed 1", "ex_7": "failed execution", "ex_8": "failed none", "ex_9": "skipped ", "ex_c": "passed 1"}
	for id, result := range want {
		if got[id] != result {
			t.Errorf("%s: got %q, want %q", id, got[id], result)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d results, want %d", len(got), len(want))
	}

	same, changed := r.CompareFixtures(t.Context(), DryRun{Role: "r", Method: "m", Artifact: a, Generation: g})
	errors := []string{}
	for _, ch := range changed {
		errors = append(errors, string(ch.Was)+" "+string(ch.Now)+ch.Error)
	}
	if same != 2 || strings.Join(errors, ",") != "1 unavailable,1 denied,1 execution,1 none" {
		t.Errorf("%d are answered the same, changed %q", same, errors)
	}
	if same, changed := r.CompareFixtures(t.Context(), DryRun{Generation: g}); same != 0 || changed == nil {
		t.Errorf("without an artifact: %d, %v", same, changed)
	}

	records := len(historyOf(t, r, id))
	if o := r.RunDry(t.Context(), DryRun{Role: "r", Method: "m", Generation: g, Args: texts("9"),
		Context: json.RawMessage(`{"k":5}`), Owner: "ada", NoFetch: true}); string(o.Value) != "5" ||
		o.ToolRole != "r" {
		t.Errorf("a dry run: %+v", o)
	}
	runs := box.Runs("new")
	if q := runs[len(runs)-1]; q.Owner.Name != "ada" || !q.NoFetch || q.Recorded != nil {
		t.Errorf("it ran as %+v", q)
	}
	if o := r.RunDry(t.Context(), DryRun{Role: "r", Method: "m", Generation: g,
		Context: json.RawMessage("[]")}); o.ErrorType != agent.ErrInvalidInput {
		t.Errorf("a context that is no object: %+v", o)
	}
	if o := r.RunDry(t.Context(), DryRun{Role: "r", Method: "m", Generation: g,
		Args: texts("8")}); o.ErrorType != "none" || !o.Authored {
		t.Errorf("an error of the program's own: %+v", o)
	}
	if len(historyOf(t, r, id)) != records || artifactOf(t, r, "r", "m").Revision != a.Revision {
		t.Error("a dry run left something")
	}
}

// The request after a program broke an example.
func TestBrokenExample(t *testing.T) {
	t.Parallel()
	p := agent.DefaultPolicy()
	c := &call.Call{Policy: &p}
	x := example("ex_1", "2", "7")
	x.Note = "twice"
	a := proof.BrokenExample(c, &judge.Judged{Outcome: agent.Outcome{Status: agent.StatusOK,
		Value: json.RawMessage("1")}},
		&x)
	if a.Hint.For(agent.LocalOwner) != "for args [7] kwargs {} the answer must be 2, it is 1. twice" ||
		a.Hint.For("ben") != "for args [7] kwargs {} the answer must be 2, it is another. twice" ||
		a.Example != "ex_1" || a.Class != agent.ClassIntrinsic || a.Outcome.ErrorType != agent.ErrExecution {
		t.Errorf("got %v, %+v", a.Hint, a.Outcome)
	}
	x.Note = ""
	a = proof.BrokenExample(c, &judge.Judged{Outcome: agent.Failed("none", "there is none")}, &x)
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
		return proof.ExamplesDigest(selectiontest.Artifact(func(a *agent.Artifact) {
			a.Examples, a.Verdicts = examples,
				verdicts
		}))
	}
	one, other := example("ex_1", "1", "7"), example("ex_1", "2", "7")
	proposed := one
	proposed.State = agent.ExampleProposed
	if with(nil) != "" || proof.ExamplesDigest(nil) != "" || with([]agent.Example{proposed}) != "" {
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

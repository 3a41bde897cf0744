package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/verify"
)

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
	id, invoke := conversation(t, r, sessions.Request{Role: "r"})
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
	for _, x := range r.CheckExamples(t.Context(), verify.DryRun{Role: "r", Method: "m", Artifact: a, Generation: g}) {
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

	same, changed := r.CompareFixtures(t.Context(), verify.DryRun{Role: "r", Method: "m", Artifact: a, Generation: g})
	errors := []string{}
	for _, ch := range changed {
		errors = append(errors, string(ch.Was)+" "+string(ch.Now)+ch.Error)
	}
	if same != 2 || strings.Join(errors, ",") != "1 unavailable,1 denied,1 execution,1 none" {
		t.Errorf("%d are answered the same, changed %q", same, errors)
	}
	if same, changed := r.CompareFixtures(t.Context(), verify.DryRun{Generation: g}); same != 0 || changed == nil {
		t.Errorf("without an artifact: %d, %v", same, changed)
	}

	records := len(historyOf(t, r, id))
	if o := r.RunDry(t.Context(), verify.DryRun{Role: "r", Method: "m", Generation: g, Args: texts("9"),
		Context: json.RawMessage(`{"k":5}`), Owner: "ada", NoFetch: true}); string(o.Value) != "5" ||
		o.ToolRole != "r" {
		t.Errorf("a dry run: %+v", o)
	}
	runs := box.Runs("new")
	if q := runs[len(runs)-1]; q.Owner.Name != "ada" || !q.NoFetch || q.Recorded != nil {
		t.Errorf("it ran as %+v", q)
	}
	if o := r.RunDry(t.Context(), verify.DryRun{Role: "r", Method: "m", Generation: g,
		Context: json.RawMessage("[]")}); o.ErrorType != agent.ErrInvalidInput {
		t.Errorf("a context that is no object: %+v", o)
	}
	if o := r.RunDry(t.Context(), verify.DryRun{Role: "r", Method: "m", Generation: g,
		Args: texts("8")}); o.ErrorType != "none" || !o.Authored {
		t.Errorf("an error of the program's own: %+v", o)
	}
	if len(historyOf(t, r, id)) != records || artifactOf(t, r, "r", "m").Revision != a.Revision {
		t.Error("a dry run left something")
	}
}

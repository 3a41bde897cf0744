package runtime

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// clocked is scripted with a clock that the test moves.
func clocked(t *testing.T, programs []string) (*Runtime, *runtimetest.Model, *time.Time) {
	t.Helper()
	clock := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	box := corrections(map[string]runtimetest.Run{
		"grumpy":  runtimetest.Raises("no_such_thing", "there is none"),
		"refuses": runtimetest.Raises(agent.ErrInvalidInput, "not like this"),
	})
	r, model := scripted(t, box, map[string][]string{"r.m": programs},
		func(o *env.Options) { o.Now = func() time.Time { return clock } })
	return r, model, &clock
}

// A first program that gives an honest error is not stored, but calls in the next 30 s run it with their own inputs
// instead of asking the model again. It is stored with the first call that it answers with a value.
func TestHonestFirstProgram(t *testing.T) {
	t.Parallel()
	r, model, _ := clocked(t, []string{"honest", "boom"})
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	for range 5 {
		wantReply(t, "an honest error", call("m", "bad"), "no_such_thing generated")
	}
	if _, err := r.env.Store.Artifact(t.Context(), "r", "m"); err == nil {
		t.Error("a program that only gave an honest error is kept")
	}
	got := call("m", "fine")
	wantReply(t, "another input", got, "1 generated")
	if got.Usage.ModelRequests != 0 || model.Count("r.m", "") != 1 {
		t.Errorf("the call cost %d requests, all six %d", got.Usage.ModelRequests, model.Count("r.m", ""))
	}
	a := artifactOf(t, r, "r", "m")
	if a.Current().ForgeUsage.ModelRequests != 1 || a.Current().Trigger != "initial_forge" || r.forges.Delayed(r.env.Now()) {
		t.Errorf("kept as %+v; the next program is delayed", a.Current())
	}
	wantReply(t, "kept", call("m", "bad"), "no_such_thing persisted")
}

// After the delay, a program is forged anew, and each further honest error doubles the delay. A person's operation ends
// it.
func TestHonestErrorsBackOff(t *testing.T) {
	t.Parallel()
	r, model, clock := clocked(t, []string{"grumpy"})
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	for i, seconds := range []time.Duration{30, 60, 120} {
		call("m", i)
		for _, passed := range []time.Duration{seconds * time.Second / 2, seconds*time.Second/2 - 1} {
			*clock = clock.Add(passed)
			wantReply(t, "during the delay", call("m", i), "no_such_thing generated")
		}
		if n := model.Count("r.m", ""); n != i+1 {
			t.Fatalf("%d requests before delay %d is over", n, i+1)
		}
		*clock = clock.Add(1)
	}
	call("m", 7)
	r.ForgetFailures("r", "m")
	if call("m", 7); model.Count("r.m", "") != 5 {
		t.Errorf("%d requests, want one for each delay and one after the operation", model.Count("r.m", ""))
	}
}

// A held candidate is dropped when it fails, and when a person adds an expectation. The next call forges another.
func TestHeldCandidateGoes(t *testing.T) {
	t.Parallel()
	r, model, _ := clocked(t, []string{"honest", "two"})
	r.env.Sandbox.(*runtimetest.Box).Programs["honest"] = on("bad", runtimetest.Raises("no_such_thing", "none"),
		runtimetest.Breaks(agent.ErrExecution, "boom"))
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	call("m", "bad")
	wantReply(t, "it fails for another input", call("m", "fine"), "2 generated")
	if model.Count("r.m", "repair") != 1 || r.forges.Delayed(r.env.Now()) {
		t.Errorf("%d repairs; the next program is delayed", model.Count("r.m", "repair"))
	}

	r, model, _ = clocked(t, []string{"honest", "two"})
	_, call = conversation(t, r, sessions.Request{Role: "r"})
	call("m", "bad")
	x := example("ex_1", "2", `"fine"`)
	if _, err := r.env.Store.ChangeArtifact(t.Context(), 0, agent.ArtifactChange{Role: "r", MethodName: "m",
		At:      r.env.Now(),
		Example: &x}, nil); err != nil {
		t.Fatal(err)
	}
	wantReply(t, "an example that it does not hold", call("m", "fine"), "2 generated")
	if n := model.Count("r.m", ""); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// A method whose programs find each input invalid costs a request for the first program and one for each delay, not one
// for every other call.
func TestUnprovenBacksOff(t *testing.T) {
	t.Parallel()
	r, model, clock := clocked(t, []string{"refuses"})
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	for _, want := range []int{2, 3} {
		for range 12 {
			if got := call("m", 7); got.Outcome.ErrorType != agent.ErrInvalidInput {
				t.Fatalf("got %+v", got.Outcome)
			}
		}
		if n := model.Count("r.m", ""); n != want {
			t.Errorf("%d requests, want %d", n, want)
		}
		*clock = clock.Add(30 * time.Second)
	}
}

// A repair that gave only an honest error does not replace the failed program, and runs in the calls of the delay. It
// costs one model request in total until it answers one of these calls with a value.
func TestHonestRepairs(t *testing.T) {
	t.Parallel()
	r, model, _ := clocked(t, []string{"fickle", "honest"})
	patchPolicy(t, r, `{"fixtures_enabled": false}`)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	call("m", "fine")
	for range 4 {
		wantReply(t, "an honest error", call("m", "bad"), "no_such_thing repaired")
	}
	a := artifactOf(t, r, "r", "m")
	if model.Count("r.m", "") != 2 || a.RepairCountSinceRegen != 1 || len(a.Rejections) != 1 || a.Code != "fickle" {
		t.Errorf("%d requests, %d repairs counted, %d rejections, %s serves", model.Count("r.m", ""),
			a.RepairCountSinceRegen, len(a.Rejections), a.Code)
	}
	r.env.Sandbox.(*runtimetest.Box).Programs["honest"] = runtimetest.Returns("4")
	wantReply(t, "it answers", call("m", "bad"), "4 repaired")
	if a := artifactOf(t, r, "r", "m"); a.Code != "honest" || model.Count("r.m", "") != 2 ||
		a.Current().ForgeUsage.ModelRequests != 1 {
		t.Errorf("%s serves, after %d requests, of which it cost %d", a.Code, model.Count("r.m", ""),
			a.Current().ForgeUsage.ModelRequests)
	}
}

// Each contract has its own delay and its own candidate.
func TestHeldCandidateIsOfOneContract(t *testing.T) {
	t.Parallel()
	r, model, _ := clocked(t, []string{"honest", "two"})
	id, call := conversation(t, r, sessions.Request{Role: "r"})
	call("m", "bad")
	k := &agent.Contract{Deliverable: json.RawMessage(`{"type": "number", "minimum": 2}`)}
	res, err := r.Call(t.Context(), CallRequest{SessionID: id, Method: "m", Args: texts(`"bad"`), Contract: k})
	if err != nil || !res.OK || model.Count("r.m", "") != 2 {
		t.Errorf("%s, %v after %d requests", res.Body, err, model.Count("r.m", ""))
	}
}

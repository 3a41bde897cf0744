//go:build !scripted

package runtime

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

const (
	taxWrong = "\tnet, _ := call.Arg(0, \"gross\").(float64)\n\treturn net * 0.6, nil"
	taxRight = "\tnet, _ := call.Arg(0, \"gross\").(float64)\n\treturn net * 0.7, nil"
	hopeless = "\tpanic(\"boom\")"
)

// A person asks for another program, with a reason. It may answer earlier calls differently, and lists
// what it changed.
func TestRequestedRegenerationMayChangeAnswers(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"tax.net": {run(taxWrong), run(taxRight)}})
	_, call := conversation(t, r, sessions.Request{Role: "tax"})
	wantReply(t, "first", call("net", 1000), "600 generated")
	reason := "70 percent, not 60"
	operate(t, r, agent.ArtifactChange{Role: "tax", MethodName: "net", ForceRegenerate: &reason})
	wantReply(t, "regenerated", call("net", 2000), "1400 generated")
	wantReply(t, "the earlier input", call("net", 1000), "700 persisted")
	a, err := r.env.Store.Artifact(t.Context(), "tax", "net")
	if err != nil {
		t.Fatal(err)
	}
	if ch := a.Current().ChangedAnswers; len(ch) != 1 || string(ch[0].Was) != "600" || string(ch[0].Now) != "700" {
		t.Errorf("changed answers %+v", ch)
	}
	if n := model.Count("tax.net", ""); n != 2 {
		t.Errorf("%d model requests, want 2", n)
	}
}

// A regeneration that fails leaves the old program serving, and is not tried again with each call.
func TestFailedRegenerationKeepsServing(t *testing.T) {
	clock := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	r, model := newRuntimeWith(t, map[string][]string{"r.m": {run(add), run(hopeless)}},
		func(o *env.Options) { o.Now = func() time.Time { return clock } })
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	wantReply(t, "first", call("m", 1, 2), "3 generated")
	reason := "nicer"
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", ForceRegenerate: &reason})
	wantReply(t, "the new one fails, the old one answers", call("m", 2, 2), "4 persisted")
	asked := model.Count("r.m", "")
	wantReply(t, "it is not tried with each call", call("m", 3, 2), "5 persisted")
	if n := model.Count("r.m", ""); n != asked {
		t.Errorf("%d more model requests during the backoff", n-asked)
	}
	clock = clock.Add(31 * time.Second)
	wantReply(t, "it is tried again later", call("m", 4, 2), "6 persisted")
	if n := model.Count("r.m", ""); n == asked {
		t.Error("no further attempt after the backoff")
	}
}

// A hopeless method costs its attempts once, then calls get the type of the last error at once, and nobody else's text.
func TestHopelessMethodBacksOff(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"r.m": {run("\tpanic(\"boom \" + call.Arg(0, \"x\").(string))")}})
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	call("m", "secret of the first caller")
	asked := model.Count("r.m", "")
	for range 11 {
		got := call("m", "other")
		if got.Outcome.ErrorType != agent.ErrExecution || got.Outcome.Metadata["retry_after_ms"] == nil {
			t.Fatalf("got %+v", got.Outcome)
		}
		if text := string(agent.Encoded(got)); strings.Contains(text, "secret of the first") {
			t.Fatalf("another caller's text: %s", text)
		}
	}
	if n := model.Count("r.m", ""); n != asked {
		t.Errorf("twelve calls cost %d requests, the first %d", n, asked)
	}
}

// The first program of a method holds the examples that were put before it, and one that does not is not kept.
func TestExamplesBeforeTheMethod(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"tax.net": {run(taxWrong), run(taxRight)}})
	examples := []agent.Example{example("ex_1", "700.0000000001", "1000")}
	operate(t, r, agent.ArtifactChange{Role: "tax", MethodName: "net", Examples: &examples})
	_, call := conversation(t, r, sessions.Request{Role: "tax"})
	wantReply(t, "the second program", call("net", 10), "7 generated")
	wantReply(t, "it serves", call("net", 1000), "700 persisted")
	if text := lastUser(model.Requests()[0]); !strings.Contains(text, "<examples>") ||
		!strings.Contains(text, "700.0000000001") {
		t.Errorf("the first request does not show the example:\n%s", text)
	}
	if text := lastUser(model.Requests()[1]); !strings.Contains(text, "the answer must be 700.0000000001, it is 600") {
		t.Errorf("the repair does not say which example broke:\n%s", text)
	}
}

// A correction is forged in the background. Until it holds the example, the old program answers, marked as doubted.
func TestCorrection(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"tax.net": {run(taxWrong), run(taxWrong), run(taxRight)}})
	id, call := conversation(t, r, sessions.Request{Role: "tax"})
	first := call("net", 1000)
	v := agent.Verdict{CallID: first.CallID, SessionID: id, Generation: "gen-1", Verdict: agent.VerdictWrong,
		State: agent.ExampleActive, Note: "70 percent, not 60",
		Args: []json.RawMessage{json.RawMessage("1000")}, Kwargs: json.RawMessage("{}"), Got: json.RawMessage("600"),
		Expected: json.RawMessage("700"), ExampleID: "ex_1"}
	x := example("ex_1", "700", "1000")
	operate(t, r, agent.ArtifactChange{Role: "tax", MethodName: "net", Verdict: &v, Example: &x,
		Correction: &agent.Correction{State: agent.CorrectionQueued}})
	if got := call("net", 10); !got.Program.Doubted {
		t.Errorf("the program is not doubted: %+v", got.Program)
	}
	<-r.Corrections.Correct("tax", "net", "me")
	a, err := r.env.Store.Artifact(t.Context(), "tax", "net")
	if err != nil {
		t.Fatal(err)
	}
	if a.Correction.State != agent.CorrectionAdopted || *a.Correction.Generation != "gen-2" ||
		a.Correction.ChangedAnswers != 1 {
		t.Errorf("the correction is %s", agent.Encoded(a.Correction))
	}
	got := call("net", 1000)
	wantReply(t, "corrected", got, "700 persisted")
	if got.Program.Doubted {
		t.Error("the corrected program is doubted")
	}
	for _, part := range []string{"<failed_code>", "a person called an answer wrong", "70 percent, not 60",
		"the right answer is 700"} {
		if text := lastUser(model.Requests()[1]); !strings.Contains(text, part) {
			t.Errorf("the request lacks %q:\n%s", part, text)
		}
	}
}

// With approval required a newer program waits, and the approved one goes on answering.
func TestApprovalIsOfAGeneration(t *testing.T) {
	r, _ := newRuntime(t, map[string][]string{"r.m": {run(boomOnBad), run(fixes)}})
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	wantReply(t, "first", call("m", 1), "1 generated")
	yes := true
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", Approve: &yes})
	patchPolicy(t, r, `{"approval_required": true}`)
	if got := call("m", "bad"); got.Outcome.ErrorType != agent.ErrExecution {
		t.Fatalf("a failing call got %+v", got.Outcome)
	}
	wantReply(t, "the approved program goes on", call("m", 2), "2 persisted")
	wantReply(t, "for the failing input too", call("m", "bad"), "execution persisted")
	a := operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", Approve: &yes, ApproveOf: "gen-2"})
	if a.CurrentID != "gen-2" || !a.Approved {
		t.Errorf("current %s, approved %v", a.CurrentID, a.Approved)
	}
	wantReply(t, "approved", call("m", "bad"), `"fixed" persisted`)
}

// With reads off each call has a program of its own, which displaces nothing.
func TestSwitchesLoseNothing(t *testing.T) {
	r, _ := newRuntime(t, map[string][]string{"r.m": {run(add)}})
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	wantReply(t, "first", call("m", 1, 2), "3 generated")
	patchPolicy(t, r, `{"artifact_read_roles": ["other"]}`)
	for range 5 {
		wantReply(t, "outside the canary", call("m", 1, 2), "3 generated")
	}
	patchPolicy(t, r, `{"artifact_read_roles": []}`)
	got := call("m", 2, 2)
	wantReply(t, "back", got, "4 persisted")
	if got.Program.Generation != "gen-1" {
		t.Errorf("%s serves, want gen-1", got.Program.Generation)
	}
}

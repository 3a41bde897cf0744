package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
)

// as returns a function that makes calls of the role r in a session of the given owner.
func as(t *testing.T, r *Runtime, owner string) func(method string, args ...string) Reply {
	t.Helper()
	s, err := r.CreateSession(t.Context(), SessionRequest{Role: "r", Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	return func(method string, args ...string) Reply {
		t.Helper()
		q := CallRequest{SessionID: s.ID, Owner: owner, Method: method}
		for _, a := range args {
			q.Args = append(q.Args, json.RawMessage(a))
		}
		res, err := r.Call(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var reply Reply
		if err := json.Unmarshal(res.Body, &reply); err != nil {
			t.Fatal(err)
		}
		return reply
	}
}

// A candidate that breaks another owner's answer: the request for the next one, the reply and the call's log show only
// the answer's form. The candidate ran in a process that no call of the owner uses. Only operators see what the
// artifact keeps of it.
func TestABrokenAnswerOfAnother(t *testing.T) {
	t.Parallel()
	old := func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
		if string(q.Args[0]) == `"boom"` {
			return runtimetest.Failure(agent.ErrExecution, "boom")
		}
		return runtimetest.Value(`{"of":"ann's answer"}`)
	}
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"old": old, "breaks": runtimetest.Returns(`"ben's"`)}}
	r, model := scripted(t, box, map[string][]string{"r.m": {"old", "breaks"}}, nil)
	ann, ben := as(t, r, "ann"), as(t, r, "ben")
	first := ann("m", `"ann's question"`)
	got := ben("m", `"boom"`)
	if got.Outcome.ErrorType != agent.ErrOutcomeRepairExhausted || got.Outcome.Metadata["fixture"] != nil {
		t.Errorf("the reply: %+v", got.Outcome)
	}
	asked := model.Requests()
	last := lastUser(asked[len(asked)-1])
	if !strings.Contains(last,
		"for an input of the form args array of 1 to 10 of string of 11 to 100 the answer was a value of the form {1 more}, now it is another: a value of the form string of 1 to 10") {
		t.Errorf("the request: %s", last)
	}
	for what, text := range map[string]string{"the requests": last, "the reply": string(agent.Encoded(got)),
		"the log": string(agent.Encoded(logOf(t, r, got.CallID)))} {
		for _, of := range []string{"ann's", first.CallID, first.SessionID} {
			if strings.Contains(text, of) {
				t.Errorf("%s show %q: %s", what, of, text)
			}
		}
	}
	if rejected := artifactOf(t, r, "r", "m").Rejections[0]; rejected.Fixture != first.CallID ||
		rejected.Owner != "ben" || strings.Contains(rejected.Hint, "ann's") {
		t.Errorf("the rejection: %+v", rejected)
	}
	for _, q := range box.Runs("breaks") {
		if string(q.Args[0]) == `"ann's question"` && (q.Owner.Name == "ben" || q.Owner.Name == "ann") {
			t.Errorf("ann's question was put in a process of %q", q.Owner.Name)
		}
	}
	// The one whose answer it is sees it, and is named its call, once the delay after the failure is over.
	r.ForgetFailures("r", "m")
	got = ann("m", `"boom"`)
	asked = model.Requests()
	if last := lastUser(asked[len(asked)-1]); got.Outcome.Metadata["fixture"] != first.CallID ||
		!strings.Contains(last,
			`for args ["ann's question"] kwargs {} the answer was {"of":"ann's answer"}, now it is "ben's"`) {
		t.Errorf("the reply to ann: %+v\n%s", got.Outcome, last)
	}
}

// A failed proof is found once for the calls that share a candidate, and each keeps it as its own.
func TestAFailedProofOfAnotherCall(t *testing.T) {
	t.Parallel()
	found := &judge.Judged{Attempt: attempt.Attempt{ID: "call_ann.f2"}, Of: "ann", Fixture: "call_ann",
		Outcome: agent.Failed(agent.ErrExecution, "it broke")}
	for owner, fixture := range map[string]any{"ann": "call_ann", "ben": nil} {
		c := &call.Call{ID: "call_now", Session: agent.Session{Owner: owner}}
		if own := proof.ProofFor(c, found); own.ID != "call_now.f2" || own.Outcome.Metadata["fixture"] != fixture ||
			found.Outcome.Metadata != nil {
			t.Errorf("%s: %+v", owner, own)
		}
	}
	found = &judge.Judged{Attempt: attempt.Attempt{ID: "call_ann.ex_1.2"}, Of: "ann", Example: "ex_1.2"}
	if own := proof.ProofFor((&call.Call{ID: "call_now",
		Session: agent.Session{Owner: "ben"}}), found); own.ID != "call_now.ex_1.2" ||
		own.Outcome.Metadata["example"] != "ex_1.2" {
		t.Errorf("of an example: %+v", own)
	}
}

// A call learns only the types of the errors of programs that were written for another owner's call.
func TestWhatAnotherOwnersFlightShows(t *testing.T) {
	t.Parallel()
	refused, failed := agent.Failed(agent.ErrInvalidCode, "quotes the program"),
		agent.Failed(agent.ErrProvider, "quotes the request")
	for _, tt := range []struct {
		failure agent.Outcome
		class   agent.Class
		want    string
	}{{refused, agent.ClassIntrinsic, forge.RefusedForAnother}, {failed, agent.ClassExtrinsic,
		forge.UnansweredForAnother}} {
		res := forge.Result{Owner: "ann", Failure: &tt.failure, Class: tt.class, System: "s", User: "u",
			Attempts: []agent.AttemptFailure{{ErrorMessage: "quotes", Hint: "quotes"}}}
		if got := res.SeenBy("ben", "call_ben"); got.Failure.ErrorMessage != tt.want ||
			got.Failure.ErrorType != tt.failure.ErrorType || got.Failure.Retriable != tt.failure.Retriable ||
			got.User != "" || got.Attempts[0].Hint != "" {
			t.Errorf("%s: %+v", tt.failure.ErrorType, got)
		}
		if got := res.SeenBy("ann", "call_ann"); got.Failure.ErrorMessage != tt.failure.ErrorMessage || got.User == "" {
			t.Errorf("%s, for its owner: %+v", tt.failure.ErrorType, got)
		}
	}
}

// An error type that a program made up at run time is not shown outside its call: others see one of the runtime's
// types.
func TestMadeUpErrorTypes(t *testing.T) {
	t.Parallel()
	a := selectiontest.Artifact(nil, &agent.Generation{ID: "gen-1", Code: "recurgent.Fail(\"no_such_city\", x)"})
	s := &selected{Against: proof.Against{Selection: call.Selection{Call: &call.Call{}, Artifact: a}}}
	for given, want := range map[string]string{agent.ErrParseFailed: agent.ErrParseFailed,
		"no_such_city": "no_such_city", "of_ann": agent.ErrTool} {
		if got := s.NamedType(given); got != want {
			t.Errorf("%s: got %s", given, got)
		}
	}
	if (&selected{Against: proof.Against{Selection: call.Selection{Call: &call.Call{}}}}).NamedType("of_ann") != agent.ErrTool {
		t.Error("without an artifact")
	}
}

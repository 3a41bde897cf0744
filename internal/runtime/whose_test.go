package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection/selectiontest"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// as returns a function that makes calls of the role r in a session of the given owner.
func as(t *testing.T, r *Runtime, owner string) func(method string, args ...string) Reply {
	t.Helper()
	s, err := r.CreateSession(t.Context(), sessions.Request{Role: "r", Owner: owner})
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

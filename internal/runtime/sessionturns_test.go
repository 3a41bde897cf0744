package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// A history input may ask for the session's own turns: the latest ok calls of the method, oldest first.
func TestSessionTurnsAsInput(t *testing.T) {
	t.Parallel()
	answer := func(_ context.Context, q sandbox.Request, _ sandbox.Host) sandbox.Result {
		switch {
		case len(q.Args) > 0 && string(q.Args[0]) == `"bad"`:
			return sandbox.Result{Authored: &sandbox.AuthoredError{Type: agent.ErrInvalidInput, Message: "no"}}
		case q.InputHistory == nil:
			return runtimetest.Value(`{"answer":"to ` + strings.Trim(string(q.Args[0]), `"`) + `"}`)
		}
		return runtimetest.Value(string(agent.Encoded(map[string]string{"answer": string(q.InputHistory)})))
	}
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"p": answer}}
	r, _ := scripted(t, box, map[string][]string{"r.m": {"p"}, "r.n": {"p"}}, nil)
	signature := &agent.Contract{Signature: json.RawMessage(
		`{"inputs":[{"name":"question"},{"name":"before","type":"history"}],"outputs":[{"name":"answer"}]}`)}
	id, call := conversation(t, r, sessions.Request{Role: "r", Contract: signature})
	for _, q := range []string{"one", "two", "bad", "three"} {
		call("m", q)
	}
	call("n", "elsewhere")
	ask := func(history string) (string, error) {
		res, err := r.Call(t.Context(), CallRequest{SessionID: id, Method: "m", Args: texts(`"now"`),
			History: json.RawMessage(history)})
		if err != nil {
			return "", err
		}
		var reply Reply
		if err := json.Unmarshal(res.Body, &reply); err != nil {
			t.Fatal(err)
		}
		var v struct{ Answer string }
		if err := json.Unmarshal(reply.Outcome.Value, &v); err != nil {
			t.Fatalf("%s: %s", history, res.Body)
		}
		return v.Answer, nil
	}
	turns := func(history string) string {
		t.Helper()
		text, err := ask(history)
		if err != nil {
			t.Fatalf("%s: %v", history, err)
		}
		var in struct{ Messages []struct{ Question string } }
		if json.Unmarshal([]byte(text), &in) != nil {
			return text
		}
		var out []string
		for _, m := range in.Messages {
			out = append(out, m.Question)
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct{ history, want string }{
		{`{"from_session":"last","n":2}`, "two three"},
		{`{"from_session":"last","n":1}`, "now"}, // the call before this one
		{`{"messages":[{"question":"mine","answer":"a"}]}`, "mine"},
		{`{"messages":[]}`, "to now"}, // no turns, no input
		{`null`, "to now"},
	} {
		if got := turns(tt.history); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.history, got, tt.want)
		}
	}
	if got := turns(`{"from_session":"last"}`); len(strings.Fields(got)) != 8 { // all ok calls of the method so far
		t.Errorf("by default: %q", got)
	}
	if got := turns(`{"from_session":"last","n":100}`); !strings.HasPrefix(got, "one two three now") {
		t.Errorf("the most: %q", got)
	}
	records := len(historyOf(t, r, id))
	for history, pointer := range map[string]string{
		`{"from_session":"first"}`:           "/history/from_session",
		`{"from_session":"last","n":0}`:      "/history/n",
		`{"from_session":"last","n":101}`:    "/history/n",
		`{"from_session":"last","n":"x"}`:    "/history",
		`{"from_session":"last","odd":true}`: "/history",
		`{"messages":7}`:                     "/history",
		`[1]`:                                "/history",
	} {
		_, err := ask(history)
		var in *agent.InputError
		if !errors.As(err, &in) || !strings.HasPrefix(in.Pointer, pointer) {
			t.Errorf("%s: %v, want a refusal at %s", history, err, pointer)
		}
	}
	other, _ := conversation(t, r, sessions.Request{Role: "r"})
	var in *agent.InputError
	if _, err := r.Call(t.Context(), CallRequest{SessionID: other, Method: "m",
		History: json.RawMessage(`{"from_session":"last"}`)}); !errors.As(err, &in) ||
		!strings.Contains(in.Detail, "signature") {
		t.Errorf("without a signature: %v", err)
	}
	if n := len(historyOf(t, r, id)) + r.Count(); n != records {
		t.Errorf("%d records, want %d: refused calls leave nothing", n, records)
	}
	// one, two, three, now: without a history input
	if n := len(artifactOf(t, r, "r", "m").Current().Fixtures); n != 4 {
		t.Errorf("%d fixtures", n)
	}
}

// A dispatch method's prompt shows the last turns; the program is not shared, and each call has one of its own.
func TestDispatchMethod(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns(`"1"`),
		"two": runtimetest.Returns(`"2"`)}}
	r, model := scripted(t, box, map[string][]string{"r.ask": {"one", "two"}}, nil)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	wantReply(t, "first", call("ask", "how deep is the sea"), `"1" generated`)
	got := call("ask", "and the lake")
	wantReply(t, "second", got, `"2" generated`)
	if e := logOf(t, r, got.CallID); e.Cacheable || e.CacheabilityReason != forge.CacheDispatch ||
		e.Selection.Reason != selection.ReasonDispatch {
		t.Errorf("log: cacheable %v (%s), selection %+v", e.Cacheable, e.CacheabilityReason, e.Selection)
	}
	if text := lastUser(model.Requests()[1]); !strings.Contains(text, "how deep is the sea") ||
		model.Count("r.ask", "") != 2 {
		t.Errorf("%d requests; the second does not show the first turn:\n%s", model.Count("r.ask", ""), text)
	}
}

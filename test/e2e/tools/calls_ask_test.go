package tools

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// judges is a program that asks the model about each of its arguments.
var judges = rig.Program(
	"\tout := []any{}\n\tfor _, text := range call.Args {\n\t\tanswer, err := call.Ask(\"Is the mood good or bad?\", text)\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tout = append(out, answer)\n\t}\n\treturn out, nil")

// atOnce is a program that asks about all of its arguments in one question.
var atOnce = rig.Program("\tanswer, err := call.Ask(\"What are the moods?\", call.Args)\n\treturn []any{answer}, err")

// Programs may ask the model. Its answers are journalled: a replay and a program that takes this one's place see the
// same ones and ask nothing. What it cost is counted, secrets stay here, and a call has its budget.
func TestProgramsAskTheModel(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"mail.mood": {judges, judges}})
	m.Answer("", "", rig.Text("Answer: good"), rig.Text(""), rig.Text("bad"), rig.Text("Answer: later"))
	d := rig.Start(t, m)
	s := d.Session("mail")
	first := d.Call(s, "mood", map[string]any{"text": "thank you", "password": "hunter2"}, "awful")
	d.WantValue(first, []any{"good", "bad"}, "generated")
	if line := d.LogOf(first); first.Usage.ModelRequests != 4 ||
		line["usage"].(map[string]any)["model_requests"] != 4.0 || first.Usage.PromptTokens == 0 {
		t.Errorf("one program and three requests for two answers cost %+v, in the log %v", first.Usage, line["usage"])
	}
	asked := m.Requests()
	if len(asked) != 4 || !strings.Contains(asked[1].Text, `Input: {"password":"[masked]","text":"thank you"}`) ||
		!strings.Contains(asked[1].Text, "Is the mood good or bad?") {
		t.Fatalf("the model was sent %d requests, the second is %s", len(asked), asked[1].Text)
	}
	if got := d.Metric("recurgent_model_requests_total"); got != 4 {
		t.Errorf("the metrics count %v requests, want 4", got)
	}
	second := d.Call(s, "mood", "thank you")
	d.WantValue(second, []any{"later"}, "persisted")
	if second.Usage.ModelRequests != 1 {
		t.Errorf("a warm call that asks costs %+v", second.Usage)
	}

	replay := d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+second.CallID+"/replay", map[string]any{}).Object(t)
	if replay["equal"] != true {
		t.Errorf("a replay: %v", replay)
	}
	try := d.Do(http.StatusOK, http.MethodPost, "/v1/tools/mail/methods/mood/try",
		map[string]any{"args": []any{"thank you"}}).Object(t)
	if try["outcome"].(map[string]any)["error_type"] != "denied" {
		t.Errorf("a try: %v", try)
	}
	before := len(m.Requests())
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/mail/methods/mood/regenerate", map[string]any{"reason": "shorter"})
	d.Call(s, "mood") // proves the new program on the journal of the second call
	if n := len(m.Requests()) - before; n != 1 {
		t.Errorf("%d model requests, want one for the new program and none for its proof", n)
	}
}

// A call's budget of questions, its bounds, and a model that fails: typed errors that a program can act on.
func TestAskingHasLimits(t *testing.T) {
	t.Parallel()
	big := rig.Program("\t_, err := call.Ask(\"read\", strings.Repeat(\"x\", 200_000))\n\treturn nil, err", "strings")
	odd := rig.Program("\t_, err := call.Predict(recurgent.Signature{}, nil)\n\treturn nil, err")
	parent := rig.Program("\tcall.Ask(\"a\", 1)\n\treturn call.Tool(\"mail\").Call(\"mood\", 1, 2).Value, nil")
	m := rig.NewModel(t, rig.Script{"mail.mood": {judges}, "mail.many": {judges, atOnce}, "mail.big": {big},
		"mail.odd": {odd}, "mail.parent": {parent}})
	m.Answer("", "", rig.Text("Answer: a"))
	d := rig.Start(t, m)
	d.Policy(map[string]any{"predict_budget": 2, "backoff": map[string]any{"base_seconds": 0}})
	s := d.Session("mail")
	d.WantValue(d.Call(s, "mood", 1, 2), []any{"a", "a"}, "generated")
	d.WantValue(d.Call(s, "many", 1), []any{"a"}, "generated")
	questions := m.Count("", "")
	over := d.Call(s, "many", 1, 2, 3)
	d.WantValue(over, []any{"a"}, "repaired") // two questions, the repair, and one question from a new budget
	if n := m.Count("", "") - questions; n != 4 || !slices.ContainsFunc(m.Questions(),
		func(q rig.Question) bool { return strings.Contains(q.User, "put everything into one question") }) {
		t.Errorf("%d requests were sent", n)
	}
	if line := d.LogOf(over); !strings.Contains(string(rig.MustJSON(line["attempt_failures"])), `"intrinsic"`) {
		t.Errorf("a program that asks too often: %v", line["attempt_failures"])
	}
	big1 := d.Call(s, "big")
	d.WantError(big1, "resource_exhausted")
	if line := d.LogOf(big1); big1.Outcome.Authored || line["failure_class"] != "intrinsic" {
		t.Errorf("a question that is too large: %+v of class %v", big1.Outcome, line["failure_class"])
	}
	if got := d.Send(http.MethodPost, "/v1/calls/"+big1.CallID+"/verdict", []byte(`{"verdict": "right"}`),
		nil); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("that a limit was reached is no right answer: status %d", got.Status)
	}
	d.WantError(d.Call(s, "odd"), "invalid_signature")
	d.WantValue(d.Call(s, "parent"), []any{"a", "a"}, "generated") // a nested call has a budget of its own

	m.Answer("", "", rig.Status(http.StatusUnauthorized))
	down := d.Call(s, "mood", 1)
	d.WantError(down, "provider")
	if line := d.LogOf(down); line["failure_class"] != "extrinsic" || down.Outcome.Authored {
		t.Errorf("an outage is %v of class %v", down.Outcome, line["failure_class"])
	}
	m.Answer("", "", rig.Text(""))
	d.WantError(d.Call(s, "mood", 1), "unfitting_reply")
	m.Answer("", "", rig.Text("Answer: b"))
	d.WantValue(d.Call(s, "mood", 1), []any{"b"}, "persisted")
	if n := m.Count("mail", "mood"); n != 1 {
		t.Errorf("the model wrote the program %d times, want once", n)
	}
	d.Policy(map[string]any{"predict_budget": 0})
	d.WantError(d.Call(s, "mood", 1), "denied")
}

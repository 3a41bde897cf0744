package tools

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The first call forges, the next is answered by the artifact, in another session too.
func TestForgedOnceThenServed(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	first := d.Call(s, "add", 2, 3)
	d.WantValue(first, 5, "generated")
	if first.Program.ArtifactHit || first.Program.Generation != "gen-1" || first.Program.Trigger != "initial_forge" ||
		first.Program.Selection.Decision != "forge" || first.Program.Selection.Reason != "missing" {
		t.Errorf("cold call's program: %+v", first.Program)
	}
	if first.Attempts != 1 || first.Usage.ModelRequests != 1 || first.Usage.PromptTokens == 0 ||
		first.Usage.CompletionTokens == 0 {
		t.Errorf("cold call: attempts %d, usage %+v", first.Attempts, first.Usage)
	}
	if first.Outcome.ToolRole != "calculator" || first.Outcome.MethodName != "add" || first.SessionID != s ||
		first.DurationMs <= 0 {
		t.Errorf("cold call's reply: %+v", first)
	}
	warm := d.Call(s, "add", 40, 2)
	d.WantValue(warm, 42, "persisted")
	if !warm.Program.ArtifactHit || warm.Program.Checksum != first.Program.Checksum || warm.Usage.ModelRequests != 0 {
		t.Errorf("warm call: %+v", warm)
	}
	d.WantValue(d.Call(d.Session("calculator"), "add", 1, 1), 2, "persisted")
	d.WantValue(d.CallWith(s, "add", map[string]any{"a": 20, "b": 22}), 42, "persisted")
	if n := m.Count("calculator", "add"); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
}

// A forge request has the forced tool and the elements that recordings key on.
func TestForgeRequest(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("calculator", map[string]any{"contract": map[string]any{"purpose": "arithmetic without surprises"}})
	d.Invoke(s, map[string]any{"method": "add", "args": []any{2, "<3>"},
		"kwargs": map[string]any{"password": "hunter2secret"}})
	r := m.Questions()[0]
	if r.Kind != "forge" || r.Role != "calculator" || r.Method != "add" {
		t.Errorf("got %s %s.%s", r.Kind, r.Role, r.Method)
	}
	if !r.OffersTool || !r.ForcesTool {
		t.Errorf("submit_program: offered %v, forced %v", r.OffersTool, r.ForcesTool)
	}
	if want := `<args>[2,"\u003c3\u003e"]</args>`; !strings.Contains(r.User, want) {
		t.Errorf("the user message has no %s:\n%s", want, r.User)
	}
	if all := r.System + r.User; strings.Contains(all, "hunter2secret") ||
		!strings.Contains(all, "arithmetic without surprises") {
		t.Error("the prompt shows a secret, or not the contract")
	}
	if r.Authorization != "Bearer "+rig.SecretKey || r.Model != "scripted" {
		t.Errorf("authorization %q, model %q", r.Authorization, r.Model)
	}
}

// A server that ignores tools is understood too, and a blank payload is asked again within the budget.
func TestProviderForms(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"calculator.fenced": {rig.Text("Here you are:\n```go\n" + rig.ProgAdd + "\n```\nDone.")},
		"calculator.object": {rig.Text(string(rig.MustJSON(map[string]any{"code": rig.ProgAdd})))},
		"calculator.blank":  {rig.Text(""), rig.ProgAdd},
		"calculator.never":  {rig.Text("   ")},
		"calculator.busy": {rig.Status(http.StatusTooManyRequests), rig.Status(http.StatusServiceUnavailable),
			rig.ProgAdd},
	})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	for method, asked := range map[string]int{"fenced": 1, "object": 1, "blank": 2, "busy": 3} {
		d.WantValue(d.Call(s, method, 1, 2), 3, "generated")
		if n := m.Count("calculator", method); n != asked {
			t.Errorf("%s: the model was asked %d times, want %d", method, n, asked)
		}
	}
	never := d.Call(s, "never", 1, 2)
	d.WantError(never, "invalid_code")
	if n := m.Count("calculator", "never"); n != 2 || never.Usage.ModelRequests != 2 {
		t.Errorf("never: the model was asked %d times (usage %d), want the budget of 2", n, never.Usage.ModelRequests)
	}
}

// The session's context: kept between calls, read and patched by clients, written by setters without a model.
func TestContext(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.increment": {rig.ProgIncrement},
		"calculator.spoil": {rig.Program(
			"\tcall.Context[\"value\"] = -1\n\treturn nil, recurgent.Fail(\"not_today\", \"no\")")}})
	d := rig.Start(t, m)
	s := d.Session("calculator", map[string]any{"context": map[string]any{"value": 1}})
	context := "/v1/sessions/" + s + "/context"
	d.WantValue(d.CallWith(s, "increment", map[string]any{"amount": 3}), 4, "generated")
	d.WantValue(d.CallWith(s, "increment", map[string]any{"amount": 4}), 8, "persisted")
	asked := len(m.Questions())
	set := d.Call(s, "value=", 20)
	if set.Program.Source != "none" || !set.Outcome.OK || len(m.Questions()) != asked {
		t.Errorf("a setter: %+v, %d model requests", set, len(m.Questions())-asked)
	}
	d.WantValue(d.Call(s, "increment"), 21, "persisted")
	d.WantError(d.Call(s, "spoil"), "not_today")
	remembered := func(c map[string]any) map[string]any { // besides the records
		if records, ok := c["conversation_history"].([]any); !ok || len(records) != len(d.History(s)) {
			t.Errorf("the context shows %v", c)
		}
		delete(c, "conversation_history")
		return c
	}
	if got := remembered(d.Get(context)); !rig.Equal(map[string]any{"value": 21}, got) {
		t.Errorf("context after a failed call: got %v, want value 21", got)
	}
	patched := d.Send(http.MethodPatch, context, []byte(`{"value":null,"a":{"b":1}}`),
		map[string]string{"Content-Type": "application/merge-patch+json"})
	if !rig.Equal(map[string]any{"a": map[string]any{"b": 1}}, remembered(patched.Object(t))) {
		t.Errorf("merge patch: %s", patched.Body)
	}
	for method, want := range map[string]any{"value=": "setter", "a": "context", "increment": "artifact",
		"unheard_of": nil} {
		got := d.Get("/v1/sessions/" + s + "/methods/" + method)
		if got["via"] != want || got["responds"] != (want == "setter" || want == "artifact") {
			t.Errorf("introspection of %s: got %v, want via %v", method, got, want)
		}
	}
}

// Failures of programs are typed outcomes with status 200, and the daemon goes on.
func TestFailuresAreOutcomes(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"t.panics":   {rig.ProgPanic},
		"t.syntax":   {"package tool\n\nfunc Run(call"},
		"t.types":    {rig.Program("\tvar n int = \"text\"\n\treturn n, nil")},
		"t.missing":  {"package tool\n\nfunc Walk() {}\n"},
		"t.wrong":    {"package tool\n\nfunc Run(a chan int) int { return <-a }\n"},
		"t.forbids":  {"package tool\n\nimport (\n\t\"os\"\n\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return os.Getpid(), nil }\n"},
		"t.nan":      {rig.Program("\treturn math.NaN(), nil", "math")},
		"t.function": {rig.Program("\treturn func() {}, nil")},
		"t.loops":    {rig.Program("\tfor {\n\t}")},
		"t.authored": {rig.ProgFails},
		"t.plain":    {rig.Program("\treturn nil, errors.New(\"it is late\")", "errors")},
		"t.index":    {rig.Program("\treturn call.Args[7], nil")},
	})
	d := rig.Start(t, m)
	s := d.Session("t")
	for method, want := range map[string]string{"panics": "execution", "index": "execution", "syntax": "invalid_code",
		"types":   "invalid_code",
		"missing": "invalid_code", "wrong": "invalid_code", "forbids": "", "nan": "non_serializable_result",
		"function": "non_serializable_result", "loops": "timeout", "authored": "not_today", "plain": "tool_error"} {
		body := map[string]any{"method": method}
		if want == "timeout" {
			body["timeout_ms"] = 500
		}
		got := d.Invoke(s, body)
		if want == "" { // which of the two guardrail types it ends in is the gate's and the budget's matter
			if got.Outcome.OK {
				t.Errorf("%s: got a value", method)
			}
			continue
		}
		d.WantError(got, want)
		if authored := method == "authored"; got.Outcome.Authored != authored {
			t.Errorf("%s: authored %v, want %v", method, got.Outcome.Authored, authored)
		}
		if got.Outcome.ErrorMessage == "" {
			t.Errorf("%s: no message", method)
		}
	}
	if n := len(d.History(s)); n != 12 {
		t.Errorf("%d records for 12 calls", n)
	}
	d.Do(http.StatusOK, http.MethodGet, "/healthz", nil)
}

// 16 equal cold calls ask the model once, and all are answered.
func TestEqualColdCallsForgeOnce(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	var wg sync.WaitGroup
	replies := make([]rig.Response, 16)
	for i := range replies {
		s := d.Session("calculator")
		wg.Go(func() {
			r, err := d.Try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls",
				rig.MustJSON(map[string]any{"method": "add", "args": []any{i, 1}}), nil)
			if err != nil {
				t.Error(err)
			}
			replies[i] = r
		})
	}
	wg.Wait()
	for i, r := range replies {
		var got rig.Reply
		r.Into(t, &got)
		d.WantValue(got, i+1, "")
	}
	if n := m.Count("calculator", "add"); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
}

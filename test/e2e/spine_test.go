package e2e

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Programs that the scripted model writes in these tests.
var (
	progAdd       = program("\ta, _ := call.Arg(0, \"a\").(float64)\n\tb, _ := call.Arg(1, \"b\").(float64)\n\treturn a + b, nil")
	progIncrement = program("\tn, ok := call.Arg(0, \"amount\").(float64)\n\tif !ok {\n\t\tn = 1\n\t}\n\tv, _ := call.Context[\"value\"].(float64)\n\tcall.Context[\"value\"] = v + n\n\treturn v + n, nil")
	progPanic     = program("\tpanic(\"boom\")")
	progDelegates = program("\to := call.Tool(\"calculator\").Call(\"add\", 2.0, 3.0)\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")
	progEcho      = program("\treturn map[string]any{\"args\": call.Args, \"kwargs\": call.Kwargs}, nil")
	progFails     = program("\treturn nil, recurgent.Fail(\"not_today\", \"closed on Sundays\")")
)

// P-38, P-39, P-44, P-47, P-99, P-100, H-13, H-14: the first call forges, the next is answered by the artifact, in another session too.
func TestForgedOnceThenServed(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}})
	d := newDaemon(t, m)
	s := d.session("calculator")
	first := d.call(s, "add", 2, 3)
	d.wantValue(first, 5, "generated")
	if first.Program.ArtifactHit || first.Program.Generation != "gen-1" || first.Program.Trigger != "initial_forge" || first.Program.Selection.Decision != "forge" || first.Program.Selection.Reason != "missing" {
		t.Errorf("cold call's program: %+v", first.Program)
	}
	if first.Attempts != 1 || first.Usage.ModelRequests != 1 || first.Usage.PromptTokens == 0 || first.Usage.CompletionTokens == 0 {
		t.Errorf("cold call: attempts %d, usage %+v", first.Attempts, first.Usage)
	}
	if first.Outcome.ToolRole != "calculator" || first.Outcome.MethodName != "add" || first.SessionID != s || first.DurationMs <= 0 {
		t.Errorf("cold call's reply: %+v", first)
	}
	warm := d.call(s, "add", 40, 2)
	d.wantValue(warm, 42, "persisted")
	if !warm.Program.ArtifactHit || warm.Program.Checksum != first.Program.Checksum || warm.Usage.ModelRequests != 0 {
		t.Errorf("warm call: %+v", warm)
	}
	d.wantValue(d.call(d.session("calculator"), "add", 1, 1), 2, "persisted")
	d.wantValue(d.callWith(s, "add", map[string]any{"a": 20, "b": 22}), 42, "persisted")
	if n := m.count("calculator", "add"); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
}

// What a forge request carries: the tool, forced; the elements that recordings key on.
func TestForgeRequest(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}})
	d := newDaemon(t, m)
	s := d.session("calculator", map[string]any{"contract": map[string]any{"purpose": "arithmetic without surprises"}})
	d.invoke(s, map[string]any{"method": "add", "args": []any{2, "<3>"}, "kwargs": map[string]any{"password": "hunter2secret"}})
	r := m.requests()[0]
	if r.Kind != "forge" || r.Role != "calculator" || r.Method != "add" {
		t.Errorf("got %s %s.%s", r.Kind, r.Role, r.Method)
	}
	if !r.OffersTool || !r.ForcesTool {
		t.Errorf("submit_program: offered %v, forced %v", r.OffersTool, r.ForcesTool)
	}
	if want := `<args>[2,"\u003c3\u003e"]</args>`; !strings.Contains(r.User, want) {
		t.Errorf("the user message has no %s:\n%s", want, r.User)
	}
	if all := r.System + r.User; strings.Contains(all, "hunter2secret") || !strings.Contains(all, "arithmetic without surprises") {
		t.Error("the prompt shows a secret, or not the contract")
	}
	if r.Authorization != "Bearer "+secretKey || r.Model != "scripted" {
		t.Errorf("authorization %q, model %q", r.Authorization, r.Model)
	}
}

// a server that ignores tools is understood too, and a blank payload is asked again within the budget.
func TestProviderForms(t *testing.T) {
	m := newModel(t, script{
		"calculator.fenced": {text("Here you are:\n```go\n" + progAdd + "\n```\nDone.")},
		"calculator.object": {text(string(mustJSON(map[string]any{"code": progAdd})))},
		"calculator.blank":  {text(""), progAdd},
		"calculator.never":  {text("   ")},
		"calculator.busy":   {status(http.StatusTooManyRequests), status(http.StatusServiceUnavailable), progAdd},
	})
	d := newDaemon(t, m)
	s := d.session("calculator")
	for method, asked := range map[string]int{"fenced": 1, "object": 1, "blank": 2, "busy": 3} {
		d.wantValue(d.call(s, method, 1, 2), 3, "generated")
		if n := m.count("calculator", method); n != asked {
			t.Errorf("%s: the model was asked %d times, want %d", method, n, asked)
		}
	}
	never := d.call(s, "never", 1, 2)
	d.wantError(never, "invalid_code")
	if n := m.count("calculator", "never"); n != 2 || never.Usage.ModelRequests != 2 {
		t.Errorf("never: the model was asked %d times (usage %d), want the budget of 2", n, never.Usage.ModelRequests)
	}
}

// The session's context: kept between calls, read and patched by clients, written by setters without a model.
func TestContext(t *testing.T) {
	m := newModel(t, script{"calculator.increment": {progIncrement},
		"calculator.spoil": {program("\tcall.Context[\"value\"] = -1\n\treturn nil, recurgent.Fail(\"not_today\", \"no\")")}})
	d := newDaemon(t, m)
	s := d.session("calculator", map[string]any{"context": map[string]any{"value": 1}})
	context := "/v1/sessions/" + s + "/context"
	d.wantValue(d.callWith(s, "increment", map[string]any{"amount": 3}), 4, "generated")
	d.wantValue(d.callWith(s, "increment", map[string]any{"amount": 4}), 8, "persisted")
	asked := len(m.requests())
	set := d.call(s, "value=", 20)
	if set.Program.Source != "none" || !set.Outcome.OK || len(m.requests()) != asked {
		t.Errorf("a setter: %+v, %d model requests", set, len(m.requests())-asked)
	}
	d.wantValue(d.call(s, "increment"), 21, "persisted")
	d.wantError(d.call(s, "spoil"), "not_today")
	if got := d.get(context); !equal(map[string]any{"value": 21}, got) {
		t.Errorf("context after a failed call: got %v, want value 21", got)
	}
	patched := d.send(http.MethodPatch, context, []byte(`{"value":null,"a":{"b":1}}`), map[string]string{"Content-Type": "application/merge-patch+json"})
	if !equal(map[string]any{"a": map[string]any{"b": 1}}, patched.object(t)) {
		t.Errorf("merge patch: %s", patched.Body)
	}
	for method, want := range map[string]any{"value=": "setter", "a": "context", "increment": "artifact", "unheard_of": nil} {
		got := d.get("/v1/sessions/" + s + "/methods/" + method)
		if got["via"] != want || got["responds"] != (want != nil) {
			t.Errorf("introspection of %s: got %v, want via %v", method, got, want)
		}
	}
}

// H-01..H-20, H-23..H-27: one record a call on every path, whole, and the log agrees.
func TestRecords(t *testing.T) {
	m := newModel(t, script{
		"calculator.add":     {progAdd},
		"calculator.explode": {progPanic},
		"calculator.fail":    {progFails},
		"calculator.never":   {text("")},
		"delegator.compute":  {progDelegates},
		"delegator.wander":   {program("\to := call.Tool(\"nobody\").Call(\"knows\")\n\treturn o.Value, nil")},
		"nobody.knows":       {program("\treturn 1, nil")},
		"mender.first":       {program("\treturn call.Args[0].(string), nil"), program("\tif s, ok := call.Args[0].(string); ok {\n\t\treturn s, nil\n\t}\n\treturn \"mended\", nil")},
	})
	d := newDaemon(t, m)
	s := d.session("calculator")
	if got := d.history(s); len(got) != 0 { // H-20
		t.Errorf("history of a new session: %v", got)
	}
	d.do(http.StatusCreated, http.MethodPut, "/v1/tools/calculator", map[string]any{"purpose": "arithmetic"})
	replies := []reply{d.call(s, "add", 1, 2), d.call(s, "add", 3, 4), d.call(s, "explode"), d.call(s, "fail"), d.call(s, "never"), d.call(s, "x=", 1)}
	for _, c := range []struct {
		role, method string
		args         []any
	}{{"delegator", "compute", nil}, {"delegator", "wander", nil}, {"mender", "first", []any{"text"}}, {"mender", "first", []any{5}}} {
		replies = append(replies, d.invoke(s, map[string]any{"role": c.role, "method": c.method, "args": append([]any{}, c.args...)}))
	}
	records := d.history(s)
	logged := map[string]map[string]any{}
	for _, e := range d.list("/v1/calls") {
		if logged[e["call_id"].(string)] != nil {
			t.Errorf("call %v is logged twice", e["call_id"])
		}
		logged[e["call_id"].(string)] = e
	}
	byID, byMethod := map[string]map[string]any{}, map[string]map[string]any{}
	timestamp := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	for i, r := range records {
		id, _ := r["call_id"].(string)
		if byID[id] != nil || id == "" {
			t.Errorf("record %d: call_id %q is missing or twice there", i, id)
		}
		byID[id] = r
		byMethod[r["role"].(string)+"."+r["method_name"].(string)] = r
		if r["seq"] != float64(i+1) {
			t.Errorf("record %d has seq %v", i, r["seq"])
		}
		if ts, _ := r["timestamp"].(string); !timestamp.MatchString(ts) { // H-03
			t.Errorf("record %d: timestamp %q", i, ts)
		}
		_, isArray := r["args"].([]any)
		_, isObject := r["kwargs"].(map[string]any)
		if !isArray || !isObject { // H-06, H-07
			t.Errorf("record %d: args %T, kwargs %T", i, r["args"], r["kwargs"])
		}
		checkSummary(t, r)
		e := logged[id]
		if e == nil || e["outcome_status"] != r["outcome_summary"].(map[string]any)["status"] || e["history_record_appended"] != true {
			t.Errorf("record %d: log entry %v", i, e)
		}
	}
	if len(records) != len(replies)+2 || len(logged) != len(records) { // H-01: two nested calls beside the client's
		t.Errorf("%d records and %d log entries for %d calls and 2 nested ones", len(records), len(logged), len(replies))
	}
	for _, r := range replies { // H-02, H-05
		if byID[r.CallID] == nil || byID[r.CallID]["method_name"] != r.Method {
			t.Errorf("call %s %s has no record", r.CallID, r.Method)
		}
	}
	nested, parent := byMethod["calculator.add"], byMethod["delegator.compute"]
	if nested["parent_call_id"] != parent["call_id"] || nested["depth"] != float64(1) || nested["trace_id"] != parent["trace_id"] || nested["speaker"] != "tool" {
		t.Errorf("nested call: %v below %v", nested, parent)
	}
	if nested["seq"].(float64) > parent["seq"].(float64) {
		t.Error("a nested call is recorded after its parent")
	}
	if r := byMethod["nobody.knows"]; r["speaker"] != "agent" { // H-04
		t.Errorf("a nested call of an unregistered role: speaker %v, want agent", r["speaker"])
	}
	for name, want := range map[string][3]any{ // H-13..H-16: speaker, program_source, artifact_hit
		"calculator.explode": {"user", "generated", false}, "mender.first": {"user", "repaired", nil}, "calculator.x=": {"user", "none", false}} {
		r := byMethod[name]
		if r["speaker"] != want[0] || r["program_source"] != want[1] || want[2] != nil && r["artifact_hit"] != want[2] {
			t.Errorf("%s: speaker %v, program_source %v, artifact_hit %v, want %v", name, r["speaker"], r["program_source"], r["artifact_hit"], want)
		}
	}
	if r := byID[replies[1].CallID]; r["program_source"] != "persisted" || r["artifact_hit"] != true {
		t.Errorf("warm record: %v", r)
	}
	// H-17, H-19, H-47: the keys that must be there are there on every path.
	required := []string{"args", "artifact_hit", "call_id", "depth", "duration_ms", "kwargs", "method_name", "outcome_summary", "program_source", "role", "seq", "speaker", "timestamp", "trace_id"}
	for _, r := range records {
		for _, k := range required {
			if _, ok := r[k]; !ok {
				t.Errorf("record of %v has no %s", r["method_name"], k)
			}
		}
	}
}

func checkSummary(t *testing.T, r map[string]any) {
	t.Helper()
	s, _ := r["outcome_summary"].(map[string]any)
	ok := s["status"] == "ok"
	class, hasClass := s["value_class"]
	errorType, hasType := s["error_type"]
	_, retriable := s["retriable"].(bool)
	switch {
	case s["ok"] != ok || !retriable || !hasType: // H-23, H-24, H-26
		t.Errorf("outcome summary of %v: %v", r["method_name"], s)
	case ok && (errorType != nil || !hasClass || class == ""): // H-25, H-27
		t.Errorf("ok summary of %v: %v", r["method_name"], s)
	case !ok && (errorType == nil || hasClass || r["error_type"] != errorType || r["error_message"] == nil):
		t.Errorf("error summary of %v: %v in %v", r["method_name"], s, r)
	}
}

// H-28: a value is not stored in history, and a session's file does not hold it.
func TestHistoryHoldsNoValues(t *testing.T) {
	m := newModel(t, script{"writer.big": {program("\treturn strings.Repeat(\"uniquevalue\", 50000), nil", "strings")}})
	d := newDaemon(t, m)
	s := d.session("writer")
	r := d.call(s, "big")
	if v, _ := r.Outcome.Value.(string); len(v) != 11*50000 {
		t.Fatalf("value of %d bytes: %+v", len(v), r.Outcome.ErrorMessage)
	}
	if text := string(mustJSON(d.history(s))); strings.Contains(text, "uniquevalueuniquevalue") {
		t.Error("the history holds the value")
	}
	d.restart()
	for path, data := range files(t, d.state()) {
		if strings.Contains(path, "/sessions/") && strings.Contains(string(data), "uniquevalueuniquevalue") {
			t.Errorf("%s holds the value", path)
		}
	}
}

// H-31..H-37, H-58: what prompts say of the history, bounded; the current call is not in its own history.
func TestHistoryInPrompts(t *testing.T) {
	m := newModel(t, script{"assistant.count": {program("\treturn len(call.History()), nil")}, "assistant.echo": {progEcho}, "assistant.late": {progEcho}, "assistant.early": {progEcho}})
	d := newDaemon(t, m)
	s := d.session("assistant")
	d.wantValue(d.call(s, "count"), 0, "generated")
	d.call(s, "early")
	early := len(m.last().User)
	for i := range 20 {
		d.call(s, "echo", "marker"+string(rune('a'+i)))
	}
	d.wantValue(d.call(s, "count"), 22, "persisted")
	d.call(s, "late")
	last := m.last()
	if grown := len(last.User) - early; grown > 3000 {
		t.Errorf("20 more records made the prompt %d bytes longer", grown)
	}
	if n := len(regexp.MustCompile(`marker[a-t]`).FindAllString(last.User, -1)); n > 3 {
		t.Errorf("the prompt shows %d records, want at most 3", n)
	}
	if !strings.Contains(last.User, "23") { // H-34
		t.Errorf("the prompt does not state the 23 records:\n%s", last.User)
	}
	for _, r := range m.requests() { // H-31
		if !strings.Contains(strings.ToLower(r.System), "history") {
			t.Errorf("%s.%s: the system prompt does not tell of the history", r.Role, r.Method)
		}
	}
}

// what programs get wrong ends in typed outcomes with status 200, and the daemon goes on.
func TestFailuresAreOutcomes(t *testing.T) {
	m := newModel(t, script{
		"t.panics":   {progPanic},
		"t.syntax":   {"package tool\n\nfunc Run(call"},
		"t.types":    {program("\tvar n int = \"text\"\n\treturn n, nil")},
		"t.missing":  {"package tool\n\nfunc Walk() {}\n"},
		"t.wrong":    {"package tool\n\nfunc Run(a int) int { return a }\n"},
		"t.forbids":  {"package tool\n\nimport (\n\t\"os\"\n\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return os.Getpid(), nil }\n"},
		"t.nan":      {program("\treturn math.NaN(), nil", "math")},
		"t.function": {program("\treturn func() {}, nil")},
		"t.loops":    {program("\tfor {\n\t}")},
		"t.authored": {progFails},
		"t.plain":    {program("\treturn nil, errors.New(\"it is late\")", "errors")},
		"t.index":    {program("\treturn call.Args[7], nil")},
	})
	d := newDaemon(t, m, "--call-timeout", "500ms")
	s := d.session("t")
	for method, want := range map[string]string{"panics": "execution", "index": "execution", "syntax": "invalid_code", "types": "invalid_code",
		"missing": "invalid_code", "wrong": "invalid_code", "forbids": "", "nan": "non_serializable_result",
		"function": "non_serializable_result", "loops": "timeout", "authored": "not_today", "plain": "tool_error"} {
		got := d.call(s, method)
		if want == "" { // which of the two guardrail types it ends in is the gate's and the budget's matter
			if got.Outcome.OK {
				t.Errorf("%s: got a value", method)
			}
			continue
		}
		d.wantError(got, want)
		if authored := method == "authored" || method == "plain"; got.Outcome.Authored != authored {
			t.Errorf("%s: authored %v, want %v", method, got.Outcome.Authored, authored)
		}
		if got.Outcome.ErrorMessage == "" {
			t.Errorf("%s: no message", method)
		}
	}
	if n := len(d.history(s)); n != 12 {
		t.Errorf("%d records for 12 calls", n)
	}
	d.do(http.StatusOK, http.MethodGet, "/healthz", nil)
}

// 16 equal cold calls ask the model once, and all are answered.
func TestEqualColdCallsForgeOnce(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}})
	d := newDaemon(t, m)
	var wg sync.WaitGroup
	replies := make([]response, 16)
	for i := range replies {
		s := d.session("calculator")
		wg.Go(func() {
			r, err := d.try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls", mustJSON(map[string]any{"method": "add", "args": []any{i, 1}}), nil)
			if err != nil {
				t.Error(err)
			}
			replies[i] = r
		})
	}
	wg.Wait()
	for i, r := range replies {
		var got reply
		if err := json.Unmarshal(r.Body, &got); err != nil {
			t.Fatalf("%v: %s", err, r.Body)
		}
		d.wantValue(got, i+1, "")
	}
	if n := m.count("calculator", "add"); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // test data is plain
	}
	return data
}

package tools

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// One record a call on every path, whole, and the log agrees.
func TestRecords(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"calculator.add":     {rig.ProgAdd},
		"calculator.explode": {rig.ProgPanic},
		"calculator.fail":    {rig.ProgFails},
		"calculator.never":   {rig.Text("")},
		"delegator.compute":  {rig.ProgDelegates},
		"delegator.wander":   {rig.Program("\to := call.Tool(\"nobody\").Call(\"knows\")\n\treturn o.Value, nil")},
		"nobody.knows":       {rig.Program("\treturn 1, nil")},
		"fixer.first": {rig.Program("\treturn call.Args[0].(string), nil"),
			rig.Program("\tif s, ok := call.Args[0].(string); ok {\n\t\treturn s, nil\n\t}\n\treturn \"fixed\", nil")},
	})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	if got := d.History(s); len(got) != 0 {
		t.Errorf("history of a new session: %v", got)
	}
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/calculator", map[string]any{"purpose": "arithmetic"})
	replies := []rig.Reply{d.Call(s, "add", 1, 2), d.Call(s, "add", 3, 4), d.Call(s, "explode"), d.Call(s, "fail"),
		d.Call(s, "never"), d.Call(s, "x=", 1)}
	for _, c := range []struct {
		role, method string
		args         []any
	}{{"delegator", "compute", nil}, {"delegator", "wander", nil}, {"fixer", "first", []any{"text"}},
		{"fixer", "first", []any{5}}} {
		replies = append(replies, d.Invoke(s, map[string]any{"role": c.role, "method": c.method,
			"args": append([]any{}, c.args...)}))
	}
	records, logged := d.History(s), logByCall(d)
	byID, byMethod := map[string]map[string]any{}, map[string]map[string]any{}
	for i, r := range records {
		id, _ := r["call_id"].(string)
		if byID[id] != nil || id == "" {
			t.Errorf("record %d: call_id %q is missing or twice there", i, id)
		}
		byID[id] = r
		byMethod[r["role"].(string)+"."+r["method_name"].(string)] = r
		checkRecord(t, i, r, logged[id])
	}
	if len(records) != len(replies)+2 || len(logged) != len(records) { // two nested calls beside the client's
		t.Errorf("%d records and %d log entries for %d calls and 2 nested ones", len(records), len(logged),
			len(replies))
	}
	for _, r := range replies {
		if byID[r.CallID] == nil || byID[r.CallID]["method_name"] != r.Method {
			t.Errorf("call %s %s has no record", r.CallID, r.Method)
		}
	}
	checkNested(t, byMethod)
	checkSources(t, byMethod)
	if r := byID[replies[1].CallID]; r["program_source"] != "persisted" || r["artifact_hit"] != true {
		t.Errorf("warm record: %v", r)
	}
}

// logByCall returns the call log by id. No call appears twice.
func logByCall(d *rig.Daemon) map[string]map[string]any {
	d.T.Helper()
	logged := map[string]map[string]any{}
	for _, e := range d.List("/v1/calls") {
		if logged[e["call_id"].(string)] != nil {
			d.T.Errorf("call %v is logged twice", e["call_id"])
		}
		logged[e["call_id"].(string)] = e
	}
	return logged
}

var timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// required are the keys that every record has.
var required = []string{"args", "artifact_hit", "call_id", "depth", "duration_ms", "kwargs", "method_name",
	"outcome_summary", "program_source", "role", "seq", "speaker", "timestamp", "trace_id"}

// checkRecord checks the i-th record by itself and against its log entry.
func checkRecord(t *testing.T, i int, r, entry map[string]any) {
	t.Helper()
	for _, k := range required {
		if _, ok := r[k]; !ok {
			t.Errorf("record of %v has no %s", r["method_name"], k)
		}
	}
	if r["seq"] != float64(i+1) {
		t.Errorf("record %d has seq %v", i, r["seq"])
	}
	if ts, _ := r["timestamp"].(string); !timestamp.MatchString(ts) {
		t.Errorf("record %d: timestamp %q", i, ts)
	}
	_, isArray := r["args"].([]any)
	_, isObject := r["kwargs"].(map[string]any)
	if !isArray || !isObject {
		t.Errorf("record %d: args %T, kwargs %T", i, r["args"], r["kwargs"])
	}
	checkSummary(t, r)
	if entry == nil || entry["outcome_status"] != r["outcome_summary"].(map[string]any)["status"] ||
		entry["history_record_appended"] != true {
		t.Errorf("record %d: log entry %v", i, entry)
	}
}

func checkNested(t *testing.T, byMethod map[string]map[string]any) {
	t.Helper()
	nested, parent := byMethod["calculator.add"], byMethod["delegator.compute"]
	if nested["parent_call_id"] != parent["call_id"] || nested["depth"] != float64(1) ||
		nested["trace_id"] != parent["trace_id"] || nested["speaker"] != "tool" {
		t.Errorf("nested call: %v below %v", nested, parent)
	}
	if nested["seq"].(float64) > parent["seq"].(float64) {
		t.Error("a nested call is recorded after its parent")
	}
	if r := byMethod["nobody.knows"]; r["speaker"] != "agent" {
		t.Errorf("a nested call of an unregistered role: speaker %v, want agent", r["speaker"])
	}
}

func checkSources(t *testing.T, byMethod map[string]map[string]any) {
	t.Helper()
	for name, want := range map[string][3]any{ // speaker, program_source, artifact_hit
		"calculator.explode": {"user", "generated", false}, "fixer.first": {"user", "repaired", nil},
		"calculator.x=": {"user", "none", false}} {
		r := byMethod[name]
		if r["speaker"] != want[0] || r["program_source"] != want[1] || want[2] != nil && r["artifact_hit"] != want[2] {
			t.Errorf("%s: speaker %v, program_source %v, artifact_hit %v, want %v", name, r["speaker"],
				r["program_source"], r["artifact_hit"], want)
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
	case s["ok"] != ok || !retriable || !hasType:
		t.Errorf("outcome summary of %v: %v", r["method_name"], s)
	case ok && (errorType != nil || !hasClass || class == ""):
		t.Errorf("ok summary of %v: %v", r["method_name"], s)
	case !ok && (errorType == nil || hasClass || r["error_type"] != errorType || r["error_message"] == nil):
		t.Errorf("error summary of %v: %v in %v", r["method_name"], s, r)
	}
}

// A value is not stored in history, and a session's file does not hold it.
func TestHistoryHoldsNoValues(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"writer.big": {rig.Program("\treturn strings.Repeat(\"uniquevalue\", 50000), nil",
		"strings")}})
	d := rig.Start(t, m)
	s := d.Session("writer")
	r := d.Call(s, "big")
	if v, _ := r.Outcome.Value.(string); len(v) != 11*50000 {
		t.Fatalf("value of %d bytes: %+v", len(v), r.Outcome.ErrorMessage)
	}
	if text := string(rig.MustJSON(d.History(s))); strings.Contains(text, "uniquevalueuniquevalue") {
		t.Error("the history holds the value")
	}
	d.Look(func(dir string) {
		files := 0
		for path, data := range rig.Files(t, dir) {
			if !strings.Contains(path, "/sessions/") {
				continue
			}
			if files++; strings.Contains(string(data), "uniquevalueuniquevalue") {
				t.Errorf("%s holds the value", path)
			}
		}
		if files == 0 {
			t.Error("no file of a session")
		}
	})
}

// Prompts describe the history within bounds; the current call is not in its own history.
func TestHistoryInPrompts(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"assistant.count": {rig.Program("\treturn len(call.History()), nil")},
		"assistant.echo": {rig.ProgEcho}, "assistant.late": {rig.ProgEcho}, "assistant.early": {rig.ProgEcho}})
	d := rig.Start(t, m)
	s := d.Session("assistant")
	d.WantValue(d.Call(s, "count"), 0, "generated")
	d.Call(s, "early")
	early := len(m.LastQuestion().User)
	for i := range 20 {
		d.Call(s, "echo", "marker"+string(rune('a'+i)))
	}
	d.WantValue(d.Call(s, "count"), 22, "persisted")
	d.Call(s, "late")
	last := m.LastQuestion()
	if grown := len(last.User) - early; grown > 3000 {
		t.Errorf("20 more records made the prompt %d bytes longer", grown)
	}
	if n := len(regexp.MustCompile(`marker[a-t]`).FindAllString(last.User, -1)); n > 3 {
		t.Errorf("the prompt shows %d records, want at most 3", n)
	}
	if !strings.Contains(last.User, "23") {
		t.Errorf("the prompt does not state the 23 records:\n%s", last.User)
	}
	for _, r := range m.Questions() {
		if !strings.Contains(strings.ToLower(r.System), "history") {
			t.Errorf("%s.%s: the system prompt does not mention the history", r.Role, r.Method)
		}
	}
}

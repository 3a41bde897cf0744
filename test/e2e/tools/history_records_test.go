package tools

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/prompt/prompttest"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Whatever way a call ends, there is exactly one record more, of the
// same keys, and its line in the log has the four fields of history, with debug on and off.
func TestOneRecordWhateverTheEnd(t *testing.T) {
	t.Parallel()
	tooDeep := rig.Program("\tvar down func(n int) int\n\tdown = func(n int) int { return down(n+1) + 1 }\n\treturn down(0), nil")
	list := rig.Program("\treturn []any{}, nil")
	ends := []struct {
		name    string
		answers []any
		asked   int // requests to the model for the first call
		status  string
	}{
		{"forged", []any{rig.ProgEcho}, 1, "ok"},
		{"repaired", []any{rig.ProgPanic, rig.ProgEcho}, 2, "ok"},
		{"two blank payloads", []any{rig.Text("")}, 2, "error"},
		{"no Go", []any{"package tool\n\nfunc Run(call"}, 2, "error"},
		{"a forbidden import", []any{"package tool\n\nimport (\n\t\"os\"\n\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return os.Getpid(), nil }\n", rig.ProgEcho}, 2, "ok"},
		{"the model refuses", []any{rig.Status(http.StatusUnauthorized)}, 1, "error"},
		{"panics and goes on to", []any{rig.ProgPanic}, 0, "error"},
		{"never ends", []any{rig.Program("\tfor {\n\t}")}, 0, "error"},
		{"recursion without end", []any{tooDeep}, 0, "error"},
		{"no JSON", []any{rig.Program("\treturn func() {}, nil")}, 0, "error"},
		{"an authored error", []any{rig.ProgFails}, 1, "error"},
		{"breaks its contract", []any{list, list, list, list}, 0, "error"},
		{"x=", nil, 0, "ok"},
		{"ask", []any{rig.ProgEcho}, 1, "ok"},
	}
	answers := rig.Script{}
	for _, e := range ends {
		if e.answers != nil {
			answers["w."+e.name] = e.answers
		}
	}
	for _, debug := range []bool{true, false} {
		m := rig.NewModel(t, answers)
		d := rig.Start(t, m)
		s := d.Session("w", map[string]any{"debug": debug})
		var required []string
		for _, e := range ends {
			if e.name == "never ends" && !debug {
				continue // once is long enough
			}
			before, asked := len(d.History(s)), m.Count("w", e.name)
			body := map[string]any{"method": e.name, "args": []any{"text"}}
			switch e.name {
			case "breaks its contract":
				body["contract"] = map[string]any{"deliverable": map[string]any{"type": "array", "min_items": 1}}
			case "never ends", "recursion without end":
				body["timeout_ms"] = 1000
			}
			got := d.Invoke(s, body)
			records := d.History(s)
			if len(records) != before+1 {
				t.Fatalf("%s: %d records, want one more than %d", e.name, len(records), before)
			}
			r, line := records[before], d.LogOf(got)
			if got.Outcome.Status != e.status || r["call_id"] != got.CallID || r["seq"] != float64(before+1) ||
				e.asked > 0 && m.Count("w", e.name)-asked != e.asked {
				t.Errorf("%s: %+v after %d requests, record %v", e.name, got.Outcome, m.Count("w", e.name)-asked, r)
			}
			keys := slices.DeleteFunc(slices.Sorted(maps.Keys(r)),
				func(k string) bool { return strings.HasPrefix(k, "error_") })
			if required == nil {
				required = keys
			}
			if !reflect.DeepEqual(keys, required) || (r["error_type"] != nil) != (e.status == "error") ||
				(r["error_message"] != nil) != (e.status == "error") {
				t.Errorf("%s: the record has the keys %v, want %v", e.name, keys, required)
			}
			if line["history_record_appended"] != true || line["conversation_history_size"] != float64(before+1) ||
				line["history_access_detected"] != false || !rig.Equal([]any{}, line["history_query_patterns"]) {
				t.Errorf("%s, debug %v: the log line is %v", e.name, debug, line)
			}
			if e.asked == 2 && e.status == "ok" && (got.Attempts != 2 || line["generation_attempt"] == nil) {
				t.Errorf("%s: %d attempts, want 2 and one record of them: generation_attempt %v, failures %v", e.name,
					got.Attempts, line["generation_attempt"], line["attempt_failures"])
			}
			if got.Outcome.ErrorType != "" && (r["error_type"] != got.Outcome.ErrorType ||
				line["outcome_error_type"] != got.Outcome.ErrorType) {
				t.Errorf("%s: error %s in the reply, %v in the record, %v in the log", e.name, got.Outcome.ErrorType,
					r["error_type"], line["outcome_error_type"])
			}
		}
		if r := d.Call(s, "forged", "again"); r.Program.Source != "persisted" || len(d.History(s)) < len(ends) {
			t.Errorf("a warm call: %+v, %d records", r.Program, len(d.History(s)))
		}
	}
}

// Odd arguments are kept as they are, or refused without a trace.
func TestOddArguments(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"w.echo": {rig.ProgEcho}}))
	s := d.Session("w")
	calls := "/v1/sessions/" + s + "/calls"
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	for _, c := range []struct{ name, body, args, kwargs string }{
		{"missing", `{"method":"echo"}`, `[]`, `{}`},
		{"null", `{"method":"echo","args":null,"kwargs":null}`, `[]`, `{}`},
		{"null as an argument", `{"method":"echo","args":[null],"kwargs":{"a":null}}`, `[null]`, `{"a":null}`},
		{"emoji", `{"method":"echo","args":["😀","\ud83d\ude00"]}`, `["😀","\ud83d\ude00"]`, `{}`},
		{"a lone surrogate", `{"method":"echo","args":["a\ud800b"],"kwargs":{"\udfff":1}}`, `["a\ufffdb"]`,
			`{"\ufffd":1}`},
		{"NUL", `{"method":"echo","args":["a\u0000b"]}`, `["a\u0000b"]`, `{}`},
		{"2^63 and more digits than a float has",
			`{"method":"echo","args":[9223372036854775808,0.10000000000000000000000000001]}`,
			`[9223372036854775808,0.10000000000000000000000000001]`, `{}`},
		{"the largest float", `{"method":"echo","args":[1.7976931348623157e308]}`, `[1.7976931348623157e308]`, `{}`},
		{"a megabyte of keyword arguments", `{"method":"echo","kwargs":{"k":"` + strings.Repeat("x", 1<<20) + `"}}`,
			`[]`, `{"k":"` + strings.Repeat("x", 1<<20) + `"}`},
		{"depth 1000", `{"method":"echo","args":[` + deep + `]}`, `[` + deep + `]`, `{}`},
		{"a secret deep down", `{"method":"echo","args":[{"a":[{"Password":"hunter2"}]}],"kwargs":{"api_key":{"x":1}}}`,
			`[{"a":[{"Password":"[masked]"}]}]`, `{"api_key":"[masked]"}`},
	} {
		r := d.Send(http.MethodPost, calls, []byte(c.body), nil)
		raw := string(d.Do(http.StatusOK, http.MethodGet, "/v1/sessions/"+s+"/history?order=desc&limit=1", nil).Body)
		if r.Status != http.StatusOK || !strings.Contains(raw, `"args":`+c.args+`,"kwargs":`+c.kwargs+`,`) {
			t.Errorf("%s: status %d, the record is %.500s", c.name, r.Status, raw)
		}
	}
	before := len(d.History(s))
	for _, c := range []struct {
		name, body string
		want       int
	}{
		{"invalid UTF-8", "{\"method\":\"echo\",\"args\":[\"\xff\"]}", 400},
		{"NaN", `{"method":"echo","args":[NaN]}`, 400},
		{"a number beyond float64", `{"method":"echo","args":[1e999]}`, 400},
		{"depth 2000", `{"method":"echo","args":[` + deep[:1000] + deep + strings.Repeat("]", 1000) + `]}`, 400},
		{"5 MiB", `{"method":"echo","args":["` + strings.Repeat("x", 5<<20) + `"]}`, 413},
	} {
		if r := d.Send(http.MethodPost, calls, []byte(c.body), nil); r.Status != c.want {
			t.Errorf("%s: status %d, want %d", c.name, r.Status, c.want)
		}
	}
	if n := len(d.History(s)); n != before {
		t.Errorf("refused calls left %d records", n-before)
	}
}

// Programs answer from earlier turns with plain records, say that they were asked before, and
// what they do to their copy nobody else sees.
func TestProgramsUseHistory(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"assistant.add": {rig.ProgAdd},
		"assistant.first_args": {rig.Program(
			"\th := call.History()\n\tif len(h) == 0 {\n\t\treturn nil, recurgent.Fail(\"no_history\", \"nothing was asked\")\n\t}\n\treturn h[0].Args, nil")},
		"assistant.fact": {rig.Program(
			"\tquestion := call.Arg(0, \"question\")\n\tfor _, r := range call.History() {\n\t\tif r.MethodName == call.Method && len(r.Args) > 0 && r.Args[0] == question {\n\t\t\treturn \"as I said: 42\", nil\n\t\t}\n\t}\n\treturn \"42\", nil")},
		"assistant.vandal": {rig.Program(
			"\th := call.HistoryAll()\n\tn := len(h)\n\tfor i := range h {\n\t\th[i].Args = nil\n\t\th[i] = recurgent.Record{}\n\t}\n\treturn n, nil")},
		"assistant.size": {rig.Program("\treturn len(call.History()), nil")}})
	d := rig.Start(t, m)
	s := d.Session("assistant")
	d.WantError(d.Call(s, "first_args"), "no_history")
	s = d.Session("assistant")
	d.Call(s, "add", 2, 3)
	d.WantValue(d.Call(s, "first_args"), []any{2, 3}, "")
	d.WantValue(d.Call(s, "fact", "the answer?"), "42", "generated")
	d.WantValue(d.Call(s, "fact", "the answer?"), "as I said: 42", "persisted")
	d.WantValue(d.Call(s, "fact", "another?"), "42", "persisted")
	for k := 5; k < 8; k += 2 {
		d.WantValue(d.Call(s, "vandal"), k, "")
		d.WantValue(d.Call(s, "size"), k+1, "")
	}
	d.WantValue(d.Call(s, "first_args"), []any{2, 3}, "persisted")
	for _, q := range m.Questions() {
		for _, word := range []string{"ContextView", "recurse(", "Recursim"} {
			if strings.Contains(q.System+q.User, word) {
				t.Errorf("a request mentions %s", word)
			}
		}
	}
}

// Nested calls are in HistoryAll and in pages, not in History, and in the records of clients.
func TestNestedCallsInHistory(t *testing.T) {
	t.Parallel()
	names := "\tout := []any{}\n\tfor _, r := range %s {\n\t\tout = append(out, r.Role+\".\"+r.MethodName)\n\t}\n\treturn out, nil"
	reads := func(from string) string { return rig.Program(strings.Replace(names, "%s", from, 1)) }
	d := rig.Start(t, rig.NewModel(t, rig.Script{"delegator.compute": {rig.ProgDelegates},
		"calculator.add": {rig.ProgAdd}, "delegator.own": {reads("call.History()")},
		"delegator.all":  {reads("call.HistoryAll()")},
		"delegator.page": {reads("call.HistoryPage(1, 2)")}}))
	s := d.Session("delegator")
	d.WantValue(d.Call(s, "compute"), 5, "")
	d.WantValue(d.Call(s, "own"), []any{"delegator.compute"}, "")
	d.WantValue(d.Call(s, "all"), []any{"calculator.add", "delegator.compute", "delegator.own"}, "")
	d.WantValue(d.Call(s, "page"), []any{"delegator.compute", "delegator.own"}, "")
	d.WantValue(d.Call(s, "own"), []any{"delegator.compute", "delegator.own", "delegator.all", "delegator.page"},
		"persisted")
}

// A record's content_ref leads a later program to the value, and says where fetched data came from.
func TestRecordsLeadToValues(t *testing.T) {
	t.Parallel()
	source := rig.NewSource(t, rig.ItemsBody)
	m := rig.NewModel(t, rig.Script{
		"reader.items": {rig.Program("\tr, err := call.Fetch(\"" + source.URL +
			"/items\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn map[string]any{\"body\": r.Body}, nil")},
		"reader.follow": {rig.Program(
			"\th := call.History()\n\tref, _ := h[len(h)-1].OutcomeSummary[\"content_ref\"].(string)\n\treturn call.Content(ref), nil")},
		"reader.gone": {rig.Program("\treturn call.Content(\"content:00\"), nil")}, "reader.fails": {rig.ProgFails}})
	d := rig.Start(t, m, "--fetch-allow", source.Host())
	s := d.Session("reader")
	d.WantValue(d.Call(s, "items"), map[string]any{"body": `{"items":["a","b"]}`}, "")
	summary := d.History(s)[0]["outcome_summary"].(map[string]any)
	if summary["source_count"] != 1.0 || summary["primary_uri"] != source.URL+"/items" ||
		summary["retrieval_mode"] != "live" {
		t.Errorf("provenance: %v", summary)
	}
	if ref, _ := summary["content_ref"].(string); !strings.HasPrefix(ref, "content:") ||
		summary["content_kind"] != "object" || summary["content_bytes"] != 36.0 ||
		!strings.HasPrefix(summary["content_digest"].(string), "sha256:") {
		t.Errorf("content: %v", summary)
	}
	d.Restart()
	d.WantValue(d.Call(s, "follow"), map[string]any{"body": `{"items":["a","b"]}`}, "")
	d.WantValue(d.Call(s, "gone"), nil, "")
	d.Call(s, "fails")
	if summary := d.History(s)[3]["outcome_summary"].(map[string]any); summary["content_ref"] != nil || summary["source_count"] != nil {
		t.Errorf("a failed call's summary: %v", summary)
	}
}

// A record with a key of a newer version goes through store and interface unchanged, and to programs harmlessly.
func TestRecordOfANewerVersion(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"w.echo": {rig.ProgEcho},
		"w.size": {rig.Program("\treturn len(call.History()), nil")}}))
	s := d.Session("w")
	d.Call(s, "echo", 1)
	d.Edit(func(dir string) {
		path := filepath.Join(dir, "sessions", s, "history.jsonl")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		newer := strings.Replace(string(data), `"speaker":`, `"mood":{"a":[1,2.50]},"speaker":`, 1)
		if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	d.WantValue(d.Call(s, "size"), 1, "")
	if raw := string(d.Do(http.StatusOK, http.MethodGet, "/v1/sessions/"+s+"/history",
		nil).Body); !strings.Contains(raw, `"mood":{"a":[1,2.50]}`) {
		t.Errorf("the history is %s", raw)
	}
	if lines, _, code := d.Client("history", s, "--output", "json"); code != 0 || !strings.Contains(lines, `"mood"`) {
		t.Errorf("history: code %d, %s", code, lines)
	}
}

// After ten calls the prompt has their number and exactly the latest three, without their arguments;
// the contract's fingerprint does not depend on the history.
func TestPromptAfterTenCalls(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"assistant.echo": {rig.ProgEcho}, "assistant.late": {rig.ProgEcho},
		"assistant.later": {rig.ProgEcho}, "assistant.fails": {rig.ProgFails}})
	d := rig.Start(t, m)
	s := d.Session("assistant",
		map[string]any{"contract": map[string]any{"purpose": "p", "deliverable": map[string]any{}}})
	first := d.Call(s, "echo", "marker0")
	for i := range 8 {
		d.Call(s, "echo", "marker"+string(rune('1'+i)))
	}
	d.Call(s, "fails")
	d.Policy(map[string]any{"history_preview_limit": 3})
	late := d.Call(s, "late")
	var messages []provider.Message
	for _, x := range rig.Messages(t, m, -1) {
		messages = append(messages, provider.Message{Role: x[0], Content: x[1]})
	}
	block, err := prompttest.Check(messages)
	if err != nil || block.Records != 10 || len(block.Summaries) != 3 || block.Summaries[2]["method_name"] != "fails" ||
		block.Summaries[2]["error_type"] != "not_today" || strings.Contains(m.LastQuestion().User, "marker") {
		t.Errorf("the prompt has %+v, %v", block, err)
	}
	if a, b := d.LogOf(first)["contract_fingerprint"], d.LogOf(late)["contract_fingerprint"]; a != b || a == "none" {
		t.Errorf("contract fingerprints %v and %v", a, b)
	}
	d.Policy(map[string]any{"history_preview_limit": 1})
	d.Call(s, "later")
	messages = messages[:0]
	for _, x := range rig.Messages(t, m, -1) {
		messages = append(messages, provider.Message{Role: x[0], Content: x[1]})
	}
	if block, err := prompttest.Check(messages); err != nil || len(block.Summaries) != 1 {
		t.Errorf("with a limit of 1 the prompt has %+v, %v", block, err)
	}
}

package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Programs that look at the history, in each of the two ways.
var (
	progCountHistory = rig.Program(
		"\tn := 0\n\tfor _, r := range call.History() {\n\t\tif r.MethodName == \"echo\" {\n\t\t\tn++\n\t\t}\n\t}\n\treturn n, nil")
	progContextKey = rig.Program(
		"\trecords, ok := call.Context[\"conversation_history\"].([]any)\n\tif !ok {\n\t\treturn nil, recurgent.Fail(\"no_array\", \"the history is no array\")\n\t}\n\tnames := []any{}\n\tfor _, r := range records {\n\t\tnames = append(names, r.(map[string]any)[\"method_name\"])\n\t}\n\tcall.Context[\"conversation_history\"] = \"mine now\"\n\tcall.Context[\"seen\"] = len(records)\n\treturn names, nil")
	progInputHistory = rig.Program(
		"\tif call.Arg(0, \"question\") == nil {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"no question\")\n\t}\n\tout := []any{}\n\tfor _, turn := range call.InputHistory() {\n\t\tout = append(out, turn)\n\t}\n\treturn out, nil")
)

// Programs and clients find the session's records as conversation_history in its context; what a client stored there is
// kept aside, whatever it is.
func TestContextHistory(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"assistant.echo": {rig.ProgEcho}, "assistant.recall": {progContextKey}})
	d := rig.Start(t, m)
	merge := map[string]string{"Content-Type": "application/merge-patch+json"}
	for _, debug := range []bool{true, false} {
		s := d.Session("assistant", map[string]any{"debug": debug})
		d.WantValue(d.Call(s, "recall"), []any{}, "")
		d.Call(s, "echo", 1)
		d.WantValue(d.Call(s, "recall"), []any{"recall", "echo"}, "persisted")
		calls := 3
		for _, odd := range []string{`"broken"`, `5`, `{}`, `[1,2]`} {
			if r := d.Send("PATCH", "/v1/sessions/"+s+"/context", []byte(`{"conversation_history":`+odd+`}`),
				merge); r.Status != http.StatusOK {
				t.Fatalf("%s", r.Body)
			}
			got := d.Call(s, "recall")
			calls++
			if list, _ := got.Outcome.Value.([]any); len(list) != calls-1 {
				t.Errorf("with %s in the context: %+v", odd, got.Outcome)
			}
			memory := d.Get("/v1/sessions/" + s + "/context")
			if records, _ := memory["conversation_history"].([]any); len(records) != calls || memory["seen"] != float64(calls-1) {
				t.Errorf("with %s in the context it is shown as %v", odd, memory)
			}
			e := d.Get("/v1/calls/" + got.CallID)
			warned := strings.Contains(string(rig.MustJSON(e["warnings"])), "conversation_history")
			if want := debug && odd[0] != '['; warned != want {
				t.Errorf("%s, debug %v: warned %v, want %v", odd, debug, warned, want)
			}
			if e["history_access_detected"] != true || e["replayable"] != true {
				t.Errorf("access %v, replayable %v", e["history_access_detected"], e["replayable"])
			}
		}
		if n := len(d.History(s)); n != calls {
			t.Errorf("%d records of %d calls", n, calls)
		}
	}
	if n := m.Count("assistant", "recall"); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
}

// The report on history usage by role, and the tags.
func TestHistoryUsageReport(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"assistant.echo": {rig.ProgEcho}, "assistant.count": {progCountHistory},
		"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("assistant")
	d.Call(s, "echo", 1)
	d.WantValue(d.Call(s, "count"), 1, "")
	d.WantValue(d.Call(s, "count"), 1, "")
	d.Call(s, "x=", 1) // runs no program and counts for nothing
	d.Call(d.Session("calculator"), "add", 1, 2)
	got := d.Get("/v1/reports/history-usage")
	roles, _ := got["roles"].([]any)
	if got["calls"] != 4.0 || got["with_access"] != 2.0 || got["share"] != 0.5 || len(roles) != 2 {
		t.Fatalf("report: %v", got)
	}
	tags, _ := roles[0].(map[string]any)["tags"].(map[string]any)
	if roles[0].(map[string]any)["role"] != "assistant" || tags["filter"] != 2.0 && tags["count"] != 2.0 {
		t.Errorf("the role's usage: %v", roles[0])
	}
}

// Filters by method, status, role and time, export as JSON lines, and the client command.
func TestHistoryEnds(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"assistant.echo": {rig.ProgEcho}, "assistant.fails": {rig.ProgFails},
		"calculator.add": {rig.ProgAdd}, "assistant.sum": {rig.ProgDelegates}})
	d := rig.Start(t, m)
	s := d.Session("assistant")
	d.Call(s, "echo", "a\u001b[31m")
	d.Call(s, "fails")
	d.WantValue(d.Call(s, "sum"), 5, "")
	all := d.History(s)
	if len(all) != 4 {
		t.Fatalf("%d records, want 4", len(all))
	}
	at := all[1]["timestamp"].(string)
	for query, want := range map[string]int{"method=echo": 1, "status=error": 1, "role=calculator": 1,
		"role=assistant": 3, "since=" + at: 3, "until=" + at: 1, "role=nobody": 0} {
		if n := len(d.List("/v1/sessions/" + s + "/history?" + query)); n != want {
			t.Errorf("%s: %d records, want %d", query, n, want)
		}
	}
	export := d.Send(http.MethodGet, "/v1/sessions/"+s+"/history", nil,
		map[string]string{"Accept": "application/jsonl"})
	body := string(export.Body)
	if export.Header.Get("Content-Type") != "application/jsonl" || strings.Count(body, "\n") != 4 ||
		!strings.Contains(body, all[3]["call_id"].(string)) {
		t.Errorf("export (%s): %s", export.Header.Get("Content-Type"), body)
	}
	lines, _, code := d.Client("history", s, "--json")
	if code != 0 || lines != body {
		t.Errorf("history --json: code %d, %q, want %q", code, lines, body)
	}
	out, _, code := d.Client("history", s)
	if code != 0 || !strings.Contains(out, "assistant.fails()") ||
		!strings.Contains(out, "not_today: closed on Sundays") || strings.Contains(out, "\u001b") {
		t.Errorf("history: code %d, %s", code, out)
	}
	if one, _, _ := d.Client("history", s, "--last", "1"); strings.Count(one, "\n") != 2 {
		t.Errorf("history --last 1: %s", one)
	}
	if got, _, code := d.Client("history", s, "--role", "assistant", "--last", "2",
		"--json"); code != 0 || strings.Count(got, "\n") != 2 || !strings.Contains(got, "fails") ||
		strings.Contains(got, "echo") || strings.Index(got, "fails") > strings.Index(got, "sum") {
		t.Errorf("history --role --last 2: code %d, %s", code, got)
	}
	if got, _, _ := d.Client("history", s, "--status", "error", "--since", all[0]["timestamp"].(string), "--until",
		"2999-01-01T00:00:00Z", "--method", "fails"); strings.Count(got, "->") != 1 ||
		!strings.Contains(got, "not_today") {
		t.Errorf("history --status error: %s", got)
	}
	if _, stderr, code := d.Client("history", s, "--status", "fine"); code == 0 || !strings.Contains(stderr, "status") {
		t.Errorf("a wrong status: code %d, %s", code, stderr)
	}
	if _, stderr, code := d.Client("history", "sess_none"); code != cli.ExitUnreachable ||
		!strings.Contains(stderr, "404") {
		t.Errorf("an unknown session: code %d, %s", code, stderr)
	}
}

// A call's own history input, given or made of the session's turns, cold and warm.
func TestCallHistoryInput(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"qa.ask_it": {progInputHistory}})
	d := rig.Start(t, m)
	s := d.Session("qa", map[string]any{"contract": map[string]any{"signature": map[string]any{"inputs": []any{map[string]any{"name": "question"}}, "outputs": []any{map[string]any{"name": "answer"}}}}})
	ask := func(q string, h any) map[string]any {
		return map[string]any{"method": "ask_it", "args": []any{q}, "history": h}
	}
	calls := "/v1/sessions/" + s + "/calls"
	turn := map[string]any{"question": "q0", "answer": "a0"}
	for _, path := range []string{"cold", "warm"} {
		before := len(d.History(s))
		for _, c := range []struct {
			history any
			code    string
		}{
			{"x", "validation_failed"}, {map[string]any{}, "invalid_history_value"},
			{map[string]any{"messages": "x"}, "invalid_history_value"},
			{map[string]any{"messages": []any{turn, turn, map[string]any{"question": "q"}}}, "invalid_history_element"},
			{map[string]any{"from_session": "first"}, "invalid_history_value"},
			{map[string]any{"from_session": "last", "n": 0}, "invalid_history_value"},
			{map[string]any{"from_session": "last", "m": 1}, "invalid_history_value"},
		} {
			r := d.Send(http.MethodPost, calls, rig.MustJSON(ask("q", c.history)), nil)
			p := r.Object(t)
			if r.Status != http.StatusUnprocessableEntity || p["code"] != c.code && c.code != "validation_failed" {
				t.Errorf("%s, %v: status %d, code %v, want %s", path, c.history, r.Status, p["code"], c.code)
			}
			if c.code == "invalid_history_element" && (p["index"] != 2.0 || p["reason"] != "missing_output_fields") {
				t.Errorf("%s: %v", path, p)
			}
		}
		if n := len(d.History(s)); n != before {
			t.Errorf("%s: bad history left %d records", path, n-before)
		}
		d.Invoke(s, ask("q", map[string]any{"messages": []any{turn, turn}}))
	}
	last := d.Invoke(s, ask("q3", map[string]any{"from_session": "last", "n": 2}))
	want := []any{map[string]any{"question": "q", "answer": []any{turn, turn}},
		map[string]any{"question": "q", "answer": []any{turn, turn}}}
	d.WantValue(last, want, "persisted")
	if n := m.Count("qa", "ask_it"); n != 1 {
		t.Errorf("the model was asked %d times, want once: a history is no part of the program", n)
	}
}

// A call's own history by the call's contract or by none, its bounds, and turns of the session that
// leave out what failed.
func TestCallHistoryForms(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"qa.answer": {rig.Program(
		"\tif call.Arg(0, \"question\") == \"bad\" {\n\t\treturn nil, recurgent.Fail(\"no_answer\", \"I do not know\")\n\t}\n\th := call.InputHistory()\n\tout := []any{}\n\tfor _, turn := range h {\n\t\tout = append(out, turn[\"question\"])\n\t}\n\treturn map[string]any{\"answer\": out, \"nil\": h == nil}, nil")}})
	d := rig.Start(t, m)
	s := d.Session("qa")
	signature := map[string]any{"signature": map[string]any{"inputs": []any{map[string]any{"name": "question"}},
		"outputs": []any{map[string]any{"name": "answer", "type": "any"}}}}
	calls := "/v1/sessions/" + s + "/calls"
	ask := func(q string, contract, history any) rig.Response {
		return d.Send(http.MethodPost, calls,
			rig.MustJSON(map[string]any{"method": "answer", "args": []any{q}, "contract": contract,
				"history": history}), nil)
	}
	turn := map[string]any{"question": "q0", "answer": "a0"}
	for _, path := range []string{"cold", "warm"} {
		for _, c := range []struct {
			name              string
			contract, history any
			want              any // the value, or nil for a refusal
			code              string
		}{
			{"with the call's signature", signature, map[string]any{"messages": []any{turn}},
				map[string]any{"answer": []any{"q0"}, "nil": false}, ""},
			{"without a signature any object will do", nil,
				map[string]any{"messages": []any{map[string]any{"question": "any"}}},
				map[string]any{"answer": []any{"any"}, "nil": false}, ""},
			{"null is none", signature, nil, map[string]any{"answer": []any{}, "nil": true}, ""},
			{"no messages are none", signature, map[string]any{"messages": []any{}},
				map[string]any{"answer": []any{}, "nil": true}, ""},
			{"no object", nil, map[string]any{"messages": []any{5}}, nil, "invalid_history_element"},
			{"no outputs by the call's signature", signature,
				map[string]any{"messages": []any{map[string]any{"question": "q"}}}, nil, "invalid_history_element"},
			{"too many", signature, map[string]any{"messages": make([]any, 1001)}, nil, "too_large"},
			{"too long", signature, map[string]any{"messages": []any{map[string]any{"question": strings.Repeat("x",
				1<<20), "answer": 1}}}, nil, "too_large"},
			{"from the session without a signature", nil, map[string]any{"from_session": "last"}, nil,
				"invalid_history_value"},
		} {
			before := len(d.History(s))
			r := ask("q", c.contract, c.history).Object(t)
			if c.code != "" {
				if r["code"] != c.code || len(d.History(s)) != before {
					t.Errorf("%s, %s: got %v, %d records more", path, c.name, r, len(d.History(s))-before)
				}
				continue
			}
			o, _ := r["outcome"].(map[string]any)
			if !rig.Equal(c.want, o["value"]) {
				t.Errorf("%s, %s: got %v, want %v", path, c.name, r, c.want)
			}
		}
	}
	s = d.Session("qa")
	calls = "/v1/sessions/" + s + "/calls"
	for _, q := range []string{"one", "bad", "two"} {
		ask(q, signature, nil)
	}
	got := ask("three", signature, map[string]any{"from_session": "last", "n": 5}).Object(t)
	if o := got["outcome"].(map[string]any); !rig.Equal(map[string]any{"answer": []any{"one", "two"}, "nil": false},
		o["value"]) {
		t.Errorf("turns of the session: %v", o)
	}
	if n := m.Count("qa", "answer"); n != 1 {
		t.Errorf("the model was asked %d times, want once: histories and signatures are no part of a program", n)
	}
}

package tools

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Predictions in a session: one that the model was asked for in vain leaves a record with its usage in the
// log, and is no turn; one that was refused leaves nothing.
func TestFailedPredictionInASession(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text("no"), rig.Text("no"), rig.Status(http.StatusBadRequest), rig.Text("Answer: a1"),
		rig.Text("Answer: a2"))
	d := rig.Start(t, m)
	s := d.Session("assistant")
	ask := func(question any) rig.Response {
		return d.Send(http.MethodPost, "/v1/predict",
			rig.MustJSON(map[string]any{"signature": qaSignature(true),
				"inputs": map[string]any{"question": question, "password": nil}, "session_id": s}), nil)
	}
	if r := ask("q"); r.Status != http.StatusUnprocessableEntity || len(d.History(s)) != 0 {
		t.Fatalf("an unknown input: %d, %d records", r.Status, len(d.History(s)))
	}
	ask = func(question any) rig.Response {
		return d.Send(http.MethodPost, "/v1/predict",
			rig.MustJSON(map[string]any{"signature": qaSignature(true), "inputs": map[string]any{"question": question},
				"session_id": s}), nil)
	}
	for i, want := range []struct {
		status    int
		errorType any
		requests  float64
	}{{http.StatusBadGateway, "parse_failed", 2}, {http.StatusBadGateway, "provider", 1}, {http.StatusOK, nil, 1},
		{http.StatusOK, nil, 1}} {
		r := ask(map[string]any{"token": "hunter2", "n": i})
		records := d.History(s)
		if r.Status != want.status || len(records) != i+1 {
			t.Fatalf("prediction %d: status %d, %d records: %s", i, r.Status, len(records), r.Body)
		}
		rec := records[i]
		line := d.Get("/v1/calls/" + rec["call_id"].(string))
		if rec["error_type"] != want.errorType || rec["method_name"] != "predict" ||
			line["usage"].(map[string]any)["model_requests"] != want.requests ||
			line["history_record_appended"] != true {
			t.Errorf("prediction %d: record %v, log %v", i, rec, line)
		}
		if strings.Contains(string(rig.MustJSON(records))+string(rig.MustJSON(line)), "hunter2") {
			t.Errorf("prediction %d: a secret is on record", i)
		}
	}
	if got := rig.Messages(t, m, -1); len(got) != 4 || got[1][1] != `Question: {"n":2,"token":"[masked]"}` {
		t.Errorf("the last conversation is %q, want one turn before it", got)
	}
}

// Named signatures are durable, and a session's turns become the history of the next.
func TestPredictNamedAndInASession(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text("Answer: a1"), rig.Text("Answer: a2"), rig.Text("Answer: a3"))
	d := rig.Start(t, m)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/signatures/q%20and%20a", qaSignature(false))
	d.Do(http.StatusOK, http.MethodPut, "/v1/signatures/q%20and%20a", qaSignature(true))
	d.Do(http.StatusUnprocessableEntity, http.MethodPut, "/v1/signatures/bad", map[string]any{"inputs": []any{}})
	d.Restart()
	if got := d.Get("/v1/signatures/q%20and%20a"); got["name"] != "q and a" ||
		len(got["signature"].(map[string]any)["inputs"].([]any)) != 2 {
		t.Errorf("signature after a restart: %v", got)
	}
	s := d.Session("assistant")
	ask := func(question string) map[string]any {
		return d.Do(http.StatusOK, http.MethodPost, "/v1/signatures/q%20and%20a/predict",
			map[string]any{"inputs": map[string]any{"question": question}, "session_id": s}).Object(t)
	}
	first := ask("q1")
	d.Restart()
	ask("q2")
	// Without a history field, and not by name, it is the same signature.
	d.Do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"signature": qaSignature(false),
		"inputs": map[string]any{"question": "q3"}, "session_id": s})
	got := rig.Messages(t, m, -1)
	var said []string
	for _, x := range got[1:] {
		said = append(said, x[1])
	}
	if text := strings.Join(said, "|"); text != "Question: q1|Answer: a1|Question: q2|Answer: a2|Question: q3" {
		t.Errorf("the conversation is %s", text)
	}
	records := d.History(s)
	if len(records) != 3 || records[0]["call_id"] != first["call_id"] || records[0]["method_name"] != "predict" ||
		!rig.Equal(map[string]any{"question": "q1"}, records[0]["kwargs"]) {
		t.Errorf("records: %v", records)
	}
	other := d.Session("assistant")
	d.Do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"signature": qaSignature(false),
		"inputs": map[string]any{"question": "q"}, "session_id": other})
	if n := len(rig.Messages(t, m, -1)); n != 2 {
		t.Errorf("another session's conversation has %d messages, want 2", n)
	}
	if names := d.List("/v1/signatures"); len(names) != 1 || names[0]["name"] != "q and a" {
		t.Errorf("named signatures: %v", names)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/signatures/q%20and%20a", nil)
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/signatures/q%20and%20a", nil)
	d.Do(http.StatusNotFound, http.MethodPost, "/v1/predict", map[string]any{"signature": qaSignature(false),
		"inputs": map[string]any{"question": "q"}, "session_id": "sess_none"})
}

// Examples that are stored with a named signature come before the history, survive a restart, and give way to those
// that a request brings.
func TestPredictDemos(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text("Answer: ok"))
	d := rig.Start(t, m)
	example := func(n string) map[string]any { return map[string]any{"question": "d" + n, "answer": "e" + n} }
	put := func(demos any) rig.Response {
		body := qaSignature(true)
		body["demos"] = demos
		return d.Send(http.MethodPut, "/v1/signatures/qa", rig.MustJSON(body), nil)
	}
	for name, c := range map[string]struct {
		demos any
		code  string
	}{"no list": {"x", "invalid_input"}, "no object": {[]any{5}, "invalid_input"},
		"no output": {[]any{map[string]any{"question": "q"}}, "invalid_input"},
		"too many":  {make([]any, 101), "too_large"},
		"too long":  {[]any{map[string]any{"question": strings.Repeat("x", 64<<10), "answer": "a"}}, "too_large"}} {
		r := put(c.demos)
		if r.Status < 400 || r.Object(t)["code"] != c.code || !strings.Contains(string(r.Body), "/demos") {
			t.Errorf("%s: status %d: %s", name, r.Status, r.Body)
		}
	}
	if r := put([]any{example("1"), example("2")}); r.Status != http.StatusCreated {
		t.Fatalf("%s", r.Body)
	}
	d.Stop(syscall.SIGKILL) // what was acknowledged is kept
	d.Start()
	if got := d.Get("/v1/signatures/qa"); !rig.Equal([]any{example("1"), example("2")}, got["demos"]) {
		t.Errorf("after a restart: %v", got)
	}
	s := d.Session("assistant")
	turn := map[string]any{"messages": []any{map[string]any{"question": "q1", "answer": "a1"}}}
	for _, c := range []struct {
		name string
		more map[string]any
		want string
	}{
		{"the stored ones come before the history",
			map[string]any{"inputs": map[string]any{"question": "now", "history": turn}},
			"Question: d1|Answer: e1|Question: d2|Answer: e2|Question: q1|Answer: a1|Question: now"},
		{"those of the request stand in for them",
			map[string]any{"inputs": map[string]any{"question": "now", "history": turn}, "demos": []any{example("3")}},
			"Question: d3|Answer: e3|Question: q1|Answer: a1|Question: now"},
		{"an empty list is none", map[string]any{"inputs": map[string]any{"question": "now"}, "demos": []any{}},
			"Question: now"},
		{"null is as if left out", map[string]any{"inputs": map[string]any{"question": "now"}, "demos": nil},
			"Question: d1|Answer: e1|Question: d2|Answer: e2|Question: now"},
		{"in a session, first turn", map[string]any{"inputs": map[string]any{"question": "s1"}, "session_id": s},
			"Question: d1|Answer: e1|Question: d2|Answer: e2|Question: s1"},
		{"in a session, second turn", map[string]any{"inputs": map[string]any{"question": "s2"}, "session_id": s},
			"Question: d1|Answer: e1|Question: d2|Answer: e2|Question: s1|Answer: ok|Question: s2"},
	} {
		d.Do(http.StatusOK, http.MethodPost, "/v1/signatures/qa/predict", c.more)
		var said []string
		for _, x := range rig.Messages(t, m, -1)[1:] {
			said = append(said, x[1])
		}
		if got := strings.Join(said, "|"); got != c.want {
			t.Errorf("%s: the model was sent %s, want %s", c.name, got, c.want)
		}
	}
	entry := d.List("/v1/maintenance/audit")[0]
	if entry["action"] != "signature.put" || entry["target"] != "qa" {
		t.Errorf("audit: %v", entry)
	}
}

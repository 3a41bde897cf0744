package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func readAll(t *testing.T, r *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func qaSignature(history bool) map[string]any {
	inputs := []any{map[string]any{"name": "question"}}
	if history {
		inputs = append(inputs, map[string]any{"name": "history", "type": "history"})
	}
	return map[string]any{"instructions": "Answer the question.", "inputs": inputs, "outputs": []any{map[string]any{"name": "answer", "type": "string"}}}
}

// sent is the messages of a request to the model, as role and content.
func sent(t *testing.T, m *model, i int) [][2]string {
	t.Helper()
	all := m.Requests()
	if i < 0 {
		i += len(all)
	}
	list, _ := all[i].Body["messages"].([]any)
	var out [][2]string
	for _, item := range list {
		o := item.(map[string]any)
		role, _ := o["role"].(string)
		content, _ := o["content"].(string)
		out = append(out, [2]string{role, content})
	}
	return out
}

// D-01 to D-20: the scenarios of seed 002 over HTTP.
func TestPredict(t *testing.T) {
	m := newModel(t, script{})
	m.Answer("", "", text("Answer: ok"))
	d := newDaemon(t, m)
	predict := func(history any, given bool) response {
		inputs := map[string]any{"question": "current"}
		if given {
			inputs["history"] = history
		}
		return d.do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"signature": qaSignature(true), "inputs": inputs})
	}
	plain := d.do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"signature": qaSignature(false), "inputs": map[string]any{"question": "current"}, "debug": true}).object(t)
	if !equal(map[string]any{"answer": "ok"}, plain["outputs"]) || plain["usage"].(map[string]any)["model_requests"] != 1.0 || len(plain["messages"].([]any)) != 3 {
		t.Errorf("reply: %v", plain)
	}
	want := sent(t, m, 0)
	for _, none := range []struct {
		value any
		given bool
	}{{nil, false}, {nil, true}, {map[string]any{"messages": []any{}}, true}} { // D-02, D-03, D-04
		predict(none.value, none.given)
		if got := sent(t, m, -1); !equal(want, toAny(got)) {
			t.Errorf("with history %v the messages are %q, want %q", none.value, got, want)
		}
	}
	predict(map[string]any{"messages": []any{map[string]any{"answer": "a1", "extra": 1, "question": "q1"}, map[string]any{"question": map[string]any{"b": 1, "a": 2}, "answer": "a2"}}}, true)
	got := sent(t, m, -1)
	expect := [][2]string{want[0], {"user", "Question: q1"}, {"assistant", "Answer: a1"}, {"user", `Question: {"a":2,"b":1}`}, {"assistant", "Answer: a2"}, want[len(want)-1]}
	if !equal(expect, toAny(got)) { // D-05, D-11 to D-20
		t.Errorf("messages %q, want %q", got, expect)
	}
	n := len(m.Requests())
	for _, c := range []struct {
		history any
		code    string
		reason  string
	}{
		{"x", "invalid_history_value", ""}, {5, "invalid_history_value", ""}, {[]any{}, "invalid_history_value", ""}, {map[string]any{}, "invalid_history_value", ""},
		{map[string]any{"messages": "x"}, "invalid_history_value", ""}, {map[string]any{"messages": nil}, "invalid_history_value", ""},
		{map[string]any{"messages": []any{5}}, "invalid_history_element", "not_an_object"},
		{map[string]any{"messages": []any{map[string]any{"answer": "a"}}}, "invalid_history_element", "missing_input_fields"},
		{map[string]any{"messages": []any{map[string]any{"question": "q"}}}, "invalid_history_element", "missing_output_fields"},
		{map[string]any{"messages": make([]any, 1001)}, "too_large", ""}, // D-25
	} {
		r := d.send(http.MethodPost, "/v1/predict", mustJSON(map[string]any{"signature": qaSignature(true), "inputs": map[string]any{"question": "q", "history": c.history}}), nil)
		p := r.object(t)
		if p["code"] != c.code || c.reason != "" && p["reason"] != c.reason {
			t.Errorf("history %.80v: status %d, code %v, reason %v; want %s %s", c.history, r.Status, p["code"], p["reason"], c.code, c.reason)
		}
	}
	for _, body := range []map[string]any{
		{"signature": qaSignature(true), "inputs": map[string]any{}},
		{"signature": qaSignature(true), "inputs": map[string]any{"question": "q", "other": 1}},
		{"signature": map[string]any{"inputs": []any{}, "outputs": []any{}}, "inputs": map[string]any{}},
		{"inputs": map[string]any{"question": "q"}},
	} {
		if r := d.send(http.MethodPost, "/v1/predict", mustJSON(body), nil); r.Status != http.StatusUnprocessableEntity {
			t.Errorf("%v: status %d", body, r.Status)
		}
	}
	if len(m.Requests()) != n {
		t.Error("a bad request was asked of the model")
	}
}

func toAny(list [][2]string) any {
	out := []any{}
	for _, m := range list {
		out = append(out, []any{m[0], m[1]})
	}
	return out
}

// A reply that does not fit is asked for once more; then it is a problem with the usage in it.
func TestPredictAsksOnceMore(t *testing.T) {
	m := newModel(t, script{})
	m.Answer("", "", text("I would rather not"), text("Answer: now it is"), text("no"), text("no"), status(http.StatusBadRequest))
	d := newDaemon(t, m)
	body := map[string]any{"signature": qaSignature(false), "inputs": map[string]any{"question": "q"}}
	got := d.do(http.StatusOK, http.MethodPost, "/v1/predict", body).object(t)
	if got["attempts"] != 2.0 || !equal(map[string]any{"answer": "now it is"}, got["outputs"]) {
		t.Errorf("got %v", got)
	}
	p := d.do(http.StatusBadGateway, http.MethodPost, "/v1/predict", body).object(t)
	if p["code"] != "unfitting_reply" || p["usage"].(map[string]any)["model_requests"] != 2.0 {
		t.Errorf("problem: %v", p)
	}
	if p := d.do(http.StatusBadGateway, http.MethodPost, "/v1/predict", body).object(t); p["code"] != "provider" {
		t.Errorf("problem: %v", p)
	}
}

// Named signatures are durable, and a session's turns become the history of the next.
func TestPredictNamedAndInASession(t *testing.T) {
	m := newModel(t, script{})
	m.Answer("", "", text("Answer: a1"), text("Answer: a2"), text("Answer: a3"))
	d := newDaemon(t, m)
	d.do(http.StatusCreated, http.MethodPut, "/v1/signatures/q%20and%20a", qaSignature(false))
	d.do(http.StatusOK, http.MethodPut, "/v1/signatures/q%20and%20a", qaSignature(true))
	d.do(http.StatusUnprocessableEntity, http.MethodPut, "/v1/signatures/bad", map[string]any{"inputs": []any{}})
	d.restart()
	if got := d.get("/v1/signatures/q%20and%20a"); got["name"] != "q and a" || len(got["signature"].(map[string]any)["inputs"].([]any)) != 2 {
		t.Errorf("signature after a restart: %v", got)
	}
	s := d.session("assistant")
	ask := func(question string) map[string]any {
		return d.do(http.StatusOK, http.MethodPost, "/v1/signatures/q%20and%20a/predict", map[string]any{"inputs": map[string]any{"question": question}, "session_id": s}).object(t)
	}
	first := ask("q1")
	d.restart()
	ask("q2")
	// Without a history field, and not by name, it is the same signature.
	d.do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"signature": qaSignature(false), "inputs": map[string]any{"question": "q3"}, "session_id": s})
	got := sent(t, m, -1)
	var said []string
	for _, x := range got[1:] {
		said = append(said, x[1])
	}
	if text := strings.Join(said, "|"); text != "Question: q1|Answer: a1|Question: q2|Answer: a2|Question: q3" {
		t.Errorf("the conversation is %s", text)
	}
	records := d.history(s)
	if len(records) != 3 || records[0]["call_id"] != first["call_id"] || records[0]["method_name"] != "predict" || !equal(map[string]any{"question": "q1"}, records[0]["kwargs"]) {
		t.Errorf("records: %v", records)
	}
	other := d.session("assistant")
	d.do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"signature": qaSignature(false), "inputs": map[string]any{"question": "q"}, "session_id": other})
	if n := len(sent(t, m, -1)); n != 2 {
		t.Errorf("another session's conversation has %d messages, want 2", n)
	}
	d.do(http.StatusNoContent, http.MethodDelete, "/v1/signatures/q%20and%20a", nil)
	d.do(http.StatusNotFound, http.MethodGet, "/v1/signatures/q%20and%20a", nil)
	d.do(http.StatusNotFound, http.MethodPost, "/v1/predict", map[string]any{"signature": qaSignature(false), "inputs": map[string]any{"question": "q"}, "session_id": "sess_none"})
}

package tools

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Every prediction that the model was asked for is in the call log, with its usage and its outcome, in a session and
// without one, by name and not, answered or not; nobody can judge it as a program's answer. A refused one leaves
// nothing.
func TestEveryPredictionIsListed(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text("Answer: a1"), rig.Text("Answer: a2"), rig.Text("no"), rig.Text("no"),
		rig.Status(http.StatusBadRequest), rig.Text("Answer: a3"))
	d := rig.Start(t, m)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/signatures/qa", qaSignature(false))
	s := d.Session("assistant")
	body := func(more map[string]any) map[string]any {
		out := map[string]any{"signature": qaSignature(false),
			"inputs": map[string]any{"question": map[string]any{"password": "hunter2"}}}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	var ids []any
	ids = append(ids, d.Do(http.StatusOK, http.MethodPost, "/v1/predict", body(nil)).Object(t)["call_id"])
	ids = append(ids, d.Do(http.StatusOK, http.MethodPost, "/v1/signatures/qa/predict",
		map[string]any{"inputs": map[string]any{"question": "q"}}).Object(t)["call_id"])
	d.Do(http.StatusBadGateway, http.MethodPost, "/v1/predict", body(nil)) // two replies that do not fit
	d.Do(http.StatusBadGateway, http.MethodPost, "/v1/predict", body(nil)) // an outage
	ids = append(ids, d.Do(http.StatusOK, http.MethodPost, "/v1/predict",
		body(map[string]any{"session_id": s})).Object(t)["call_id"])
	d.Do(http.StatusUnprocessableEntity, http.MethodPost, "/v1/predict",
		body(map[string]any{"inputs": map[string]any{}}))

	listed := func() []map[string]any { return d.List("/v1/calls?method=predict") }
	check := func(when string) {
		lines := listed()
		if len(lines) != 5 {
			t.Fatalf("%s: %d predictions are listed, want 5", when, len(lines))
		}
		for i, want := range []struct {
			session, status string
			errorType       any
			requests        float64
			id              any
		}{{s, "ok", nil, 1, ids[2]}, {"", "error", "provider", 1, nil}, {"", "error", "parse_failed", 2, nil},
			{"", "ok", nil, 1, ids[1]}, {"", "ok", nil, 1, ids[0]}} {
			got := lines[i]
			if got["session_id"] != want.session || got["outcome_status"] != want.status ||
				got["outcome_error_type"] != want.errorType ||
				got["usage"].(map[string]any)["model_requests"] != want.requests ||
				got["history_record_appended"] != (want.session != "") || got["program_source"] != "none" ||
				want.id != nil && got["call_id"] != want.id {
				t.Errorf("%s: line %d is %v, want %+v", when, i, got, want)
			}
			if strings.Contains(string(rig.MustJSON(got)), "hunter2") {
				t.Errorf("%s: line %d holds a secret", when, i)
			}
		}
	}
	check("at once")
	d.Stop(syscall.SIGKILL) // what was acknowledged is kept
	d.Start()
	check("after a kill")
	for i, id := range ids {
		call := d.Get("/v1/calls/" + id.(string))
		if o := call["outcome"].(map[string]any); o["status"] != "ok" ||
			!rig.Equal(map[string]any{"answer": "a" + string(rune('1'+i))}, o["value"]) {
			t.Errorf("call %d: outcome %v", i, o)
		}
		r := d.Send(http.MethodPost, "/v1/calls/"+id.(string)+"/verdict",
			rig.MustJSON(map[string]any{"verdict": "wrong", "expected": 1}), nil)
		if r.Status != http.StatusUnprocessableEntity || r.Object(t)["code"] != "no_program" {
			t.Errorf("a verdict on prediction %d: %d %s", i, r.Status, r.Body)
		}
	}
	if n := len(d.History(s)); n != 1 {
		t.Errorf("the session has %d records, want its own one", n)
	}
}

// A named signature with nested outputs and demos: the schema is kept with it, shown to the model, and decides what an
// answer is.
func TestPredictNested(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text("Mood: fine\nItems: [{\"name\": \"milk\"}]"),
		rig.Text("Mood: good\nItems: [{\"name\": \"milk\"}]"))
	d := rig.Start(t, m)
	items := map[string]any{"type": "array", "items": map[string]any{"type": "object", "required": []any{"name"},
		"properties": map[string]any{"name": map[string]any{"type": "string"}}}}
	signature := func(schema any, demo map[string]any) map[string]any {
		return map[string]any{"inputs": []any{map[string]any{"name": "text"}}, "demos": []any{demo},
			"outputs": []any{map[string]any{"name": "mood", "type": "string", "schema": schema},
				map[string]any{"name": "items", "schema": items}}}
	}
	enum := map[string]any{"enum": []any{"good", "bad"}}
	demo := map[string]any{"text": "Bread", "mood": "bad", "items": []any{map[string]any{"name": "bread"}}}
	for _, c := range []struct {
		name, code, pointer string
		body                map[string]any
	}{
		{"a schema that makes no sense", "invalid_contract", "/outputs/0/schema/enum",
			signature(map[string]any{"enum": 5}, demo)},
		{"a misspelt constraint", "invalid_contract", "/outputs/0/schema/min_lenght",
			signature(map[string]any{"min_lenght": 5}, demo)},
		{"a demo that breaks it", "invalid_input", "/demos/0/items",
			signature(enum, map[string]any{"text": "x", "mood": "good", "items": []any{map[string]any{}}})},
	} {
		r := d.Send(http.MethodPut, "/v1/signatures/shop", rig.MustJSON(c.body), nil)
		if r.Status != http.StatusUnprocessableEntity || r.Object(t)["code"] != c.code ||
			!strings.Contains(string(r.Body), c.pointer) {
			t.Errorf("%s: %d %s", c.name, r.Status, r.Body)
		}
	}
	misspelt := signature(map[string]any{"min_lenght": 5}, demo)
	delete(misspelt, "demos")
	once := d.Send(http.MethodPost, "/v1/predict",
		rig.MustJSON(map[string]any{"signature": misspelt, "inputs": map[string]any{"text": "Milk"}}), nil)
	if once.Status != http.StatusUnprocessableEntity || !strings.Contains(string(once.Body),
		"/signature/outputs/0/schema/min_lenght") || !strings.Contains(string(once.Body), "minLength") {
		t.Errorf("a signature of the request: %d %s", once.Status, once.Body)
	}
	d.Do(http.StatusCreated, http.MethodPut, "/v1/signatures/shop", signature(enum, demo))
	d.Restart()
	if got := d.Get("/v1/signatures/shop")["signature"].(map[string]any)["outputs"].([]any); !rig.Equal(enum, got[0].(map[string]any)["schema"]) || got[1].(map[string]any)["type"] != "array" {
		t.Errorf("after a restart the outputs are %v", got)
	}
	reply := d.Do(http.StatusOK, http.MethodPost, "/v1/signatures/shop/predict",
		map[string]any{"inputs": map[string]any{"text": "Milk"}}).Object(t)
	if !rig.Equal(map[string]any{"mood": "good", "items": []any{map[string]any{"name": "milk"}}}, reply["outputs"]) ||
		reply["attempts"] != 2.0 {
		t.Errorf("got %v", reply)
	}
	messages := rig.Messages(t, m, -1)
	if !strings.Contains(messages[0][1], `{"enum":["good","bad"]}`) ||
		messages[2][1] != "Mood: bad\nItems: [{\"name\":\"bread\"}]" ||
		!strings.Contains(messages[len(messages)-1][1], "Mood breaks its schema") {
		t.Errorf("the model was sent %q", messages)
	}
}

package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
)

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

// prediction asks by the signature with these inputs and returns the messages that the model was sent.
func (d *proc) prediction(m *model, signature, inputs map[string]any) [][2]string {
	d.t.Helper()
	d.do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"signature": signature, "inputs": inputs})
	return sent(d.t, m, -1)
}

// Seed 002, scenario by scenario, over HTTP: what the model is sent.
func TestSeed002(t *testing.T) {
	m := newModel(t, script{})
	m.Answer("", "", text("Answer: ok"))
	d := newDaemon(t, m)
	turns := func(list ...any) map[string]any { return map[string]any{"messages": append([]any{}, list...)} }
	with := func(history any) map[string]any { return map[string]any{"question": "current", "history": history} }
	plain := d.prediction(m, qaSignature(false), map[string]any{"question": "current"})
	system, current := plain[0], [2]string{"user", "Question: current"}
	if len(plain) != 2 || plain[0][0] != "system" || plain[1] != current {
		t.Fatalf("without history the messages are %q", plain)
	}
	one := map[string]any{"question": "q1", "answer": "a1"}
	for _, c := range []struct {
		scenario string
		inputs   map[string]any
		between  [][2]string // what stands between the first message and the last
	}{
		{"History input is omitted: the request is exactly as today (D-01, D-02)", map[string]any{"question": "current"}, nil},
		{"History input is null: as omitted (D-03)", with(nil), nil},
		{"History input has no messages: as omitted (D-04)", with(turns()), nil},
		{"History input is provided: it is included as additional messages (D-05, D-06)", with(turns(one)), [][2]string{{"user", "Question: q1"}, {"assistant", "Answer: a1"}}},
		{"History element becomes two messages: 2*N, roles alternate (D-11, D-15, D-16)", with(turns(one, one, one)),
			[][2]string{{"user", "Question: q1"}, {"assistant", "Answer: a1"}, {"user", "Question: q1"}, {"assistant", "Answer: a1"}, {"user", "Question: q1"}, {"assistant", "Answer: a1"}}},
		{"Fields are rendered as Field: value lines, strings as they are (D-12)", with(turns(map[string]any{"question": "two\nlines: <b>", "answer": "ä"})), [][2]string{{"user", "Question: two\nlines: <b>"}, {"assistant", "Answer: ä"}}},
		{"Values that are no strings are compact, keys sorted (D-19)", with(turns(map[string]any{"question": map[string]any{"b": []any{1, nil}, "a": 2.5}, "answer": true})), [][2]string{{"user", `Question: {"a":2.5,"b":[1,null]}`}, {"assistant", "Answer: true"}}},
		{"Keys outside the signature are ignored (D-20)", with(turns(map[string]any{"extra": "marker", "question": "q1", "history": turns(one), "answer": "a1"})), [][2]string{{"user", "Question: q1"}, {"assistant", "Answer: a1"}}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			got := d.prediction(m, qaSignature(true), c.inputs)
			want := append(append([][2]string{system}, c.between...), current) // before the current request, which is not altered: D-17, D-18
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the model was sent\n%q\nwant\n%q", got, want)
			}
		})
	}
	fields := map[string]any{"inputs": []any{map[string]any{"name": "zeta"}, map[string]any{"name": "alpha"}, map[string]any{"name": "history", "type": "history"}},
		"outputs": []any{map[string]any{"name": "verdict"}, map[string]any{"name": "because", "type": "array"}}}
	m.Answer("", "", text("Verdict: v\nBecause: []"))
	t.Run("Field order follows the signature, only present fields are rendered (D-13, D-14)", func(t *testing.T) {
		got := d.prediction(m, fields, map[string]any{"alpha": "a", "zeta": "z", "history": turns(map[string]any{"because": []any{"b"}, "alpha": "a1", "verdict": "v1", "zeta": "z1"}, map[string]any{"because": []any{}, "alpha": nil, "zeta": "z2"})})
		want := [][2]string{got[0], {"user", "Zeta: z1\nAlpha: a1"}, {"assistant", "Verdict: v1\nBecause: [\"b\"]"}, {"user", "Zeta: z2"}, {"assistant", "Because: []"}, {"user", "Zeta: z\nAlpha: a"}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the model was sent\n%q\nwant\n%q", got, want)
		}
	})
	n := len(m.Requests())
	for _, c := range []struct {
		scenario      string
		history       any
		code, pointer string
		tagged        map[string]any
	}{
		{"Invalid history value is rejected: a string (D-09)", "x", "invalid_history_value", "/inputs/history", map[string]any{"field": "history", "got": "string"}},
		{"Invalid history value is rejected: a number", 5, "invalid_history_value", "/inputs/history", map[string]any{"got": "number"}},
		{"Invalid history value is rejected: a list", []any{}, "invalid_history_value", "/inputs/history", map[string]any{"got": "array"}},
		{"Invalid history value is rejected: no messages", map[string]any{}, "invalid_history_value", "/inputs/history", map[string]any{"expected": "{messages: [...]}"}},
		{"Invalid history value is rejected: messages is text", map[string]any{"messages": "x"}, "invalid_history_value", "/inputs/history", nil},
		{"Invalid history value is rejected: messages is null", map[string]any{"messages": nil}, "invalid_history_value", "/inputs/history", nil},
		{"History message that is no object is rejected (D-07, D-10)", turns(one, 5), "invalid_history_element", "/inputs/history/messages/1", map[string]any{"index": 1, "reason": "not_an_object"}},
		{"History message without inputs is rejected", turns(one, one, map[string]any{"answer": "a"}, 5), "invalid_history_element", "/inputs/history/messages/2", map[string]any{"index": 2, "reason": "missing_input_fields"}},
		{"History message without outputs is rejected", turns(map[string]any{"question": "q"}), "invalid_history_element", "/inputs/history/messages/0", map[string]any{"index": 0, "reason": "missing_output_fields"}},
		{"The history field is no input of an element (D-07)", turns(map[string]any{"history": turns(one), "answer": "a"}), "invalid_history_element", "/inputs/history/messages/0", map[string]any{"reason": "missing_input_fields"}},
		{"Keys are as declared, in no other case (D-08)", turns(map[string]any{"Question": "q", "answer": "a"}), "invalid_history_element", "/inputs/history/messages/0", map[string]any{"reason": "missing_input_fields"}},
		{"Too many elements (D-25)", map[string]any{"messages": make([]any, 1001)}, "too_large", "/inputs/history/messages", map[string]any{"unit": "elements", "limit": 1000, "got": 1001}},
		{"Too many bytes (D-25)", turns(map[string]any{"question": strings.Repeat("x", 1<<20), "answer": "a"}), "too_large", "/inputs/history", map[string]any{"unit": "bytes", "limit": 1 << 20}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			r := d.send(http.MethodPost, "/v1/predict", mustJSON(map[string]any{"signature": qaSignature(true), "inputs": with(c.history)}), nil)
			p := r.object(t)
			errs, _ := p["errors"].([]any)
			if r.Status < 400 || r.Status >= 500 || p["code"] != c.code || len(errs) != 1 || errs[0].(map[string]any)["pointer"] != c.pointer {
				t.Errorf("status %d: %s; want %s at %s", r.Status, r.Body, c.code, c.pointer)
			}
			for k, want := range c.tagged {
				if !equal(want, p[k]) {
					t.Errorf("%s is %v, want %v", k, p[k], want)
				}
			}
		})
	}
	if len(m.Requests()) != n {
		t.Error("a bad history was asked of the model")
	}
}

// D-13, D-19: whatever the order of the keys in the request, the model is sent the same bytes.
func TestPredictIsByteStable(t *testing.T) {
	m := newModel(t, script{})
	m.Answer("", "", text(`{"mood":"good","stars":5}`))
	d := newDaemon(t, m)
	signature := map[string]any{"inputs": []any{map[string]any{"name": "review"}, map[string]any{"name": "meta"}, map[string]any{"name": "past", "type": "history"}},
		"outputs": []any{map[string]any{"name": "mood"}, map[string]any{"name": "stars", "type": "integer"}}}
	members := []string{`"review":"r"`, `"meta":{"b":1.50,"a":[{"d":1e2,"c":9007199254740993}]}`, `"past":{"messages":[{"stars":1,"mood":"bad","meta":{"z":0,"y":-0.0}}]}`}
	var first string
	for range 50 {
		rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		d.do(http.StatusOK, http.MethodPost, "/v1/predict", json.RawMessage(`{"inputs":{`+strings.Join(members, ",")+`},"signature":`+string(mustJSON(signature))+`}`))
		if got := string(mustJSON(sent(t, m, -1))); first == "" {
			first = got
		} else if got != first {
			t.Fatalf("the model was sent\n%s\nand then\n%s", first, got)
		}
	}
	if want := `Meta: {\"a\":[{\"c\":9007199254740993,\"d\":1e2}],\"b\":1.50}`; !strings.Contains(first, want) {
		t.Errorf("the model was sent %s, want %s in it", first, want)
	}
}

// What is wrong with a prediction is found before the model is asked.
func TestBadPredictions(t *testing.T) {
	m := newModel(t, script{})
	d := newDaemon(t, m)
	typed := map[string]any{"inputs": []any{map[string]any{"name": "n", "type": "integer"}}, "outputs": []any{map[string]any{"name": "a"}}}
	inputs := map[string]any{"question": "q"}
	for name, body := range map[string]map[string]any{
		"missing input":          {"signature": qaSignature(true), "inputs": map[string]any{}},
		"unknown input":          {"signature": qaSignature(true), "inputs": map[string]any{"question": "q", "other": 1}},
		"wrong type":             {"signature": typed, "inputs": map[string]any{"n": 1.5}},
		"signature of nothing":   {"signature": map[string]any{"inputs": []any{}, "outputs": []any{}}, "inputs": map[string]any{}},
		"two histories":          {"signature": map[string]any{"inputs": []any{map[string]any{"name": "q"}, map[string]any{"name": "h", "type": "history"}, map[string]any{"name": "i", "type": "history"}}, "outputs": []any{map[string]any{"name": "a"}}}, "inputs": map[string]any{"q": 1}},
		"a history as output":    {"signature": map[string]any{"inputs": []any{map[string]any{"name": "q"}}, "outputs": []any{map[string]any{"name": "a", "type": "history"}}}, "inputs": map[string]any{"q": 1}},
		"no signature":           {"inputs": inputs},
		"unknown adapter":        {"signature": qaSignature(false), "inputs": inputs, "adapter": "yaml"},
		"a demo without outputs": {"signature": qaSignature(false), "inputs": inputs, "demos": []any{map[string]any{"question": "q"}}},
		"a demo of no object":    {"signature": qaSignature(false), "inputs": inputs, "demos": []any{1}},
		"too many demos":         {"signature": qaSignature(false), "inputs": inputs, "demos": make([]any, 1001)},
	} {
		r := d.send(http.MethodPost, "/v1/predict", mustJSON(body), nil)
		if r.Status != http.StatusUnprocessableEntity && (name != "too many demos" || r.object(t)["code"] != "too_large") {
			t.Errorf("%s: status %d: %s", name, r.Status, r.Body)
		}
		checkProblem(t, name, r)
	}
	if n := len(m.Requests()); n != 0 {
		t.Errorf("%d bad requests were asked of the model", n)
	}
}

// Adapters and typed outputs: what the model is asked to write, what is read, and what the client gets.
func TestPredictAdapters(t *testing.T) {
	m := newModel(t, script{})
	d := newDaemon(t, m)
	signature := map[string]any{"inputs": []any{map[string]any{"name": "review"}}, "outputs": []any{map[string]any{"name": "mood"}, map[string]any{"name": "stars", "type": "integer"},
		map[string]any{"name": "sure", "type": "boolean"}, map[string]any{"name": "words", "type": "array"}, map[string]any{"name": "more", "type": "object"}}}
	want := map[string]any{"mood": "good", "stars": 5, "sure": true, "words": []any{"fine"}, "more": map[string]any{"a": 1}}
	lines, object := "Mood: good\nStars: 5\nSure: true\nWords: [\"fine\"]\nMore: {\"a\":1}", `{"mood":"good","stars":5.0,"sure":true,"words":["fine"],"more":{"a":1}}`
	for _, c := range []struct {
		name, adapter string
		replies       []openaitest.Reply
		requests      int
		schema        bool // the last request holds a schema
	}{
		{"lines by default", "", []openaitest.Reply{text(lines)}, 1, false},
		{"lines", "lines", []openaitest.Reply{text("Here:\n" + lines)}, 1, false},
		{"JSON where lines were asked for", "lines", []openaitest.Reply{text("```json\n" + object + "\n```")}, 1, false},
		{"json", "json", []openaitest.Reply{text(object)}, 1, false},
		{"json_schema, the server has it", "json_schema", []openaitest.Reply{text(object)}, 1, true},
		{"json_schema, the server refuses it", "json_schema", []openaitest.Reply{{Status: http.StatusBadRequest, Body: `{"error":{"message":"response_format json_schema is not supported"}}`}, text(object)}, 2, false},
		{"json_schema, the server is known to refuse it", "json_schema", []openaitest.Reply{text(object)}, 1, false},
		{"a reply of wrong types is mended once", "json", []openaitest.Reply{text(strings.Replace(object, "5.0", `"five"`, 1)), text(object)}, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.Answer("", "", c.replies...)
			before := len(m.Requests())
			got := d.do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"signature": signature, "inputs": map[string]any{"review": "r"}, "adapter": c.adapter}).object(t)
			all := m.Requests()
			usage := got["usage"].(map[string]any)
			if !equal(want, got["outputs"]) || len(all)-before != c.requests || usage["model_requests"] != float64(c.requests) || usage["completion_tokens"] == 0.0 {
				t.Errorf("got %v after %d requests, want %v after %d", got, len(all)-before, want, c.requests)
			}
			last := all[len(all)-1]
			if (last.Body["response_format"] != nil) != c.schema {
				t.Errorf("response_format is %v", last.Body["response_format"])
			}
			if strings.HasPrefix(c.adapter, "json") != strings.Contains(last.Text, "one JSON object") {
				t.Errorf("the model was asked: %s", last.Text)
			}
			if c.name == "a reply of wrong types is mended once" && !strings.Contains(last.Text, "Stars must be of type integer, got string") {
				t.Errorf("the reason is not fed back: %s", last.Text)
			}
		})
	}
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

// H-01, H-24 and D-24 for predictions in a session: one that the model was asked for in vain leaves a record with its usage in the
// log, and is no turn; one that was refused leaves nothing.
func TestFailedPredictionInASession(t *testing.T) {
	m := newModel(t, script{})
	m.Answer("", "", text("no"), text("no"), status(http.StatusBadRequest), text("Answer: a1"), text("Answer: a2"))
	d := newDaemon(t, m)
	s := d.session("assistant")
	ask := func(question any) response {
		return d.send(http.MethodPost, "/v1/predict", mustJSON(map[string]any{"signature": qaSignature(true), "inputs": map[string]any{"question": question, "password": nil}, "session_id": s}), nil)
	}
	if r := ask("q"); r.Status != http.StatusUnprocessableEntity || len(d.history(s)) != 0 {
		t.Fatalf("an unknown input: %d, %d records", r.Status, len(d.history(s)))
	}
	ask = func(question any) response {
		return d.send(http.MethodPost, "/v1/predict", mustJSON(map[string]any{"signature": qaSignature(true), "inputs": map[string]any{"question": question}, "session_id": s}), nil)
	}
	for i, want := range []struct {
		status    int
		errorType any
		requests  float64
	}{{http.StatusBadGateway, "parse_failed", 2}, {http.StatusBadGateway, "provider", 1}, {http.StatusOK, nil, 1}, {http.StatusOK, nil, 1}} {
		r := ask(map[string]any{"token": "hunter2", "n": i})
		records := d.history(s)
		if r.Status != want.status || len(records) != i+1 {
			t.Fatalf("prediction %d: status %d, %d records: %s", i, r.Status, len(records), r.Body)
		}
		rec := records[i]
		line := d.get("/v1/calls/" + rec["call_id"].(string))
		if rec["error_type"] != want.errorType || rec["method_name"] != "predict" || line["usage"].(map[string]any)["model_requests"] != want.requests || line["history_record_appended"] != true {
			t.Errorf("prediction %d: record %v, log %v", i, rec, line)
		}
		if strings.Contains(string(mustJSON(records))+string(mustJSON(line)), "hunter2") {
			t.Errorf("prediction %d: a secret is on record", i)
		}
	}
	if got := sent(t, m, -1); len(got) != 4 || got[1][1] != `Question: {"n":2,"token":"[masked]"}` {
		t.Errorf("the last conversation is %q, want one turn before it", got)
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
	if names := d.list("/v1/signatures"); len(names) != 1 || names[0]["name"] != "q and a" {
		t.Errorf("named signatures: %v", names)
	}
	d.do(http.StatusNoContent, http.MethodDelete, "/v1/signatures/q%20and%20a", nil)
	d.do(http.StatusNotFound, http.MethodGet, "/v1/signatures/q%20and%20a", nil)
	d.do(http.StatusNotFound, http.MethodPost, "/v1/predict", map[string]any{"signature": qaSignature(false), "inputs": map[string]any{"question": "q"}, "session_id": "sess_none"})
}

// Examples that are stored with a named signature come before the history, survive a restart, and give way to those that a
// request brings.
func TestPredictDemos(t *testing.T) {
	m := newModel(t, script{})
	m.Answer("", "", text("Answer: ok"))
	d := newDaemon(t, m)
	example := func(n string) map[string]any { return map[string]any{"question": "d" + n, "answer": "e" + n} }
	put := func(demos any) response {
		body := qaSignature(true)
		body["demos"] = demos
		return d.send(http.MethodPut, "/v1/signatures/qa", mustJSON(body), nil)
	}
	for name, c := range map[string]struct {
		demos any
		code  string
	}{"no list": {"x", "invalid_input"}, "no object": {[]any{5}, "invalid_input"}, "no output": {[]any{map[string]any{"question": "q"}}, "invalid_input"}, "too many": {make([]any, 101), "too_large"},
		"too long": {[]any{map[string]any{"question": strings.Repeat("x", 64<<10), "answer": "a"}}, "too_large"}} {
		r := put(c.demos)
		if r.Status < 400 || r.object(t)["code"] != c.code || !strings.Contains(string(r.Body), "/demos") {
			t.Errorf("%s: status %d: %s", name, r.Status, r.Body)
		}
	}
	if r := put([]any{example("1"), example("2")}); r.Status != http.StatusCreated {
		t.Fatalf("%s", r.Body)
	}
	d.kill(syscall.SIGKILL) // what was acknowledged is kept
	d.start()
	if got := d.get("/v1/signatures/qa"); !equal([]any{example("1"), example("2")}, got["demos"]) {
		t.Errorf("after a restart: %v", got)
	}
	s := d.session("assistant")
	turn := map[string]any{"messages": []any{map[string]any{"question": "q1", "answer": "a1"}}}
	for _, c := range []struct {
		name string
		more map[string]any
		want string
	}{
		{"the stored ones come before the history", map[string]any{"inputs": map[string]any{"question": "now", "history": turn}}, "Question: d1|Answer: e1|Question: d2|Answer: e2|Question: q1|Answer: a1|Question: now"},
		{"those of the request stand in for them", map[string]any{"inputs": map[string]any{"question": "now", "history": turn}, "demos": []any{example("3")}}, "Question: d3|Answer: e3|Question: q1|Answer: a1|Question: now"},
		{"an empty list is none", map[string]any{"inputs": map[string]any{"question": "now"}, "demos": []any{}}, "Question: now"},
		{"null is as if left out", map[string]any{"inputs": map[string]any{"question": "now"}, "demos": nil}, "Question: d1|Answer: e1|Question: d2|Answer: e2|Question: now"},
		{"in a session, first turn", map[string]any{"inputs": map[string]any{"question": "s1"}, "session_id": s}, "Question: d1|Answer: e1|Question: d2|Answer: e2|Question: s1"},
		{"in a session, second turn", map[string]any{"inputs": map[string]any{"question": "s2"}, "session_id": s}, "Question: d1|Answer: e1|Question: d2|Answer: e2|Question: s1|Answer: ok|Question: s2"},
	} {
		d.do(http.StatusOK, http.MethodPost, "/v1/signatures/qa/predict", c.more)
		var said []string
		for _, x := range sent(t, m, -1)[1:] {
			said = append(said, x[1])
		}
		if got := strings.Join(said, "|"); got != c.want {
			t.Errorf("%s: the model was sent %s, want %s", c.name, got, c.want)
		}
	}
	entry := d.list("/v1/maintenance/audit")[0]
	if entry["action"] != "signature.put" || entry["target"] != "qa" {
		t.Errorf("audit: %v", entry)
	}
}

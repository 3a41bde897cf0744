package tools

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func qaSignature(history bool) map[string]any {
	inputs := []any{map[string]any{"name": "question"}}
	if history {
		inputs = append(inputs, map[string]any{"name": "history", "type": "history"})
	}
	return map[string]any{"instructions": "Answer the question.", "inputs": inputs,
		"outputs": []any{map[string]any{"name": "answer", "type": "string"}}}
}

// prediction asks by the signature with these inputs and returns the messages that the model was sent.
func prediction(d *rig.Daemon, m *rig.Model, signature, inputs map[string]any) [][2]string {
	d.T.Helper()
	d.Do(http.StatusOK, http.MethodPost, "/v1/predict", map[string]any{"signature": signature, "inputs": inputs})
	return rig.Messages(d.T, m, -1)
}

func chatTurns(list ...any) map[string]any {
	return map[string]any{"messages": append([]any{}, list...)}
}

func with(history any) map[string]any {
	return map[string]any{"question": "current", "history": history}
}

// one is a turn.
var one = map[string]any{"question": "q1", "answer": "a1"}

// Seed 002, scenario by scenario, over HTTP: what the model is sent.
func TestSeed002(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text("Answer: ok"))
	d := rig.Start(t, m)
	plain := prediction(d, m, qaSignature(false), map[string]any{"question": "current"})
	system, current := plain[0], [2]string{"user", "Question: current"}
	if len(plain) != 2 || plain[0][0] != "system" || plain[1] != current {
		t.Fatalf("without history the messages are %q", plain)
	}
	for _, c := range []struct {
		scenario string
		inputs   map[string]any
		between  [][2]string // what stands between the first message and the last
	}{
		{"History input is omitted: the request is exactly as today", map[string]any{"question": "current"}, nil},
		{"History input is null: as omitted", with(nil), nil},
		{"History input has no messages: as omitted", with(chatTurns()), nil},
		{"History input is provided: it is included as additional messages", with(chatTurns(one)),
			[][2]string{{"user", "Question: q1"}, {"assistant", "Answer: a1"}}},
		{"History element becomes two messages: 2*N, roles alternate", with(chatTurns(one, one, one)),
			[][2]string{{"user", "Question: q1"}, {"assistant", "Answer: a1"}, {"user", "Question: q1"},
				{"assistant", "Answer: a1"}, {"user", "Question: q1"}, {"assistant", "Answer: a1"}}},
		{"Fields are rendered as Field: value lines, strings as they are",
			with(chatTurns(map[string]any{"question": "two\nlines: <b>", "answer": "ä"})),
			[][2]string{{"user", "Question: two\nlines: <b>"}, {"assistant", "Answer: ä"}}},
		{"Values that are no strings are compact, keys sorted",
			with(chatTurns(map[string]any{"question": map[string]any{"b": []any{1, nil}, "a": 2.5}, "answer": true})),
			[][2]string{{"user", `Question: {"a":2.5,"b":[1,null]}`}, {"assistant", "Answer: true"}}},
		{"Keys outside the signature are ignored",
			with(chatTurns(map[string]any{"extra": "marker", "question": "q1", "history": chatTurns(one),
				"answer": "a1"})), [][2]string{{"user", "Question: q1"}, {"assistant", "Answer: a1"}}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			got := prediction(d, m, qaSignature(true), c.inputs)
			// before the current request, which is not altered
			want := append(append([][2]string{system}, c.between...), current)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the model was sent\n%q\nwant\n%q", got, want)
			}
		})
	}
}

// Field order follows the signature, and only fields that are present are rendered.
func TestSeed002Fields(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	d := rig.Start(t, m)
	fields := map[string]any{"inputs": []any{map[string]any{"name": "zeta"}, map[string]any{"name": "alpha"},
		map[string]any{"name": "history", "type": "history"}},
		"outputs": []any{map[string]any{"name": "verdict"}, map[string]any{"name": "because", "type": "array"}}}
	m.Answer("", "", rig.Text("Verdict: v\nBecause: []"))
	got := prediction(d, m, fields, map[string]any{"alpha": "a", "zeta": "z",
		"history": chatTurns(map[string]any{"because": []any{"b"}, "alpha": "a1", "verdict": "v1", "zeta": "z1"},
			map[string]any{"because": []any{}, "alpha": nil, "zeta": "z2"})})
	want := [][2]string{got[0], {"user", "Zeta: z1\nAlpha: a1"}, {"assistant", "Verdict: v1\nBecause: [\"b\"]"},
		{"user", "Zeta: z2"}, {"assistant", "Because: []"}, {"user", "Zeta: z\nAlpha: a"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the model was sent\n%q\nwant\n%q", got, want)
	}
}

// A malformed history is refused with its place, and the model is not asked.
func TestSeed002Refusals(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	d := rig.Start(t, m)
	for _, c := range []struct {
		scenario      string
		history       any
		code, pointer string
		tagged        map[string]any
	}{
		{"Invalid history value is rejected: a string", "x", "invalid_history_value", "/inputs/history",
			map[string]any{"field": "history", "got": "string"}},
		{"Invalid history value is rejected: a number", 5, "invalid_history_value", "/inputs/history",
			map[string]any{"got": "number"}},
		{"Invalid history value is rejected: a list", []any{}, "invalid_history_value", "/inputs/history",
			map[string]any{"got": "array"}},
		{"Invalid history value is rejected: no messages", map[string]any{}, "invalid_history_value", "/inputs/history",
			map[string]any{"expected": "{messages: [...]}"}},
		{"Invalid history value is rejected: messages is text", map[string]any{"messages": "x"},
			"invalid_history_value", "/inputs/history", nil},
		{"Invalid history value is rejected: messages is null", map[string]any{"messages": nil},
			"invalid_history_value", "/inputs/history", nil},
		{"History message that is no object is rejected", chatTurns(one, 5), "invalid_history_element",
			"/inputs/history/messages/1", map[string]any{"index": 1, "reason": "not_an_object"}},
		{"History message without inputs is rejected", chatTurns(one, one, map[string]any{"answer": "a"}, 5),
			"invalid_history_element", "/inputs/history/messages/2",
			map[string]any{"index": 2, "reason": "missing_input_fields"}},
		{"History message without outputs is rejected", chatTurns(map[string]any{"question": "q"}),
			"invalid_history_element", "/inputs/history/messages/0",
			map[string]any{"index": 0, "reason": "missing_output_fields"}},
		{"The history field is no input of an element",
			chatTurns(map[string]any{"history": chatTurns(one), "answer": "a"}), "invalid_history_element",
			"/inputs/history/messages/0", map[string]any{"reason": "missing_input_fields"}},
		{"Keys are as declared, in no other case", chatTurns(map[string]any{"Question": "q", "answer": "a"}),
			"invalid_history_element", "/inputs/history/messages/0", map[string]any{"reason": "missing_input_fields"}},
		{"Too many elements", map[string]any{"messages": make([]any, 1001)}, "too_large", "/inputs/history/messages",
			map[string]any{"unit": "elements", "limit": 1000, "got": 1001}},
		{"Too many bytes", chatTurns(map[string]any{"question": strings.Repeat("x", 1<<20), "answer": "a"}),
			"too_large", "/inputs/history", map[string]any{"unit": "bytes", "limit": 1 << 20}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			r := d.Send(http.MethodPost, "/v1/predict",
				rig.MustJSON(map[string]any{"signature": qaSignature(true), "inputs": with(c.history)}), nil)
			p := r.Object(t)
			errs, _ := p["errors"].([]any)
			if r.Status < 400 || r.Status >= 500 || p["code"] != c.code || len(errs) != 1 ||
				errs[0].(map[string]any)["pointer"] != c.pointer {
				t.Errorf("status %d: %s; want %s at %s", r.Status, r.Body, c.code, c.pointer)
			}
			for k, want := range c.tagged {
				if !rig.Equal(want, p[k]) {
					t.Errorf("%s is %v, want %v", k, p[k], want)
				}
			}
		})
	}
	if len(m.Requests()) > 0 {
		t.Error("a bad history was asked of the model")
	}
}

// Adapters and typed outputs: what the model is asked to write, what is read, and what the client gets.
func TestPredictAdapters(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	d := rig.Start(t, m).One() // each replica learns what the server refuses
	signature := map[string]any{"inputs": []any{map[string]any{"name": "review"}},
		"outputs": []any{map[string]any{"name": "mood"}, map[string]any{"name": "stars", "type": "integer"},
			map[string]any{"name": "sure", "type": "boolean"}, map[string]any{"name": "words", "type": "array"},
			map[string]any{"name": "more", "type": "object"}}}
	want := map[string]any{"mood": "good", "stars": 5, "sure": true, "words": []any{"fine"},
		"more": map[string]any{"a": 1}}
	lines, object := "Mood: good\nStars: 5\nSure: true\nWords: [\"fine\"]\nMore: {\"a\":1}",
		`{"mood":"good","stars":5.0,"sure":true,"words":["fine"],"more":{"a":1}}`
	for _, c := range []struct {
		name, adapter string
		replies       []openaitest.Reply
		requests      int
		schema        bool // the last request holds a schema
	}{
		{"lines by default", "", []openaitest.Reply{rig.Text(lines)}, 1, false},
		{"lines", "lines", []openaitest.Reply{rig.Text("Here:\n" + lines)}, 1, false},
		{"JSON where lines were asked for", "lines", []openaitest.Reply{rig.Text("```json\n" + object + "\n```")}, 1,
			false},
		{"json", "json", []openaitest.Reply{rig.Text(object)}, 1, false},
		{"json_schema, the server has it", "json_schema", []openaitest.Reply{rig.Text(object)}, 1, true},
		{"json_schema, the server refuses it", "json_schema",
			[]openaitest.Reply{{Status: http.StatusBadRequest,
				Body: `{"error":{"message":"response_format json_schema is not supported"}}`}, rig.Text(object)}, 2,
			false},
		{"json_schema, the server is known to refuse it", "json_schema", []openaitest.Reply{rig.Text(object)}, 1,
			false},
		{"a reply of wrong types is fixed once", "json",
			[]openaitest.Reply{rig.Text(strings.Replace(object, "5.0", `"five"`, 1)), rig.Text(object)}, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.Answer("", "", c.replies...)
			before := len(m.Requests())
			got := d.Do(http.StatusOK, http.MethodPost, "/v1/predict",
				map[string]any{"signature": signature, "inputs": map[string]any{"review": "r"},
					"adapter": c.adapter}).Object(t)
			all := m.Requests()
			usage := got["usage"].(map[string]any)
			if !rig.Equal(want, got["outputs"]) || len(all)-before != c.requests ||
				usage["model_requests"] != float64(c.requests) || usage["completion_tokens"] == 0.0 {
				t.Errorf("got %v after %d requests, want %v after %d", got, len(all)-before, want, c.requests)
			}
			last := all[len(all)-1]
			if (last.Body["response_format"] != nil) != c.schema {
				t.Errorf("response_format is %v", last.Body["response_format"])
			}
			if strings.HasPrefix(c.adapter, "json") != strings.Contains(last.Text, "one JSON object") {
				t.Errorf("the model was asked: %s", last.Text)
			}
			if c.name == "a reply of wrong types is fixed once" &&
				!strings.Contains(last.Text, "Stars must be of type integer, got string") {
				t.Errorf("the reason is not fed back: %s", last.Text)
			}
		})
	}
}

// A reply that does not fit is asked for once more; then it is a problem with the usage in it.
func TestPredictAsksOnceMore(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text("I would rather not"), rig.Text("Answer: now it is"), rig.Text("no"), rig.Text("no"),
		rig.Status(http.StatusBadRequest))
	d := rig.Start(t, m)
	body := map[string]any{"signature": qaSignature(false), "inputs": map[string]any{"question": "q"}}
	got := d.Do(http.StatusOK, http.MethodPost, "/v1/predict", body).Object(t)
	if got["attempts"] != 2.0 || !rig.Equal(map[string]any{"answer": "now it is"}, got["outputs"]) {
		t.Errorf("got %v", got)
	}
	p := d.Do(http.StatusBadGateway, http.MethodPost, "/v1/predict", body).Object(t)
	if p["code"] != "unfitting_reply" || p["usage"].(map[string]any)["model_requests"] != 2.0 {
		t.Errorf("problem: %v", p)
	}
	if p := d.Do(http.StatusBadGateway, http.MethodPost, "/v1/predict", body).Object(t); p["code"] != "provider" {
		t.Errorf("problem: %v", p)
	}
}

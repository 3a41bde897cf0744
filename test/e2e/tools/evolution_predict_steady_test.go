package tools

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Whatever the order of the keys in the request, the model is sent the same bytes.
func TestPredictIsByteStable(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Answer("", "", rig.Text(`{"mood":"good","stars":5}`))
	d := rig.Start(t, m)
	signature := map[string]any{"inputs": []any{map[string]any{"name": "review"}, map[string]any{"name": "meta"},
		map[string]any{"name": "past", "type": "history"}},
		"outputs": []any{map[string]any{"name": "mood"}, map[string]any{"name": "stars", "type": "integer"}}}
	members := []string{`"review":"r"`, `"meta":{"b":1.50,"a":[{"d":1e2,"c":9007199254740993}]}`,
		`"past":{"messages":[{"stars":1,"mood":"bad","meta":{"z":0,"y":-0.0}}]}`}
	var first string
	for range 50 {
		rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		d.Do(http.StatusOK, http.MethodPost, "/v1/predict",
			json.RawMessage(`{"inputs":{`+strings.Join(members, ",")+`},"signature":`+string(rig.MustJSON(signature))+
				`}`))
		if got := string(rig.MustJSON(rig.Messages(t, m, -1))); first == "" {
			first = got
		} else if got != first {
			t.Fatalf("the model was sent\n%s\nand then\n%s", first, got)
		}
	}
	if want := `Meta: {\"a\":[{\"c\":9007199254740993,\"d\":1e2}],\"b\":1.50}`; !strings.Contains(first, want) {
		t.Errorf("the model was sent %s, want %s in it", first, want)
	}
}

// A faulty prediction is refused before the model is asked.
func TestBadPredictions(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	d := rig.Start(t, m)
	typed := map[string]any{"inputs": []any{map[string]any{"name": "n", "type": "integer"}},
		"outputs": []any{map[string]any{"name": "a"}}}
	inputs := map[string]any{"question": "q"}
	for name, body := range map[string]map[string]any{
		"missing input": {"signature": qaSignature(true), "inputs": map[string]any{}},
		"unknown input": {"signature": qaSignature(true),
			"inputs": map[string]any{"question": "q", "other": 1}},
		"wrong type": {"signature": typed, "inputs": map[string]any{"n": 1.5}},
		"signature of nothing": {"signature": map[string]any{"inputs": []any{}, "outputs": []any{}},
			"inputs": map[string]any{}},
		"two histories": {"signature": map[string]any{"inputs": []any{map[string]any{"name": "q"},
			map[string]any{"name": "h", "type": "history"}, map[string]any{"name": "i", "type": "history"}},
			"outputs": []any{map[string]any{"name": "a"}}}, "inputs": map[string]any{"q": 1}},
		"a history as output": {"signature": map[string]any{"inputs": []any{map[string]any{"name": "q"}},
			"outputs": []any{map[string]any{"name": "a", "type": "history"}}}, "inputs": map[string]any{"q": 1}},
		"no signature":    {"inputs": inputs},
		"unknown adapter": {"signature": qaSignature(false), "inputs": inputs, "adapter": "yaml"},
		"a demo without outputs": {"signature": qaSignature(false), "inputs": inputs,
			"demos": []any{map[string]any{"question": "q"}}},
		"a demo of no object": {"signature": qaSignature(false), "inputs": inputs, "demos": []any{1}},
		"too many demos":      {"signature": qaSignature(false), "inputs": inputs, "demos": make([]any, 1001)},
	} {
		r := d.Send(http.MethodPost, "/v1/predict", rig.MustJSON(body), nil)
		if r.Status != http.StatusUnprocessableEntity && (name != "too many demos" ||
			r.Object(t)["code"] != "too_large") {
			t.Errorf("%s: status %d: %s", name, r.Status, r.Body)
		}
		rig.CheckProblem(t, name, r)
	}
	if n := len(m.Requests()); n != 0 {
		t.Errorf("%d bad requests were asked of the model", n)
	}
}

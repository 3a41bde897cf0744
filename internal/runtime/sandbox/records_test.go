package sandbox

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/sampled"
)

// A program finds the session's records in its context, in whichever way it reads it. A program that cannot read them
// causes no query.
func TestRecordsInContext(t *testing.T) {
	p := compilePool(t, nil)
	const key = `"conversation_history"`
	found := map[string]string{
		"by name":     "list := call.Context[" + key + "].([]any)\nreturn len(list), nil",
		"by constant": "const key = " + key + "\nmemory := call.Context\nreturn len(memory[key].([]any)), nil",
		"computed": "keys := []string{\"n\", " + key +
			"}\nlist := call.Context[keys[1]].([]any)\nreturn len(list), nil",
		"ranged": "for k, v := range call.Context {\n\tif k == " + key +
			" {\n\t\treturn len(v.([]any)), nil\n\t}\n}\nreturn -1, nil",
		"closure": "get := func(k string) any { return call.Context[k] }\nreturn len(get(" + key +
			").([]any)), nil",
		"field": "type state struct{ memory map[string]any }\ns := state{call.Context}\nreturn len(s.memory[" +
			key + "].([]any)), nil",
		"encoded": "raw, err := json.Marshal(call.Context)\nif err != nil {\n\treturn nil, err\n}\nvar back map[string][]any\nif err := json.Unmarshal(raw, &back); err != nil {\n\treturn nil, err\n}\nreturn len(back[" + key + "]), nil",
		"alias ranged": "memory := call.Context\nfor k, v := range memory {\n\tif k == " + key +
			" {\n\t\treturn len(v.([]any)), nil\n\t}\n}\nreturn -1, nil",
		"alias copied": "memory := call.Context\nreturn len(maps.Clone(memory)[" + key + "].([]any)), nil",
		"declared": "var memory = call.Context\nget := func(m map[string]any) any { return m[" + key +
			"] }\nreturn len(get(memory).([]any)), nil",
		"pointer":      "memory := call.Context\np := &memory\nreturn len((*p)[" + key + "].([]any)), nil",
		"call encoded": "raw, err := json.Marshal(call)\nif err != nil {\n\treturn nil, err\n}\nvar back struct{ Context map[string][]any }\nif err := json.Unmarshal(raw, &back); err != nil {\n\treturn nil, err\n}\nreturn len(back.Context[" + key + "]), nil",
		"call printed": "return strings.Count(fmt.Sprint(*call), \"call_id\"), nil",
		"call kept":    "all := []any{call}\nreturn strings.Count(fmt.Sprintf(\"%+v\", all[0]), \"call_id\"), nil",
		"copied":       "return len(maps.Clone(call.Context)[" + key + "].([]any)), nil",
	}
	imports := map[string][]string{"encoded": {"encoding/json"}, "call encoded": {"encoding/json"},
		"call printed": {"fmt", "strings"}, "call kept": {"fmt", "strings"}, "copied": {"maps"},
		"alias copied": {"maps"}}
	for name, body := range sampled.Map(found, 4) {
		h := &fakeHost{history: `[{"call_id":"a"},{"call_id":"b"}]`}
		req := request(program(body, imports[name]...))
		req.Context = map[string]json.RawMessage{report.ContextHistory: json_(`"a client's"`)}
		if name == "encoded" || name == "call encoded" {
			req.Context = nil
		}
		if got := p.Run(t.Context(), req, h); string(got.Value) != "2" {
			t.Errorf("%s: %s, %+v", name, got.Value, got.Failure)
		}
	}
	for name, body := range map[string]string{
		"other key": "call.Context[\"n\"] = call.Context[\"m\"]\nreturn 2, nil",
		"alias":     "memory := call.Context\nmemory[\"n\"] = memory[\"m\"]\ndelete(memory, \"k\")\nreturn 2, nil",
		"no use":    "return len(call.Args), nil",
		"handed on": "f := func(c *recurgent.Call) int { return len((*c).Args) }\nreturn f(call), nil",
	} {
		h := &fakeHost{history: `[]`}
		h.onHistory = func(context.Context) { t.Errorf("%s: the history was read", name) }
		if got := p.Run(t.Context(), request(program(body), 1, 2), h); string(got.Value) != "2" {
			t.Errorf("%s: %s, %+v", name, got.Value, got.Failure)
		}
	}
}

// A recorded run that is older than the records question replays as it was. A program that names the records is not
// compared with one that did not read them.
func TestRecordsOfOldJournals(t *testing.T) {
	p := compilePool(t, nil)
	old := Recording{Request: request(program(
		"key := call.Arg(0, \"key\").(string)\n_, has := call.Context[key]\nreturn has, nil"), "n"),
		Journal: json_(`{"v":1,"context":{"n":1}}`), Value: json_("true")}
	if cmp, err := Replay(t.Context(), p, old, &refusingHost{}); err != nil || !cmp.Equal {
		t.Errorf("a computed key: %+v, %v", cmp, err)
	}
	old.Request = request(program("return call.Context[\"conversation_history\"], nil"))
	if cmp, err := Replay(t.Context(), p, old, &refusingHost{}); err != nil || cmp.Diverged == "" {
		t.Errorf("a named key: %+v, %v", cmp, err)
	}
}

package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime"
)

// Both formats list the same methods, in pages.
func TestFunctionTools(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	got := g.ask("GET", "/v1/tools?format=openai&limit=1", "")
	if want := `{"tools":[{"type":"function","function":{"name":"calculator__add","description":"calculator.add. Described by a language model, parameters included: Add two numbers.","parameters":` +
		`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}}}],"next_cursor":"calculator__add"}`; string(got.body) != want {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	got = g.ask("GET", "/v1/tools?format=openai&after=calculator__add", "")
	if !strings.Contains(string(got.body), `"free__form"`) || !strings.HasSuffix(string(got.body), `"next_cursor":null}`) {
		t.Errorf("the second page: %s", got.body)
	}
	var list struct {
		Tools []struct {
			Name         string         `json:"name"`
			InputSchema  map[string]any `json:"inputSchema"`
			OutputSchema map[string]any `json:"outputSchema"`
			Annotations  map[string]any `json:"annotations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(g.ask("GET", "/v1/tools?format=mcp", "").body, &list); err != nil || len(list.Tools) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	add := list.Tools[0]
	if add.Name != "calculator__add" || add.InputSchema["type"] != "object" || add.OutputSchema["type"] != "object" || add.Annotations["readOnlyHint"] != false {
		t.Errorf("add: %+v", add)
	}
}

// What a function call makes of its body.
func TestFunctionCalls(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	g.fake.result = runtime.CallResult{Body: mustJSON(t, reply1("calculator", "add")), OK: true}
	for _, c := range []struct {
		name, body string
		status     int
		args       int
		kwargs     string
		detail     string
	}{
		{"calculator__add", `{"arguments":{"a":2,"b":3}}`, 200, 0, `{"a":2,"b":3}`, ""},
		{"calculator__add", `{"arguments":"{\"a\": 9007199254740993, \"b\": 0}","session_id":null}`, 200, 0, `{"a": 9007199254740993, "b": 0}`, ""},
		{"free__form", `{}`, 200, 0, "", ""},
		{"free__form", `{"arguments":""}`, 200, 0, "", ""},
		{"calculator__add", `{"arguments":{"b":3}}`, 422, 0, "", "/arguments/a is required"},
		{"calculator__add", `{"arguments":{"args":[2]}}`, 422, 0, "", "/arguments/b is required"},
		{"calculator__add", `{"arguments":{"args":[2],"kwargs":{"b":3}}}`, 200, 1, `{"b":3}`, ""},
		{"calculator__add", `{}`, 422, 0, "", "/arguments/a is required"},
		{"free__form", `{"arguments":{"args":[1,2],"kwargs":{"c":3}}}`, 200, 2, `{"c":3}`, ""},
		{"free__form", `{"arguments":{"args":null}}`, 200, 0, "", ""},
		{"free__form", `{"arguments":{"a":1,"args":[2]}}`, 200, 0, `{"a":1,"args":[2]}`, ""},
		{"calculator__add", `{"arguments":{"args":[2,3]}}`, 200, 2, "", ""},
		{"free__form", `{"arguments":{"args":{}}}`, 422, 0, "", "/arguments/args"},
		{"free__form", `{"arguments":{"kwargs":[]}}`, 422, 0, "", "/arguments/kwargs"},
		{"calculator__add", `{"arguments":[2,3]}`, 422, 0, "", "must be an object, not array"},
		{"calculator__add", `{"arguments":7}`, 422, 0, "", "must be an object, not number"},
		{"calculator__add", `{"arguments":"[1]"}`, 422, 0, "", "as text must be a JSON object"},
		{"calculator__add", `{"arguments":"{\"a\":1,\"a\":2}"}`, 422, 0, "", "as text must be a JSON object"},
		{"calculator__add", `{"arguments":"{"}`, 422, 0, "", "as text must be a JSON object"},
		{"calculator__add", `{"args":[1]}`, 422, 0, "", "/args"},
		{"calculator__add", `{"session_id":"../etc"}`, 422, 0, "", "/session_id"},
		{"calculator__div", `{}`, 404, 0, "", "unknown tool"},
		{"calculator__add", `[]`, 422, 0, "", "must be an object"},
	} {
		g.fake.call = runtime.CallRequest{}
		got := g.ask("POST", "/v1/functions/"+c.name, c.body)
		if got.status != c.status || !strings.Contains(string(got.body), c.detail) {
			t.Errorf("%s %s: %d %s", c.name, c.body, got.status, got.body)
		}
		q := g.fake.call
		if c.status != 200 {
			if q.Method != "" {
				t.Errorf("%s %s was called", c.name, c.body)
			}
			continue
		}
		if len(q.Args) != c.args || string(q.Kwargs) != c.kwargs || q.Role+"__"+q.Method != c.name {
			t.Errorf("%s %s: %+v", c.name, c.body, q)
		}
		if !q.Ephemeral || !ids.Ephemeral(q.SessionID) {
			t.Errorf("%s %s: session %q, ephemeral %v", c.name, c.body, q.SessionID, q.Ephemeral)
		}
	}
	g.ask("POST", "/v1/functions/calculator__add", `{"arguments":{"a":1,"b":2},"session_id":"`+knownSession+`"}`, "Idempotency-Key: k")
	if q := g.fake.call; q.Ephemeral || q.SessionID != knownSession || q.IdempotencyKey != "local\nfunction calculator__add\nk" || q.BodyHash == "" {
		t.Errorf("in a session: %+v", q)
	}
}

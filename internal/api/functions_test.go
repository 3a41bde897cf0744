package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime"
)

// Both formats list the same methods, page by page.
func TestFunctionTools(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	names, after := "", ""
	for range 5 {
		got := g.ask("GET", "/v1/tools?format=openai&limit=1&after="+after, "")
		var page struct {
			Tools      []struct{ Function struct{ Name string } }
			NextCursor string `json:"next_cursor"`
		}
		if err := json.Unmarshal(got.body, &page); err != nil || len(page.Tools) != 1 {
			t.Fatalf("after %q: %s, %v", after, got.body, err)
		}
		names += page.Tools[0].Function.Name + " "
		if after = page.NextCursor; after == "" {
			break
		}
	}
	if names != "call_method find_tools calculator__add free__form " {
		t.Errorf("in pages: %s", names)
	}
	got := g.ask("GET", "/v1/tools?format=openai&limit=1&after=find_tools", "")
	if want := `{"tools":[{"type":"function","function":{"name":"calculator__add","description":"calculator.add. Described by a language model, parameters included: Add two numbers.","parameters":` +
		`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}}}],"next_cursor":"calculator__add"}`; string(got.body) != want {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	got = g.ask("GET", "/v1/tools?format=openai&after=calculator__add", "")
	if !strings.Contains(string(got.body), `"free__form"`) || !strings.HasSuffix(string(got.body),
		`"next_cursor":null}`) {
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
	if add.Name != "calculator__add" || add.InputSchema["type"] != "object" || add.OutputSchema["type"] != "object" ||
		add.Annotations["readOnlyHint"] != false {
		t.Errorf("add: %+v", add)
	}
}

// Each format has the members that its model API requires. The strict schemas require all properties.
func TestFormatsOfFunctionTools(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	const description = `"description":"calculator.add. Described by a language model, parameters included: Add two numbers."`
	const plain = `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`
	const held = `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`
	for query, want := range map[string]string{
		"openai&strict=true": `{"type":"function","function":{"name":"calculator__add",` + description +
			`,"parameters":` + held + `,"strict":true}}`,
		"openai&strict=false": `{"type":"function","function":{"name":"calculator__add",` + description +
			`,"parameters":` + plain + `}}`,
		"openai-responses": `{"type":"function","name":"calculator__add",` + description +
			`,"parameters":` + plain + `,"strict":false}`,
		"openai-responses&strict=true": `{"type":"function","name":"calculator__add",` + description +
			`,"parameters":` + held + `,"strict":true}`,
		"anthropic": `{"name":"calculator__add",` + description + `,"input_schema":` + plain + `}`,
	} {
		got := g.ask("GET", "/v1/tools?limit=1&after=find_tools&format="+query, "")
		if want = `{"tools":[` + want + `],"next_cursor":"calculator__add"}`; string(got.body) != want {
			t.Errorf("%s\ngot  %s\nwant %s", query, got.body, want)
		}
	}
	// Gemini takes all declarations as one tool, and no object without properties
	gemini := g.ask("GET", "/v1/tools?format=gemini&limit=3", "")
	if list, add := string(gemini.body), `{"name":"calculator__add",`+description+`,"parameters":`+plain+
		`}]}],"next_cursor":"calculator__add"}`; !strings.HasPrefix(list,
		`{"tools":[{"functionDeclarations":[{"name":"call_method",`) || !strings.HasSuffix(list, add) ||
		!strings.Contains(list, `"kwargs":{"type":"string","description":"The arguments by name. As JSON text."}`) {
		t.Errorf("gemini: %s", list)
	}
	if got := g.ask("GET", "/v1/tools?format=gemini&after=zzz",
		""); string(got.body) != `{"tools":[],"next_cursor":null}` {
		t.Errorf("an empty page: %s", got.body)
	}
	got := g.ask("GET", "/v1/tools?format=openai&strict=true&after=calculator__add", "")
	if want := `{"args":{"type":["array","null"],"description":"The arguments by position. null: not given.","items":{"type":"string","description":"As JSON text."}},` +
		`"kwargs":{"type":["string","null"],"description":"The arguments by name. As JSON text. null: not given."}}`; !strings.Contains(string(got.body), want) {
		t.Errorf("the free form: %s", got.body)
	}
	for _, query := range []string{"strict=true", "format=mcp&strict=true", "format=anthropic&strict=true",
		"format=openai&strict=1"} {
		if got := g.ask("GET", "/v1/tools?"+query, ""); got.status != 422 && got.status != 400 {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

// call_method and find_tools are function tools.
func TestFunctionToolsThatAreNoMethods(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	g.fake.result = runtime.CallResult{Body: mustJSON(t, reply1("shop", "sell")), OK: true}
	for _, body := range []string{`{"arguments":{"role":"shop","method":"sell","args":[1],"kwargs":{"n":2}}}`,
		`{"arguments":{"role":"shop","method":"sell","args":["1"],"kwargs":"{\"n\":2}"},"strict":true}`} {
		g.fake.call = runtime.CallRequest{}
		got := g.ask("POST", "/v1/functions/call_method", body)
		if q := g.fake.call; got.status != 200 || q.Role != "shop" || q.Method != "sell" || len(q.Args) != 1 ||
			string(q.Args[0]) != "1" || string(q.Kwargs) != `{"n":2}` || !q.Ephemeral {
			t.Errorf("%s: %d %s, %+v", body, got.status, got.body, q)
		}
	}
	for body, want := range map[string]string{`{}`: "/arguments/role is required",
		`{"arguments":{"role":"shop"}}`:                     "/arguments/method is required",
		`{"arguments":{"role":"a/b","method":"m"}}`:         "/arguments/role",
		`{"arguments":{"role":"a","method":"m","x":1}}`:     "/arguments/x",
		`{"arguments":{"role":"a","method":"m","args":{}}}`: "/arguments/args"} {
		if got := g.ask("POST", "/v1/functions/call_method",
			body); got.status != 422 || !strings.Contains(string(got.body), want) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for _, body := range []string{`{"arguments":{"query":"add numbers","limit":1}}`,
		`{"arguments":"{\"query\":\"add\",\"limit\":null}"}`} {
		got := g.ask("POST", "/v1/functions/find_tools", body)
		if want := `{"outcome":{"ok":true,"status":"ok","value":{"tools":[{"name":"calculator__add","role":"calculator","method":"add","description":"calculator.add. `; got.status != 200 || !strings.HasPrefix(string(got.body), want) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for _, body := range []string{`{"arguments":{"query":7}}`, `{"arguments":{"query":"x","limit":51}}`,
		`{"arguments":{"words":"x"}}`} {
		if got := g.ask("POST", "/v1/functions/find_tools", body); got.status != 422 {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

// The body of a function call determines the call.
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
		{"calculator__add", `{"arguments":"{\"a\": 9007199254740993, \"b\": 0}","session_id":null}`, 200, 0,
			`{"a": 9007199254740993, "b": 0}`, ""},
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
		{"free__form", `{"arguments":{"args":["1","[2]"],"kwargs":null},"strict":true}`, 200, 2, "", ""},
		{"free__form", `{"arguments":{"args":["x y"],"kwargs":null},"strict":true}`, 422, 0, "",
			"/arguments/args/0 must be JSON text"},
		{"free__form", `{"arguments":{"args":"[1,2]"}}`, 200, 2, "", ""},
		{"calculator__add", `{"arguments":{},"strict":7}`, 422, 0, "", "/strict"},
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
	g.ask("POST", "/v1/functions/calculator__add", `{"arguments":{"a":1,"b":2},"session_id":"`+knownSession+`"}`,
		"Idempotency-Key: k")
	if q := g.fake.call; q.Ephemeral || q.SessionID != knownSession ||
		q.IdempotencyKey != "local\nfunction calculator__add\nk" || q.BodyHash == "" {
		t.Errorf("in a session: %+v", q)
	}
}

package daemon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A forged method is a function tool at once, under a name that models accept; it runs in a session of its own, which
// is erased in time, or in one given.
func TestFunctionTools(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "Müller & Söhne.add up!": {rig.ProgAdd}})
	d, ahead := rig.StartAhead(t, m)
	s := d.Session("calculator")
	d.WantValue(d.Call(s, "add", 2, 3), 5, "generated")
	d.WantValue(d.Invoke(s, map[string]any{"role": "Müller & Söhne", "method": "add up!", "args": []any{1, 2}}), 3,
		"generated")
	tools := d.Get("/v1/tools?format=openai&after=find_tools")["tools"].([]any)
	if len(tools) != 2 {
		t.Fatalf("tools: %v", tools)
	}
	names := map[string]map[string]any{}
	for _, tool := range tools {
		f := tool.(map[string]any)["function"].(map[string]any)
		names[f["name"].(string)] = f
	}
	add := names["calculator__add"]
	if add == nil || add["parameters"].(map[string]any)["type"] != "object" {
		t.Fatalf("tools: %v", names)
	}
	delete(names, "calculator__add")
	for name := range names {
		if !strings.HasPrefix(name, "M_ller___S_hne__add_up__") {
			t.Errorf("the other name: %s", name)
		}
		d.WantValue(function(d, name, map[string]any{"arguments": arguments(names[name], 4, 5)}), 9, "persisted")
	}

	own := function(d, "calculator__add", map[string]any{"arguments": arguments(add, 20, 22)})
	d.WantValue(own, 42, "persisted")
	if own.SessionID == s || d.Get("/v1/sessions/" + own.SessionID)["ephemeral"] != true {
		t.Errorf("the session of its own: %s", own.SessionID)
	}
	in := function(d, "calculator__add", map[string]any{"arguments": string(rig.Encode(t, arguments(add, 1, 1))),
		"session_id": s})
	d.WantValue(in, 2, "persisted")
	if in.SessionID != s || len(d.History(s)) != 3 {
		t.Errorf("in the session: %s, history %d", in.SessionID, len(d.History(s)))
	}

	made := function(d, "call_method",
		map[string]any{"arguments": map[string]any{"role": "calculator", "method": "add", "args": []any{"2", "3"},
			"kwargs": nil}, "strict": true, "session_id": s})
	d.WantValue(made, 5, "persisted")
	held := d.Get("/v1/tools?format=openai&strict=true")["tools"].([]any)
	if first := held[0].(map[string]any)["function"].(map[string]any); len(held) != 4 || first["name"] != "call_method" || first["strict"] != true {
		t.Errorf("the strict tools: %v", held)
	}

	body := rig.Encode(t, map[string]any{"arguments": arguments(add, 2, 2)})
	once := d.Send(http.MethodPost, "/v1/functions/calculator__add", body, map[string]string{"Idempotency-Key": "k1"})
	again := d.Send(http.MethodPost, "/v1/functions/calculator__add", body, map[string]string{"Idempotency-Key": "k1"})
	if string(once.Body) != string(again.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("not replayed: %s %s", once.Body, again.Body)
	}
	later := d.Send(http.MethodPost, "/v1/functions/calculator__add", body,
		map[string]string{"Prefer": "respond-async"})
	if later.Status != http.StatusAccepted || !strings.HasPrefix(later.Object(t)["session_id"].(string), "sess_") {
		t.Errorf("respond-async: %d %s", later.Status, later.Body)
	}

	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/calculator/methods/add/quarantine",
		map[string]any{"reason": "wrong"})
	gone := d.Send(http.MethodPost, "/v1/functions/calculator__add", body, nil)
	if gone.Status != http.StatusNotFound || !strings.Contains(string(gone.Body), "quarantined") {
		t.Errorf("quarantined: %d %s", gone.Status, gone.Body)
	}
	rig.CheckProblem(t, "quarantined", gone)
	if left := d.Get("/v1/tools?format=mcp")["tools"].([]any); len(left) != 1 {
		t.Errorf("tools while one is quarantined: %v", left)
	}

	ahead("25h")
	rig.Until(t, "the ephemeral sessions are erased", func() bool {
		return d.Send(http.MethodGet, "/v1/sessions/"+own.SessionID, nil, nil).Status == http.StatusNotFound
	})
	if r := d.Send(http.MethodGet, "/v1/sessions/"+s, nil, nil); r.Status != http.StatusOK {
		t.Errorf("the client's own session: %d", r.Status)
	}
}

// function runs a function tool.
func function(d *rig.Daemon, name string, body map[string]any) (got rig.Reply) {
	d.T.Helper()
	r := d.Do(http.StatusOK, http.MethodPost, "/v1/functions/"+name, body)
	r.Into(d.T, &got)
	return got
}

// arguments are a and b as the tool's schema takes them.
func arguments(f map[string]any, a, b int) map[string]any {
	properties, _ := f["parameters"].(map[string]any)["properties"].(map[string]any)
	if properties["args"] != nil {
		return map[string]any{"args": []any{a, b}}
	}
	return map[string]any{"a": a, "b": b}
}

package tools

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func manyMethods(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`"m%d":{}`, i)
	}
	return out
}

// A badRequest is one that is refused with the status; 0 is any of 4xx.
type badRequest struct {
	name, method, path, body string
	header                   map[string]string
	want                     int
}

func badRequests(s string) []badRequest {
	calls, context, merge := "/v1/sessions/"+s+"/calls", "/v1/sessions/"+s+"/context",
		map[string]string{"Content-Type": "application/merge-patch+json"}
	big := `{"method":"add","args":["` + strings.Repeat("x", 9<<20) + `"]}`
	deep := `{"method":"add","args":[` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `]}`
	return []badRequest{
		{"no JSON", "POST", calls, `{"method":`, nil, 400},
		{"empty body", "POST", calls, ``, nil, 400},
		{"two values", "POST", calls, `{"method":"add"} {}`, nil, 400},
		{"invalid UTF-8", "POST", calls, "{\"method\":\"\xff\"}", nil, 400},
		{"key twice", "POST", calls, `{"method":"add","method":"sub"}`, nil, 400},
		{"too deep", "POST", calls, deep, nil, 0},
		{"too big", "POST", calls, big, nil, 413},
		{"wrong media type", "POST", calls, `{"method":"add"}`, map[string]string{"Content-Type": "text/plain"}, 415},
		{"unknown field", "POST", calls, `{"method":"add","arguments":[]}`, nil, 422},
		{"wrong case", "POST", calls, `{"Method":"add"}`, nil, 422},
		{"not an object", "POST", calls, `[1]`, nil, 422},
		{"no method", "POST", calls, `{"args":[]}`, nil, 422},
		{"method is a number", "POST", calls, `{"method":5}`, nil, 422},
		{"args is an object", "POST", calls, `{"method":"add","args":{}}`, nil, 422},
		{"kwargs is an array", "POST", calls, `{"method":"add","kwargs":[]}`, nil, 422},
		{"contract is text", "POST", calls, `{"method":"add","contract":"x"}`, nil, 422},
		{"contract is too large", "POST", calls, `{"method":"add","contract":{"purpose":"` + strings.Repeat("x",
			300<<10) + `"}}`, nil, 413},
		{"a tool's contract is too large", "PUT", "/v1/tools/t",
			`{"methods":{"m":{"acceptance":"` + strings.Repeat("x", 300<<10) + `"}}}`, nil, 413},
		{"too many methods have contracts", "PUT", "/v1/tools/t",
			`{"methods":{` + strings.Join(manyMethods(1001), ",") + `}}`, nil, 413},
		{"timeout is negative", "POST", calls, `{"method":"add","timeout_ms":-1}`, nil, 422},
		{"empty method", "POST", calls, `{"method":""}`, nil, 422},
		{"method with slash", "POST", calls, `{"method":"a/b"}`, nil, 422},
		{"method with backslash", "POST", calls, `{"method":"a\\b"}`, nil, 422},
		{"method of dots", "POST", calls, `{"method":".."}`, nil, 422},
		{"method with control", "POST", calls, `{"method":"a\u0000b"}`, nil, 422},
		{"method with newline", "POST", calls, `{"method":"a\nb"}`, nil, 422},
		{"long method", "POST", calls, `{"method":"` + strings.Repeat("m", 201) + `"}`, nil, 422},
		{"role of dots", "POST", calls, `{"method":"add","role":".."}`, nil, 422},
		{"role with slash", "POST", calls, `{"method":"add","role":"../../etc"}`, nil, 422},
		{"setter without value", "POST", calls, `{"method":"x=","args":[]}`, nil, 422},
		{"setter with two", "POST", calls, `{"method":"x=","args":[1,2]}`, nil, 422},
		{"unknown session", "POST", "/v1/sessions/none/calls", `{"method":"add"}`, nil, 404},
		{"unknown session", "GET", "/v1/sessions/none", ``, nil, 404},
		{"unknown session", "GET", "/v1/sessions/..%2F..%2Fetc", ``, nil, 404},
		{"unknown session", "DELETE", "/v1/sessions/none", ``, nil, 404},
		{"unknown session", "GET", "/v1/sessions/none/history", ``, nil, 404},
		{"unknown session", "GET", "/v1/sessions/none/context", ``, nil, 404},
		{"unknown call", "GET", "/v1/calls/none", ``, nil, 404},
		{"unknown tool", "GET", "/v1/tools/none", ``, nil, 404},
		{"unknown artifact", "GET", "/v1/tools/calculator/methods/none", ``, nil, 404},
		{"unknown path", "GET", "/v1/nothing", ``, nil, 404},
		{"wrong verb", "PUT", calls, `{}`, nil, 405},
		{"session without role", "POST", "/v1/sessions", `{}`, nil, 422},
		{"session of dots", "POST", "/v1/sessions", `{"role":".."}`, nil, 422},
		{"session with control", "POST", "/v1/sessions", `{"role":"a\u0007"}`, nil, 422},
		{"session with unknown field", "POST", "/v1/sessions", `{"role":"a","rolle":"b"}`, nil, 422},
		{"session context is an array", "POST", "/v1/sessions", `{"role":"a","context":[]}`, nil, 422},
		{"context patch is no object", "PATCH", context, `[1]`, merge, 422},
		{"history limit", "GET", "/v1/sessions/" + s + "/history?limit=0", ``, nil, 422},
		{"history limit", "GET", "/v1/sessions/" + s + "/history?limit=1001", ``, nil, 422},
		{"history limit", "GET", "/v1/sessions/" + s + "/history?limit=many", ``, nil, 422},
		{"history order", "GET", "/v1/sessions/" + s + "/history?order=up", ``, nil, 422},
		{"unknown policy", "PATCH", "/v1/policy", `{"repair":true}`, merge, 422},
		{"policy out of range", "PATCH", "/v1/policy", `{"max_generation_attempts":0}`, merge, 422},
		{"tool of dots", "PUT", "/v1/tools/..%2f", `{"purpose":"x"}`, nil, 0},
	}
}

// Bad input is a problem detail with a code and a hint, costs no model request and writes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	for _, c := range badRequests(s) {
		var body []byte
		if c.body != "" || c.method == "POST" {
			body = []byte(c.body)
		}
		r := d.Send(c.method, c.path, body, c.header)
		if c.want != 0 && r.Status != c.want && !(c.want == 422 && r.Status == 400) {
			t.Errorf("%s: %s %s: status %d, want %d: %.200s", c.name, c.method, c.path, r.Status, c.want, r.Body)
			continue
		}
		if r.Status < 400 || r.Status >= 500 {
			t.Errorf("%s: %s %s: status %d", c.name, c.method, c.path, r.Status)
			continue
		}
		rig.CheckProblem(t, c.name, r)
	}
	if n := len(m.Questions()); n != 0 {
		t.Errorf("bad input cost %d model requests", n)
	}
	if n := len(d.History(s)); n != 0 {
		t.Errorf("bad input left %d records", n)
	}
	if n := len(d.List("/v1/calls")) + len(d.List("/v1/tools")); n != 0 {
		t.Errorf("bad input left %d log entries or tools", n)
	}
	if n := len(d.List("/v1/sessions")); n != 1 {
		t.Errorf("%d sessions, want the one", n)
	}
	d.WantValue(d.Call(s, "add", 1, 2), 3, "generated")
}

// Names are free text: what is allowed round-trips through call, artifact and registry, and stays below
// the data directory.
func TestNamesAreFreeText(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.ProgAdd)
	d := rig.Start(t, m)
	names := []string{"movie finder", "größe?", "日本", "a.b", "...", "CON", "x!", "%2e%2e", "<b>&amp;", "-rf", "A", "a",
		strings.Repeat("é", 200)}
	for _, role := range names {
		s := d.Session(role)
		for _, method := range []string{"add", role} {
			d.WantValue(d.Invoke(s, map[string]any{"method": method, "args": []any{1, 2}}), 3, "generated")
			d.WantValue(d.Invoke(s, map[string]any{"method": method, "args": []any{3, 4}}), 7, "persisted")
			a := d.Get("/v1/tools/" + url.PathEscape(role) + "/methods/" + url.PathEscape(method))
			if a["role"] != role || a["method_name"] != method {
				t.Errorf("artifact of %q.%q: got %v.%v", role, method, a["role"], a["method_name"])
			}
		}
	}
	d.Restart()
	for _, role := range names {
		d.WantValue(d.Call(d.Session(role), "add", 5, 6), 11, "persisted")
	}
}

// Sessions are made, listed, read and deleted, and survive a restart.
func TestSessions(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}))
	body := map[string]any{"role": "calculator", "model": "other-model", "debug": true,
		"metadata": map[string]any{"team": "x"}, "context": map[string]any{"a": 1},
		"contract": map[string]any{"purpose": "p"}}
	created := d.Do(http.StatusCreated, http.MethodPost, "/v1/sessions", body).Object(t)
	id := created["id"].(string)
	other := d.Session("other")
	got := d.Get("/v1/sessions/" + id)
	for k, want := range map[string]any{"role": "calculator", "model": "other-model", "debug": true,
		"metadata": body["metadata"], "history_size": 0.0} {
		if !rig.Equal(want, got[k]) || !rig.Equal(want, created[k]) {
			t.Errorf("%s: created %v, read %v, want %v", k, created[k], got[k], want)
		}
	}
	d.Call(id, "add", 1, 2)
	if n := d.Get("/v1/sessions/" + id)["history_size"]; n != 1.0 {
		t.Errorf("history_size %v after a call", n)
	}
	d.Restart()
	if n := len(d.List("/v1/sessions")); n != 2 {
		t.Errorf("%d sessions after a restart, want 2", n)
	}
	want := maps.Clone(body["context"].(map[string]any))
	c := d.Get("/v1/sessions/" + id + "/context")
	want["conversation_history"] = c["conversation_history"]
	if records, _ := c["conversation_history"].([]any); len(records) != 1 || !rig.Equal(want, c) {
		t.Errorf("context after a restart: %v", c)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+id, nil)
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/sessions/"+id, nil)
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/sessions/"+id+"/history", nil)
	if l := d.List("/v1/sessions"); len(l) != 1 || l[0]["id"] != other {
		t.Errorf("sessions after a deletion: %v", l)
	}
	d.WantValue(d.Call(d.Session("calculator"), "add", 2, 2), 4, "persisted") // the artifact is not the session's
}

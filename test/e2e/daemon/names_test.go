package daemon

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A name in two forms of Unicode, as machines of different makers type it.
const (
	composed   = "caf\u00e9"
	decomposed = "cafe\u0301"
)

// Names that look the same are the same, whichever way they come in: in paths, bodies, keywords, policies, connections,
// on the command line, from agents, and from programs.
func TestNamesHaveOneForm(t *testing.T) {
	t.Parallel()
	greet := rig.Program("\treturn call.Kwargs[\"" + composed + "\"], nil")
	calls := rig.Program("\tout := call.Tool(\"" + decomposed + "\").CallWith(\"" + decomposed +
		"\", nil, map[string]any{\"" + decomposed + "\": 5})\n\treturn out.Value, nil")
	m := rig.NewModel(t, rig.Script{composed + "." + composed: {greet}, "caller.call": {calls}})
	d := rig.Start(t, m)
	s := d.Session(decomposed)
	if got := d.Get("/v1/sessions/" + s); got["role"] != composed {
		t.Errorf("the session's role is %+q", got["role"])
	}
	got := d.CallWith(s, decomposed, object{decomposed: 1})
	d.WantValue(got, 1.0, "generated")
	if log := d.LogOf(got); log["role"] != composed || log["method"] != composed {
		t.Errorf("the log has %+q.%+q", log["role"], log["method"])
	}
	d.WantValue(d.CallWith(d.Session(composed), composed, object{composed: 2}), 2.0, "persisted")
	if out := d.Expect(0, []string{"3"}, "call", decomposed, decomposed, "--kwargs",
		`{"`+decomposed+`": 3}`); strings.Contains(out, decomposed) {
		t.Errorf("the command printed %+q", out)
	}
	agent := overHTTP(t, d, newest)
	agent.value(agent.call("call_method", object{"role": decomposed, "method": decomposed,
		"kwargs": object{decomposed: 4}}, nil), 4.0)
	d.WantValue(d.Call(d.Session("caller"), "call"), 5.0, "generated")
	path := func(name string) string { return "/v1/tools/" + url.PathEscape(name) }
	if a := d.Get(path(decomposed) + "/methods/" + url.PathEscape(decomposed)); a["role"] != composed {
		t.Errorf("the method is of %+q", a["role"])
	}
	d.Do(http.StatusOK, http.MethodPut, path(decomposed), object{"purpose": "greets"})
	d.Policy(object{"artifact_read_roles": []any{decomposed}})
	if p := d.Get("/v1/policy"); string(rig.MustJSON(p["artifact_read_roles"])) != string(rig.MustJSON(
		[]any{composed})) {
		t.Errorf("the policy has %+q", p["artifact_read_roles"])
	}
	names := 0
	for _, tool := range d.List("/v1/tools") {
		if role, _ := tool["role"].(string); strings.HasPrefix(role, "caf") {
			names++
		}
	}
	if names != 1 || len(m.Requests()) != 2 {
		t.Errorf("%d roles, %d requests to the model; want one role, and a request for each method", names,
			len(m.Requests()))
	}
	namesAreFound(t, d, s, agent)
}

// namesAreFound looks for what bears the composed name by the decomposed one, in each list that a name narrows.
func namesAreFound(t *testing.T, d *rig.Daemon, session string, agent *mcpClient) {
	t.Helper()
	for _, list := range []string{"/v1/calls?role=", "/v1/calls?method=", "/v1/tools?q=",
		"/v1/sessions/" + session + "/history?method="} {
		if found := d.List(list +
			url.QueryEscape(decomposed)); len(found) == 0 || len(found) != len(d.List(list+url.QueryEscape(composed))) {
			t.Errorf("%s finds %v", list, found)
		}
	}
	if r := agent.call("find_tools", object{"query": decomposed},
		nil); r.IsError || !strings.Contains(r.text, composed) {
		t.Errorf("find_tools: %s", r.text)
	}
	d.Expect(0, []string{composed}, "tools", "list", "--query", decomposed)
}

// White space at the ends of a name is refused wherever it comes from, in words that say so.
func TestNamesWithOuterSpace(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, nil))
	s := d.Session("calculator")
	const says = "begin or end with white space"
	for _, name := range []string{" add", "add\u00a0", "add\u3000", "add\u2003"} {
		for _, c := range []struct {
			method, path string
			body         object
		}{
			{http.MethodPost, "/v1/sessions", object{"role": name}},
			{http.MethodPost, "/v1/sessions/" + s + "/calls", object{"method": name}},
			{http.MethodPost, "/v1/sessions/" + s + "/calls", object{"method": "add", "kwargs": object{name: 1}}},
			{http.MethodPut, "/v1/tools/" + url.PathEscape(name), object{"purpose": "greets"}},
		} {
			r := d.Send(c.method, c.path, rig.MustJSON(c.body), map[string]string{"Content-Type": "application/json"})
			if r.Status != http.StatusBadRequest && r.Status != http.StatusUnprocessableEntity ||
				!strings.Contains(string(r.Body), says) {
				t.Errorf("%s %s with %+q: %d %s", c.method, c.path, name, r.Status, r.Body)
			}
		}
	}
	_, stderr, code := d.Client("call", "calculator ", "add", "1")
	if code == 0 || !strings.Contains(stderr, says) {
		t.Errorf("the command: %d, %s", code, stderr)
	}
	agent := overHTTP(t, d, newest)
	if r := agent.call("call_method", object{"role": "calculator ", "method": "add"},
		nil); !r.IsError || !strings.Contains(r.text, says) {
		t.Errorf("an agent: %v, %s", r.IsError, r.text)
	}
	twice := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls",
		rig.MustJSON(object{"method": "add", "kwargs": object{composed: 1, decomposed: 2}}),
		map[string]string{"Content-Type": "application/json"})
	if twice.Status != http.StatusBadRequest && twice.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(string(twice.Body), "twice") {
		t.Errorf("one keyword in two forms: %d %s", twice.Status, twice.Body)
	}
}

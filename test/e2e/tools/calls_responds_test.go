package tools

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Whether a method responds is what its next call shows: whether a stored program answers it without a request to the
// model.
func TestRespondsAsTheNextCallDoes(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.Program("\treturn 1, nil")}, "r.key": {rig.Program("\treturn 1, nil")},
		"r.ask": {rig.Program("\treturn 1, nil")}})
	d := rig.Start(t, m)
	s := d.Session("r", object{"context": object{"key": 1}})
	other := d.Session("r", object{"contract": object{"deliverable": object{"type": "integer"}}})
	tool := func(act string, body object) {
		d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/"+act, body)
	}
	check := func(state, session, method string, want bool, via any) {
		t.Helper()
		got := d.Get("/v1/sessions/" + session + "/methods/" + method)
		if got["responds"] != want || got["via"] != via {
			t.Errorf("%s: %v, want %v via %v", state, got, want, via)
		}
		next := d.Call(session, method)
		if warm := next.Usage.ModelRequests == 0 && next.Program.Source == "persisted"; warm != want {
			t.Errorf("%s: the next call took %d requests and came from a %q program: %+v", state,
				next.Usage.ModelRequests, next.Program.Source, next.Program.Selection)
		}
	}
	check("no program", s, "m", false, nil)
	check("a program", s, "m", true, "artifact")
	check("a context key without a program", s, "key", false, "context")
	check("a context key with a program", s, "key", true, "artifact")
	check("a method whose programs answer one question", s, "ask", false, nil)
	for _, off := range []object{{"artifact_read_enabled": false}, {"artifact_read_roles": list("other")},
		{"force_generation": true}} {
		d.Policy(off)
		check(string(rig.MustJSON(off)), s, "m", false, nil)
		d.Policy(object{"artifact_read_enabled": true, "artifact_read_roles": list(), "force_generation": false})
	}
	check("all on again", s, "m", true, "artifact")
	tool("quarantine", object{"reason": "wrong"})
	check("quarantine", s, "m", false, nil)
	tool("release", object{"reason": "right"})
	check("released", s, "m", true, "artifact")
	check("another contract", other, "m", false, nil)
	check("its own one", s, "m", true, "artifact")
	d.Policy(object{"approval_required": true})
	check("nobody approved it", s, "m", false, nil)
	// the current program was written for the contract of the other session
	tool("approve", object{"generation": "gen-1"})
	check("approved", s, "m", true, "artifact")
	d.Policy(object{"approval_required": false})
	tool("regenerate", object{})
	check("another program is asked for", s, "m", false, nil)
}

// A stored program responds while no model is asked for another one: after a person has changed what the method is for,
// and the model's server failed.
func TestRespondsWhileNoModelIsAsked(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, rig.Status(http.StatusUnauthorized), progKelvin)
	d.Policy(delaysOfHours)
	d = d.One()
	responds := func(want bool) {
		t.Helper()
		if got := d.Get("/v1/sessions/" + s + "/methods/convert"); got["responds"] != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	responds(true)
	registers(d, object{"purpose": toKelvin})
	responds(false)
	wantStale(d, d.Call(s, "convert", 0), 32)
	asked := m.Count("units", "")
	responds(true)
	wantStale(d, d.Call(s, "convert", 0), 32)
	wantAsked(t, m, asked)
}

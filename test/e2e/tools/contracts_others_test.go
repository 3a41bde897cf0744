package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A call without a contract is not answered by a program that was written for the contract of another call, of a
// session or of a delegation: it gets a program of its own, which does not succeed the other one's answers. Each kind
// of call keeps its program, over a restart too.
func TestOthersContractsAnswerNobodyElse(t *testing.T) {
	t.Parallel()
	wrapped := rig.Program("\treturn map[string]any{\"v\": call.Arg(0, \"x\")}, nil")
	asks := rig.Program("\tout := call.Delegate(\"unit\", recurgent.Contract{Deliverable: map[string]any{\"type\": \"object\", \"required\": []any{\"v\"}}}).Call(\"nested\", call.Arg(0, \"x\"))\n\treturn out.Value, nil")
	object := map[string]any{"type": "object", "required": []any{"v"}}
	for _, c := range []struct {
		name, method string
		first        func(d *rig.Daemon) rig.Reply
	}{
		{"of a call", "called", func(d *rig.Daemon) rig.Reply {
			return d.Invoke(d.Session("unit"), map[string]any{"method": "called", "args": []any{1},
				"contract": map[string]any{"deliverable": object}})
		}},
		{"of a session", "session", func(d *rig.Daemon) rig.Reply {
			return d.Call(d.Session("unit", map[string]any{"contract": map[string]any{"deliverable": object}}),
				"session", 1)
		}},
		{"of a delegation", "nested", func(d *rig.Daemon) rig.Reply { return d.Call(d.Session("asker"), "route", 1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{"unit." + c.method: {wrapped, rig.ProgGiven}, "asker.route": {asks}})
			d := rig.Start(t, m)
			// A person has registered the role, and no deliverable: what a program delegates with is that program's.
			d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/unit", map[string]any{"purpose": "units"})
			d.WantValue(c.first(d), map[string]any{"v": 1}, "generated")
			before := len(m.Requests())
			plain := func(source string) rig.Reply {
				got := d.Call(d.Session("unit"), c.method, 1)
				d.WantValue(got, 1, source)
				return got
			}
			if got := plain("generated"); got.Program.Selection.Reason != "contract_changed" ||
				got.Program.Selection.Decision != "forge" {
				t.Errorf("selection: %+v", got.Program.Selection)
			}
			d.WantValue(c.first(d), map[string]any{"v": 1}, "persisted")
			plain("persisted")
			d.Restart()
			plain("persisted")
			d.WantValue(c.first(d), map[string]any{"v": 1}, "persisted")
			if n := len(m.Requests()) - before; n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// Without a model a call without a contract ends as one of a method that has no program, not with what was written for
// somebody else.
func TestOthersContractsAnswerNobodyInAnOutage(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"unit.m": {rig.Program("\treturn map[string]any{\"v\": call.Arg(0, \"x\")}, nil"),
		rig.Status(401)}})
	d := rig.Start(t, m)
	s := d.Session("unit")
	asked := map[string]any{"method": "m", "args": []any{1},
		"contract": map[string]any{"deliverable": map[string]any{"type": "object"}}}
	d.WantValue(d.Invoke(s, asked), map[string]any{"v": 1}, "generated")
	if got := d.Call(s, "m", 1); got.Outcome.OK || got.Program.Source == "persisted" {
		t.Errorf("answered: %+v", got)
	}
	d.WantValue(d.Invoke(s, asked), map[string]any{"v": 1}, "persisted")
}

// A program that was written for the method's own contract keeps answering after the contract is gone.
func TestOwnContractsAnswerOn(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"unit.m": {rig.Program("\treturn map[string]any{\"v\": call.Arg(0, \"x\")}, nil")}})
	d := rig.Start(t, m)
	s := d.Session("unit")
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/unit",
		map[string]any{"purpose": "units", "deliverable": map[string]any{"type": "object"}})
	d.WantValue(d.Call(s, "m", 1), map[string]any{"v": 1}, "generated")
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/unit", map[string]any{"purpose": "units"})
	d.WantValue(d.Call(s, "m", 1), map[string]any{"v": 1}, "persisted")
	if text := string(rig.MustJSON(d.Artifact("unit", "m"))); strings.Contains(text, "callers_contract") {
		t.Errorf("the registry's contract counts as a caller's: %s", text)
	}
}

package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The program of somebody's contract: what it gives, a correction of it, and the contract.
var (
	progWrapped   = rig.Program("\treturn map[string]any{\"v\": call.Arg(0, \"x\")}, nil")
	progUnwrapped = rig.Program("\treturn \"right\", nil")
	progWrappedOK = rig.Program("\treturn map[string]any{\"v\": \"right\", \"x\": call.Arg(0, \"x\")}, nil")
	wrapped       = object{"deliverable": object{"type": "object", "required": []any{"v"}}}
)

// A program that was written for the contract of a call or of a session is corrected by that contract: the model is
// shown it, a program that breaks it is not a correction, and a call without a contract gets nothing of it. Another
// program that answers calls without one stays as it is.
func TestCorrectionsKeepTheContractOfTheirCall(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(d *rig.Daemon) rig.Reply{
		"of a call": func(d *rig.Daemon) rig.Reply {
			return d.Invoke(d.Session("unit"), object{"method": "m", "args": []any{1}, "contract": wrapped})
		},
		"of a session": func(d *rig.Daemon) rig.Reply {
			return d.Call(d.Session("unit", object{"contract": wrapped}),
				"m", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{"unit.m": {progWrapped, rig.ProgGiven, progUnwrapped, progWrappedOK}})
			d := rig.Start(t, m)
			d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/unit", object{"purpose": "units"})
			judged := first(d)
			d.WantValue(judged, object{"v": 1}, "generated")
			d.WantValue(d.Call(d.Session("unit"), "m", 1), 1, "generated")
			verdict(d, judged, object{"verdict": "wrong", "expected": object{"v": "right", "x": 1},
				"note": "say right"})
			wantCorrection(d, "unit", "m", "adopted")
			if q := m.LastQuestion(); !strings.Contains(q.User, `"required":["v"]`) ||
				!strings.Contains(q.User, "say right") {
				t.Errorf("the model was asked:\n%s", q.User)
			}
			d.WantValue(first(d), object{"v": "right", "x": 1}, "persisted")
			d.WantValue(d.Call(d.Session("unit"), "m", 1), 1, "persisted")
			d.Restart()
			d.WantValue(first(d), object{"v": "right", "x": 1}, "persisted")
			d.WantValue(d.Call(d.Session("unit"), "m", 1), 1, "persisted")
			if g := keptGeneration(d, "unit", "m", "gen-3"); g["callers_contract"] != true || g["asked"] != nil ||
				g["parent_id"] != "gen-1" {
				t.Errorf("the correction is %v", g)
			}
			if n := asked(m, "unit", "m"); n != 4 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// Where all programs of a method were written for contracts of callers, a correction of one stays theirs, and lists
// promise nothing of it: a call without a contract gets a program of its own, and from then on lists have that one's
// interface.
func TestListsPromiseWhatACallWithoutContractGets(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"unit.m": {progWrapped, progWrappedOK, rig.ProgGiven}})
	d := rig.Start(t, m)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/unit", object{"purpose": "units"})
	shows := func(when, parameter string) {
		t.Helper()
		tools := string(d.Do(http.StatusOK, http.MethodGet, "/v1/tools?format=mcp", nil).Body)
		if !strings.Contains(tools, `"unit__m"`) || strings.Contains(tools, `"x":{`) ||
			strings.Contains(tools, `"v":{`) != (parameter == "v") {
			t.Errorf("%s: agents are shown %s", when, tools)
		}
		of, _ := d.Artifact("unit", "m")["interface"].(object)
		if got := string(rig.MustJSON(of["parameters"])); strings.Contains(got, `"name":"`) != (parameter != "") ||
			parameter != "" && !strings.Contains(got, `"name":"`+parameter+`"`) {
			t.Errorf("%s: the method's interface is %v", when, of)
		}
	}
	call := object{"method": "m", "args": []any{1}, "contract": wrapped}
	judged := d.Invoke(d.Session("unit"), call)
	d.WantValue(judged, object{"v": 1}, "generated")
	shows("with a caller's program", "")
	verdict(d, judged, object{"verdict": "wrong", "expected": object{"v": "right", "x": 1}})
	wantCorrection(d, "unit", "m", "adopted")
	d.WantValue(d.Invoke(d.Session("unit"), call), object{"v": "right", "x": 1}, "persisted")
	shows("after the correction", "")
	// it is of the other kind of call
	d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("unit", "m")+"/examples", object{"examples": []any{}})
	d.WantValue(d.Call(d.Session("unit"), "m", 1), 1, "generated")
	shows("with a program for all", "v")
	d.WantValue(d.Invoke(d.Session("unit"), call), object{"v": "right", "x": 1}, "persisted")
}

package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// While reads are off, for all roles or for all but a canary, or every call forges, calls do not use the stored
// generation. Afterwards it still exists, in its lifecycle state, and serves.
func TestSeed001Line388SwitchesEvictNothing(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgGiven}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "m", 1)
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/promote", map[string]any{"reason": "blessed"})
	for _, c := range []struct {
		name    string
		on, off map[string]any
	}{
		{"not_a_canary_role", map[string]any{"artifact_read_roles": []any{"other"}},
			map[string]any{"artifact_read_roles": []any{}}},
		{"read_disabled", map[string]any{"artifact_read_enabled": false},
			map[string]any{"artifact_read_enabled": true}},
		{"force_generation", map[string]any{"force_generation": true}, map[string]any{"force_generation": false}},
	} {
		before := d.Artifact("r", "m")
		d.Policy(c.on)
		for i := range 5 {
			got := d.Call(d.Session("r"), "m", i)
			if d.WantValue(got, i, "generated"); got.Program.Selection.Reason != c.name {
				t.Errorf("%s: selection %+v", c.name, got.Program.Selection)
			}
		}
		d.Restart()
		d.Policy(c.off)
		got := d.Call(s, "m", 2)
		if d.WantValue(got, 2, "persisted"); got.Program.Generation != "gen-1" {
			t.Errorf("%s: %s serves afterwards", c.name, got.Program.Generation)
		}
		a := d.Artifact("r", "m")
		if a["lifecycle_state"] != "durable" || a["success_count"] != before["success_count"].(float64)+6 {
			t.Errorf("%s: %v, %v successes after %v", c.name, a["lifecycle_state"], a["success_count"],
				before["success_count"])
		}
		if first, was := historyGeneration(a, "gen-1"), historyGeneration(before,
			"gen-1"); first["success_count"] != was["success_count"].(float64)+1 {
			t.Errorf("%s: the blessed generation counts the successes of others: %v after %v", c.name,
				first["success_count"], was["success_count"])
		}
	}
}

// The stored program answers wrong and the model would write a right one: each switch for such a day makes the answer
// right at once, quarantine too, with repairs or without. What is stored is not shown to the model, stays as it is, and
// counts what was answered in its place.
func TestSeed001Line391SwitchesMakeItRight(t *testing.T) {
	t.Parallel()
	wrong, right := rig.Program("\treturn call.Args[0].(float64) + 32, nil"),
		rig.Program("\treturn call.Args[0].(float64) + 273.15, nil")
	for name, on := range map[string]map[string]any{
		"read_disabled":     {"artifact_read_enabled": false},
		"not_a_canary_role": {"artifact_read_roles": []any{"other"}},
		"force_generation":  {"force_generation": true},
		"quarantined":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{"r.kelvin": {wrong, right}})
			d := rig.Start(t, m)
			s := d.Session("r")
			d.WantValue(d.Call(s, "kelvin", 0), 32, "generated")
			if on == nil {
				d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/kelvin/quarantine",
					map[string]any{"reason": "wrong"})
			} else {
				d.Policy(on)
			}
			before := d.Artifact("r", "kelvin")
			for i := range 4 {
				d.Policy(map[string]any{"repair_enabled": i%2 == 0})
				got := d.Call(s, "kelvin", 0)
				d.WantValue(got, 273.15, "generated")
				if e := d.LogOf(got); e["program_unkept"] != true || got.Program.Selection.Reason != name {
					t.Errorf("the log has %v, for %+v", e["program_unkept"], got.Program.Selection)
				}
			}
			for _, q := range m.Questions()[1:] {
				if strings.Contains(q.System+q.User, "+ 32, nil") {
					t.Error("the model is shown the program that is switched off")
				}
			}
			a := d.Artifact("r", "kelvin")
			if a["unkept_calls"] != 4.0 || a["success_count"] != before["success_count"] ||
				a["current_generation"] != "gen-1" || len(a["history"].([]any)) != 1 {
				t.Errorf("got %v unkept calls, %v successes, %v", a["unkept_calls"], a["success_count"],
					a["current_generation"])
			}
			if n := d.Metric("recurgent_unkept_calls_total"); n != 4 {
				t.Errorf("the metric has %v", n)
			}
		})
	}
}

// generation finds a generation of an artifact.
func historyGeneration(artifact map[string]any, id string) map[string]any {
	for _, g := range artifact["history"].([]any) {
		if g := g.(map[string]any); g["id"] == id {
			return g
		}
	}
	return nil
}

const (
	repairsOK     = `recurgent_repairs_total{result="ok"}`
	repairsFailed = `recurgent_repairs_total{result="failed"}`
	badCode       = "package tool\n\nfunc Run(call"
)

// With repair disabled the model is never asked for a repair: not of a stored program, not of a new one that panics,
// breaks its contract or does not compile, and not for a correction.
func TestSeed001Line392DisabledRepairAsksForNone(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.stored": {rig.ProgMayPanic}, "r.panics": {rig.ProgPanic}, "r.broken": {badCode},
		"r.weak": {rig.ProgEcho}, "r.wrong": {rig.ProgGiven}})
	d := rig.Start(t, m)
	d.Policy(map[string]any{"repair_enabled": false, "backoff": map[string]any{"base_seconds": 0}})
	s := d.Session("r")
	d.Call(s, "stored", 1)
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/r", map[string]any{"purpose": "numbers",
		"methods": map[string]any{"weak": map[string]any{"deliverable": map[string]any{"type": "number"}}}})
	for range 4 { // the fourth finds it degraded
		for method, errorType := range map[string]string{"stored": "execution", "panics": "execution",
			"broken": "invalid_code", "weak": "contract_violation"} {
			got := d.Call(s, method, "bad")
			d.WantError(got, errorType)
			if e := d.LogOf(got); e["repair_attempted"] != false || e["repair_succeeded"] != false ||
				e["execution_repair_attempts"] != 0.0 ||
				e["outcome_repair_attempts"] != 0.0 || e["guardrail_recovery_attempts"] != 0.0 {
				t.Errorf("%s: the log speaks of a repair: %v", method, e)
			}
		}
	}
	was := d.Call(s, "wrong", 5)
	d.Send(http.MethodPost, "/v1/calls/"+was.CallID+"/verdict",
		rig.MustJSON(map[string]any{"verdict": "wrong", "expected": 7}), map[string]string{"Prefer": "wait=30"})
	for _, q := range m.Questions() {
		if q.Kind == "repair" || strings.Contains(q.System+q.User, "Repair the program") {
			t.Errorf("the model was asked to repair %s.%s", q.Role, q.Method)
		}
	}
	if n := d.Metric(repairsOK) + d.Metric(repairsFailed); n != 0 {
		t.Errorf("%v repairs counted", n)
	}
}

// The log and the metric count every repair, also of new programs: one that the gate refused, one that panicked, one
// that broke its contract, and one that could not be repaired.
func TestSeed001Line392EveryRepairIsCounted(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.refused": {badCode, rig.ProgEcho}, "r.panics": {rig.ProgPanic, rig.ProgEcho},
		"r.weak":     {rig.ProgEcho, rig.Program("\treturn 7, nil")},
		"r.hopeless": {badCode, rig.ProgPanic, rig.ProgPanic}, "r.stored": {rig.ProgMayPanic, badCode, rig.ProgFixes}})
	d := rig.Start(t, m)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/r", map[string]any{"purpose": "numbers",
		"methods": map[string]any{"weak": map[string]any{"deliverable": map[string]any{"type": "number"}}}})
	s := d.Session("r")
	check := func(method, arg string, succeeded bool, ok, failed float64) {
		t.Helper()
		okBefore, failedBefore := d.Metric(repairsOK), d.Metric(repairsFailed)
		got := d.Call(s, method, arg)
		if e := d.LogOf(got); got.Outcome.OK != succeeded || e["repair_attempted"] != true ||
			e["repair_succeeded"] != succeeded {
			t.Errorf("%s: ok %v, attempted %v, succeeded %v", method, got.Outcome.OK, e["repair_attempted"],
				e["repair_succeeded"])
		}
		if o, f := d.Metric(repairsOK)-okBefore, d.Metric(repairsFailed)-failedBefore; o != ok || f != failed {
			t.Errorf("%s: %v repairs ok, %v failed; want %v and %v", method, o, f, ok, failed)
		}
	}
	check("refused", "x", true, 1, 0)
	check("panics", "x", true, 1, 0)
	check("weak", "x", true, 1, 0)
	check("hopeless", "x", false, 0, 2)
	if got := d.LogOf(d.Call(s, "stored", "good")); got["repair_attempted"] != false {
		t.Error("a first program counts as a repair")
	}
	check("stored", "bad", true, 1, 1)
}

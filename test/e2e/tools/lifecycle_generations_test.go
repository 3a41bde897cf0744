package tools

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A repair makes a generation with its parent and its trigger; the old one is kept with its code.
func TestGenerations(t *testing.T) {
	t.Parallel()
	breaks := rig.Program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	fixed := rig.Program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"fixed\", nil\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	m := rig.NewModel(t, rig.Script{"r.m": {breaks, fixed}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.WantValue(d.Call(s, "m", "good"), "good", "generated")
	got := d.Call(s, "m", "bad")
	d.WantValue(got, "fixed", "repaired")
	if got.Program.Generation != "gen-2" || !strings.HasPrefix(got.Program.Trigger, "repair:") {
		t.Errorf("program: %+v", got.Program)
	}
	q := m.LastQuestion()
	if q.Kind != "repair" || !strings.Contains(q.User, breaks) || !strings.Contains(q.User, "boom") ||
		!strings.Contains(q.User, "<failure_class>intrinsic</failure_class>") {
		t.Errorf("the repair request: %s\n%s", q.Kind, q.User)
	}
	list := d.List("/v1/tools/r/methods/m/generations")
	if len(list) != 2 || list[0]["parent_id"] != "gen-1" || list[1]["trigger"] != "initial_forge" ||
		list[1]["code"] != breaks || list[0]["code"] != fixed {
		t.Errorf("generations: %v", list)
	}
	if a := d.Get("/v1/tools/r/methods/m"); a["repair_count_since_regen"] != 1.0 ||
		a["intrinsic_failure_count"] != 1.0 || a["last_failure_class"] != "intrinsic" || a["code"] != fixed {
		t.Errorf("artifact: %v", a)
	}
	d.WantValue(d.Call(s, "m", "good"), "good", "persisted")
	e := d.Get("/v1/calls/" + got.CallID)
	if e["repair_attempted"] != true || e["repair_succeeded"] != true || e["code"] != fixed ||
		!rig.Equal("fixed", e["outcome"].(map[string]any)["value"]) {
		t.Errorf("log entry: %v", e)
	}
	if f, _ := e["attempt_failures"].([]any); len(f) != 1 {
		t.Errorf("attempt failures: %v", e["attempt_failures"])
	}
}

// The same past gives the same path, twenty times.
func TestSamePathTwentyTimes(t *testing.T) {
	t.Parallel()
	answers := rig.Script{}
	for i := range 20 {
		answers[fmt.Sprintf("r%02d.m", i)] = []any{rig.ProgMayPanic, rig.ProgMayPanic, rig.ProgFixes}
	}
	m := rig.NewModel(t, answers)
	d := rig.Start(t, m)
	var first []string
	for i := range 20 {
		role := fmt.Sprintf("r%02d", i)
		s := d.Session(role)
		var path []string
		for _, x := range []any{1, 1, "bad", "bad", 1} {
			got := d.Call(s, "m", x)
			path = append(path, fmt.Sprint(got.Program.Selection.Decision, got.Program.Selection.Reason,
				got.Program.Source, got.Program.Trigger, got.Program.Generation, got.Outcome.Value,
				got.Outcome.ErrorType, got.Attempts))
		}
		for _, q := range m.Questions() {
			if q.Role == role {
				path = append(path, q.Kind)
			}
		}
		if first == nil {
			first = path
		} else if !reflect.DeepEqual(path, first) {
			t.Fatalf("%s went\n%v\nthe first one went\n%v", role, path, first)
		}
	}
	if !strings.Contains(strings.Join(first, " "), "repair") {
		t.Errorf("nothing was repaired: %v", first)
	}
}

// The latest three of seven generations are kept, each with its parent; the very first has none. A rollback runs
// the old program. Each generation has its own health.
func TestThreeGenerationsAreKept(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgFixes}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "m", 1)
	if g := d.Artifact("r", "m")["history"].([]any)[0].(map[string]any); g["parent_id"] != nil || g["trigger"] != "initial_forge" {
		t.Errorf("the first generation: %v", g)
	}
	for i := range 6 {
		m.Answer("r", "m", openaiCode(strings.Replace(rig.ProgFixes, "fixed", fmt.Sprintf("fixed %d", i), 1)))
		d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/regenerate", map[string]any{})
		d.Call(s, "m", i)
	}
	var listed []string
	for _, g := range d.List("/v1/tools/r/methods/m/generations") {
		listed = append(listed, fmt.Sprint(g["id"], " of ", g["parent_id"], " by ", g["trigger"], ": ",
			g["success_count"]))
		if !strings.Contains(g["code"].(string), "fixed") {
			t.Errorf("%s has no code", g["id"])
		}
	}
	want := []string{"gen-7 of gen-6 by regenerate:requested: 1", "gen-6 of gen-5 by regenerate:requested: 1",
		"gen-5 of gen-4 by regenerate:requested: 1"}
	if !reflect.DeepEqual(listed, want) {
		t.Errorf("kept: %q", listed)
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/r/methods/m/rollback", map[string]any{"generation": "gen-5"})
	got := d.Call(s, "m", "bad")
	if d.WantValue(got, "fixed 3", "persisted"); got.Program.Generation != "gen-5" {
		t.Errorf("after the rollback %s ran", got.Program.Generation)
	}
}

// The times that clients meet: when a program was made, used and repaired; a re-ask is a correction for three
// minutes. The clock is the test's.
func TestTimesOfArtifacts(t *testing.T) {
	t.Parallel()
	weak := rig.Program("\treturn map[string]any{\"status\": \"no_results\", \"for\": call.Arg(0, \"x\")}, nil")
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes}, "w.m": {weak}})
	d, set := rig.StartAhead(t, m)
	s, w := d.Session("r"), d.Session("w")
	stamps := func() (created, used, repaired time.Time) {
		t.Helper()
		a := d.Artifact("r", "m")
		read := func(v any) time.Time {
			text, _ := v.(string)
			at, _ := time.Parse(time.RFC3339Nano, text) // null is the zero time
			return at
		}
		return read(a["created_at"]), read(a["last_used_at"]), read(a["last_repaired_at"])
	}
	d.Call(s, "m", 1)
	made, used, repaired := stamps()
	if used.Before(made) || !repaired.IsZero() {
		t.Errorf("new: made %s, used %s, repaired %s", made, used, repaired)
	}
	reask := func() bool { return d.LogOf(d.Call(w, "m", "x"))["user_correction_detected"].(bool) }
	if reask() || !reask() {
		t.Error("a first ask is a correction, or a second one is none")
	}
	const day = 24 * time.Hour
	set("24h")
	if reask() {
		t.Error("a day later it is a correction")
	}
	d.Call(s, "m", 1)
	later, usedLater, repaired := stamps()
	if !later.Equal(made) || usedLater.Sub(used) < day || !repaired.IsZero() {
		t.Errorf("a day later: made %s, used %s, repaired %s", later, usedLater, repaired)
	}
	set("48h")
	d.Call(s, "m", "bad")
	if later, usedLater, repaired = stamps(); !later.Equal(made) || repaired.Sub(made) < 2*day ||
		usedLater.Sub(used) < 2*day {
		t.Errorf("repaired: made %s, used %s, repaired %s", later, usedLater, repaired)
	}
}

// Of six contracts' programs all are kept that are healthy, beyond the latest three, and each serves its own
// callers without a model.
func TestHealthyOneOfEachContractIsKept(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"c.m": {rig.ProgFixes}})
	d := rig.Start(t, m)
	s := d.Session("c")
	const contracts = 6
	call := func(n int) rig.Reply {
		return d.Invoke(s, map[string]any{"method": "m", "args": []any{1},
			"contract": map[string]any{"deliverable": map[string]any{"type": "number", "minimum": -n}}})
	}
	for n := range contracts {
		m.Answer("c", "m", openaiCode(strings.Replace(rig.ProgFixes, "fixed", fmt.Sprintf("fixed %d", n), 1)))
		call(n)
	}
	if n := len(d.Artifact("c", "m")["history"].([]any)); n != contracts {
		t.Errorf("%d generations are kept, want one a contract", n)
	}
	asked := len(m.Questions())
	d.Restart()
	for range 2 {
		for n := range contracts {
			got := call(n)
			if d.WantValue(got, 1, "persisted"); got.Program.Generation != fmt.Sprintf("gen-%d", n+1) {
				t.Errorf("contract %d was served by %s", n, got.Program.Generation)
			}
		}
	}
	if n := len(m.Questions()); n != asked {
		t.Errorf("%d more model requests", n-asked)
	}
}

package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The class of a repaired call is that of the failure, in the log, the history and the metric; that of an honest error
// that came after drift, too.
func TestSeed001Line383FailureClassOfARepairedCall(t *testing.T) {
	t.Parallel()
	api := rig.NewSource(t, bodyBefore)
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes},
		"weather.now": {weather(api.URL, readsPanic), weather(api.URL,
			"\treturn nil, recurgent.Fail(\"low_utility\", \"nothing\")")}})
	d := rig.Start(t, m, "--fetch-allow", api.Host())
	s, w := d.Session("r"), d.Session("weather")
	says := func(session string, got rig.Reply, want string) {
		t.Helper()
		records := d.History(session)
		summary, _ := records[len(records)-1]["outcome_summary"].(map[string]any)
		kept, _ := summary["failure_class"].(string)
		if class := d.LogOf(got)["failure_class"]; class != want || kept != want {
			t.Errorf("class %v in the log, %v in the history, want %s", class, kept, want)
		}
	}
	good := d.Call(s, "m", 1)
	says(s, good, "")
	repaired := d.Call(s, "m", "bad")
	d.WantValue(repaired, "fixed", "repaired")
	says(s, repaired, "intrinsic")
	if n := d.Metric(`recurgent_calls_total{class="intrinsic",source="repaired",status="ok"}`); n != 1 {
		t.Errorf("%v calls of the class", n)
	}
	says(s, d.Call(s, "m", 2), "")
	d.WantValue(d.Call(w, "now", "Oslo"), 8, "generated")
	api.Body(bodyAfter)
	got := d.Call(w, "now", "Oslo")
	d.WantError(got, "low_utility")
	says(w, got, "adaptive")
	total := d.Get("/v1/reports/trends")["total"].(object)
	if classes := total["failure_class"]; !rig.Equal(object{"intrinsic": 1, "adaptive": 1, "authored": 1}, classes) {
		t.Errorf("the report counts %v", classes)
	}
}

// After exhausted budgets the client gets our words, and the history the last failure's, secrets masked.
func TestSeed000Line79MessageOfTheLastFailure(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.Program(
		"\tpanic(call.Kwargs[\"password\"].(string) + \" is no use at \" + call.Arg(0, \"x\").(string))")}})
	d := rig.Start(t, m)
	s := d.Session("r")
	got := d.Invoke(s, object{"method": "m", "args": []any{"noon"}, "kwargs": object{"password": "hunter2-of-ann"}})
	d.WantError(got, "execution")
	if !strings.Contains(got.Outcome.ErrorMessage, "multiple attempts") {
		t.Errorf("the client gets %q", got.Outcome.ErrorMessage)
	}
	message, _ := d.History(s)[0]["error_message"].(string)
	if !strings.Contains(message, "is no use at noon") || strings.Contains(message, "hunter2") {
		t.Errorf("the history has %q", message)
	}
}

// A promotion without a reset blesses the program: it answers the next call, however its last calls ended, and its
// counters stay.
func TestSeed001Line409PromotionBlesses(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.WantValue(d.Call(s, "m", 1), 1, "generated")
	for range 4 {
		d.WantError(d.Call(s, "m", "bad"), "execution")
	}
	path := rig.MethodPath("r", "m")
	before := d.Artifact("r", "m")
	if before["lifecycle_state"] != "degraded" {
		t.Fatalf("it is %v", before["lifecycle_state"])
	}
	d.Do(http.StatusOK, http.MethodPost, path+"/promote", object{})
	requests := m.Count("r", "m")
	got := d.Call(s, "m", 2)
	d.WantValue(got, 2, "persisted")
	after := d.Artifact("r", "m")
	if got.Program.Selection.Reason != "healthy" || m.Count("r", "m") != requests ||
		after["lifecycle_state"] != "durable" || after["failure_count"] != before["failure_count"] {
		t.Errorf("selected for %s, %d requests, %v, %v failures of %v", got.Program.Selection.Reason,
			m.Count("r", "m")-requests, after["lifecycle_state"], after["failure_count"], before["failure_count"])
	}
	d.Restart()
	d.WantValue(d.Call(s, "m", 3), 3, "persisted")
}

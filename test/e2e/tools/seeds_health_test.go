package tools

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Sixty good calls do not outweigh the panics after them. With default settings the program is degraded before its
// repairs are used up, and the next call that may ask the model repairs it first.
func TestSeed001Line327RecentFailuresDegrade(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic}})
	d, ahead := rig.StartAhead(t, m)
	d.Policy(delaysOfHours)
	first, second := d.Session("r"), d.Session("r")
	for range 30 {
		d.Call(first, "m", 1)
		d.Call(second, "m", 1)
	}
	if a := d.Artifact("r", "m"); a["lifecycle_state"] != "durable" {
		t.Fatalf("after 60 good calls it is %v", a["lifecycle_state"])
	}
	degraded := 0
	for i := range 55 {
		got := d.Call(first, "m", "bad")
		d.WantError(got, "execution")
		if i > 2 && (got.Program.Selection.Reason != "degraded" || got.Program.Selection.Decision != "repair") {
			t.Fatalf("panic %d: selection %+v", i+1, got.Program.Selection)
		}
		if d.LogOf(got)["lifecycle_state"] == "degraded" {
			degraded++
		}
	}
	a := d.Artifact("r", "m")
	if degraded < 53 || a["lifecycle_state"] != "degraded" || d.Metric(`recurgent_artifacts{state="degraded"}`) != 1 {
		t.Errorf("%v after %d degraded calls, metric %v", a["lifecycle_state"], degraded,
			d.Metric(`recurgent_artifacts{state="degraded"}`))
	}
	if spent := a["repair_count_since_regen"].(float64); spent > 2 || m.Count("r", "m") > 6 {
		t.Errorf("%v repairs spent, %d requests", spent, m.Count("r", "m"))
	}
	ahead("1h1s")
	m.Answer("r", "m", openaitest.Code(rig.ProgFixes))
	got := d.Call(first, "m", 1) // an argument that the old program would serve
	if d.WantValue(got, 1, "repaired"); got.Program.Trigger != "repair:degraded" || m.LastQuestion().Kind != "repair" {
		t.Errorf("%s, %s", got.Program.Trigger, m.LastQuestion().Kind)
	}
	if n := d.Metric(`recurgent_artifacts{state="degraded"}`); n != 0 {
		t.Errorf("%v are degraded after the repair", n)
	}
}

// Thirty calls of a method whose programs do not last cost only a few model requests, whether the new programs return
// errors of their own, or each serves its own call and fails with the next.
func TestSeed001Line432PatchChainsAreBounded(t *testing.T) {
	t.Parallel()
	var call atomic.Int64
	m := rig.NewModel(t, nil)
	m.Default(func(q openaitest.Request) openaitest.Reply {
		switch {
		case q.Repair:
			return openaitest.Code(rig.ProgPanic)
		case q.Method == "honest" && call.Load() > 0:
			return openaitest.Code(rig.ProgFails)
		}
		return openaitest.Code(rig.Program(fmt.Sprintf(
			"\tif n, _ := call.Arg(0, \"n\").(float64); n > %d {\n\t\tpanic(\"too much\")\n\t}\n\treturn call.Arg(0, \"n\"), nil", call.Load())))
	})
	for _, method := range []string{"honest", "next"} {
		d, ahead := rig.StartAhead(t, m)
		d.Policy(delaysOfHours)
		call.Store(0)
		s := d.Session("r")
		d.WantValue(d.Call(s, method, 0), 0, "generated")
		begun, waited := m.Count("r", method), 0
		for n := 1; n <= 30; n++ {
			call.Store(int64(n))
			if got := d.Call(s, method, n); got.Outcome.Metadata["retry_after_ms"] != nil {
				waited++
			}
		}
		spent := m.Count("r", method) - begun
		if spent > 12 || method == "next" && waited < 20 {
			t.Errorf("%s: 30 calls cost %d requests, %d waited", method, spent, waited)
		}
		ahead("1h1s")
		d.Call(s, method, 30)
		if m.Count("r", method)-begun == spent {
			t.Errorf("%s: it is not tried again after the delay", method)
		}
	}
}

// A page changes its markup, which the detected shape does not show. The program's own error, of a type that it made
// up, counts as adaptive, and the program is repaired first.
func TestSeed001Line201ChangedSourcesAreRepairedFirst(t *testing.T) {
	t.Parallel()
	prog := func(marker string) string {
		return rig.Program("\tr, err := call.Fetch(call.Arg(0, \"url\").(string))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\t_, rest, ok := strings.Cut(r.Body, \""+marker+"\")\n"+
			"\tif !ok {\n\t\treturn nil, recurgent.Fail(\"no_headline\", \"the page has none\")\n\t}\n\ttitle, _, _ := strings.Cut(rest, \"<\")\n\treturn title, nil", "strings")
	}
	f := rig.NewSource(t, "<html><h1>Old</h1></html>")
	m := rig.NewModel(t, rig.Script{"news.read": {prog("<h1>"), prog("<b>")}})
	d := rig.Start(t, m, "--fetch-allow", f.Host())
	s := d.Session("news")
	d.WantValue(d.Call(s, "read", f.URL), "Old", "generated")
	f.Body("<html><b>New</b></html>")
	var got rig.Reply
	for range 2 { // drift_after
		got = d.Call(s, "read", f.URL)
	}
	if d.WantValue(got, "New", "repaired"); got.Program.Trigger != "repair:no_headline" ||
		m.LastQuestion().Kind != "repair" || m.Count("news", "read") != 2 {
		t.Errorf("%s, %s, %d requests", got.Program.Trigger, m.LastQuestion().Kind, m.Count("news", "read"))
	}
	if a := d.Artifact("news", "read"); a["adaptive_failure_count"] != 1.0 || a["intrinsic_failure_count"] != 0.0 {
		t.Errorf("%v adaptive failures, %v intrinsic", a["adaptive_failure_count"], a["intrinsic_failure_count"])
	}
	if !strings.Contains(m.LastQuestion().User, "adaptive") {
		t.Errorf("the model does not learn that the source changed:\n%s", m.LastQuestion().User)
	}
}

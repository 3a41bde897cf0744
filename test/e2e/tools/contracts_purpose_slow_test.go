package tools

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A model that is slower than the calls have time costs one request, not one for each call: the old program answers
// within the call, and nobody is asked during the delay after it. A call with more time asks at once. It is the same
// for a changed purpose and for a program that a person has asked for.
func TestSlowModelDoesNotTakeTheProgramAway(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(d *rig.Daemon){
		"purpose":    func(d *rig.Daemon) { registers(d, object{"purpose": toKelvin}) },
		"regenerate": func(d *rig.Daemon) { operate(d, "units", "convert", "regenerate", object{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, m, s := warm(t, rig.Held(progKelvin), progKelvin)
			d.Policy(delaysOfHours)
			d = d.One()
			before := d.Artifact("units", "convert")
			change(d)
			quick := object{"method": "convert", "args": list(0), "timeout_ms": 4000}
			for i := range 4 {
				got := d.Invoke(s, quick)
				d.WantValue(got, 32, "persisted")
				if want := map[bool]int64{true: 1}[i == 0]; int64(got.Usage.ModelRequests) != want {
					t.Errorf("call %d took %d requests, want %d", i, got.Usage.ModelRequests, want)
				}
				if stale := map[string]string{"purpose": "purpose"}[name]; got.Program.Stale != stale {
					t.Errorf("the program is stale by %q, want %q", got.Program.Stale, stale)
				}
			}
			wantAsked(t, m, 2)
			if a := d.Artifact("units", "convert"); a["failure_count"] != before["failure_count"] ||
				a["rejections"] != nil || a["success_count"] != before["success_count"].(float64)+4 {
				t.Errorf("the artifact counts %v failures and %v successes, rejections: %v", a["failure_count"],
					a["success_count"], a["rejections"])
			}
			got := d.Call(s, "convert", 0) // with ten minutes
			d.WantValue(got, 273.15, "generated")
			wantAsked(t, m, 3)
			d.WantValue(d.Invoke(s, quick), 273.15, "persisted")
		})
	}
}

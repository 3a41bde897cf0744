package tools

import (
	"maps"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Which engine ran a program is in its replies, its log entries and the metric, under each setting of --engine. Programs with loops are on yaegi
// with --engine yaegi alone; those that range over a string never are, since its cost there grows with the square of the length.
func TestEngines(t *testing.T) {
	t.Parallel()
	programs := map[string]string{
		"plain":  rig.Program("\ta, _ := call.Args[0].(float64)\n\treturn a * 2, nil"),
		"loop":   rig.Program("\tn := 0\n\tfor i := 0; i < 10; i++ {\n\t\tn += i\n\t}\n\treturn n, nil"),
		"string": rig.Program("\ts := strings.Repeat(\"fox and hen \", 1000)\n\tn := 0\n\tfor _, r := range s {\n\t\tif r == ' ' {\n\t\t\tn++\n\t\t}\n\t}\n\treturn n, nil", "strings"),
	}
	values := map[string]any{"plain": 6, "loop": 45, "string": 3000}
	for setting, want := range map[string]map[string]string{
		"auto":  {"plain": "yaegi", "loop": "ssa", "string": "ssa"},
		"ssa":   {"plain": "ssa", "loop": "ssa", "string": "ssa"},
		"yaegi": {"plain": "yaegi", "loop": "yaegi", "string": "ssa"},
	} {
		t.Run(setting, func(t *testing.T) {
			s := rig.Script{}
			for method, source := range programs {
				s["runner."+method] = []any{source}
			}
			args := []string{"--engine", setting}
			if setting == "auto" {
				args = nil
			}
			d := rig.Start(t, rig.NewModel(t, s), args...)
			if got := d.Get("/v1/version")["engine"]; got != setting {
				t.Errorf("version: engine %v, want %s", got, setting)
			}
			runs := map[string]float64{"ssa": 0, "yaegi": 0}
			session := d.Session("runner")
			for method, engine := range want {
				for range 2 { // forged, then stored
					r := d.Call(session, method, 3)
					d.WantValue(r, values[method], "")
					if r.Program.Engine != engine || r.Program.Tier != "engine" {
						t.Errorf("%s: engine %q, tier %q; want %s", method, r.Program.Engine, r.Program.Tier, engine)
					}
					if e := d.LogOf(r); e["program_engine"] != engine || e["program_tier"] != "engine" {
						t.Errorf("%s: log has engine %v, tier %v; want %s", method, e["program_engine"], e["program_tier"], engine)
					}
					runs[engine]++
				}
			}
			got := map[string]float64{}
			for engine := range runs {
				got[engine] = d.Metric(`recurgent_engine_runs_total{engine="` + engine + `"}`)
			}
			if !maps.Equal(got, runs) {
				t.Errorf("recurgent_engine_runs_total: %v, want %v", got, runs)
			}
		})
	}
}

// A call that no program answered has neither engine nor tier.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"runner.bad": {rig.Program("\treturn nil, undeclared"), rig.Program("\treturn nil, undeclared")}}))
	r := d.Call(d.Session("runner"), "bad")
	if r.Outcome.OK || r.Program.Engine != "" || r.Program.Tier != "" {
		t.Errorf("got %+v, %+v; want an error and no engine", r.Outcome, r.Program)
	}
	if n := d.Metric(`recurgent_engine_runs_total{engine="ssa"}`) + d.Metric(`recurgent_engine_runs_total{engine="yaegi"}`); n != 0 {
		t.Errorf("%v runs counted, want none", n)
	}
}

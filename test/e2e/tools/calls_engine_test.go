package tools

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Replies, log entries and the metric name the engine of a program, under each setting of --engine; ssa is
// an earlier name of go, and --native has no effect: a warning says so.
func TestEngines(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]struct{ engine, tier string }{"auto": {"go", "native"},
		"go": {"go", "native"}, "ssa": {"go", "native"}, "yaegi": {"yaegi", "engine"}} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{"runner.plain": {rig.Program(
				"\ta, _ := call.Args[0].(float64)\n\treturn a * 2, nil")},
				"runner.loop": {rig.Program(
					"\tn := 0\n\tfor i := 0; i < 10; i++ {\n\t\tn += i\n\t}\n\treturn n, nil")}})
			args := []string{"--engine", setting}
			if setting == "ssa" {
				args = append(args, "--native", "off")
			}
			if setting == "auto" {
				args = nil
			}
			d := rig.Start(t, m, args...)
			shown := setting
			if setting == "ssa" {
				shown = "go"
				for _, warning := range []string{"--engine ssa is an earlier name", "--native no longer has an effect"} {
					if !strings.Contains(d.Output.String(), warning) {
						t.Errorf("no warning: %s", warning)
					}
				}
			}
			if v := d.Get("/v1/version"); v["engine"] != shown || v["tier"] != want.tier {
				t.Errorf("version: engine %v, tier %v; want %s, %s", v["engine"], v["tier"], shown, want.tier)
			}
			session := d.Session("runner")
			for method, value := range map[string]any{"plain": 6, "loop": 45} {
				for range 2 { // forged, then stored
					r := d.Call(session, method, 3)
					d.WantValue(r, value, "")
					if r.Program.Engine != want.engine || r.Program.Tier != want.tier {
						t.Errorf("%s: engine %q, tier %q; want %v", method, r.Program.Engine, r.Program.Tier, want)
					}
					if e := d.LogOf(r); e["program_engine"] != want.engine || e["program_tier"] != want.tier {
						t.Errorf("%s: log has engine %v, tier %v; want %v", method, e["program_engine"],
							e["program_tier"], want)
					}
				}
			}
			for _, engine := range []string{"go", "ssa", "yaegi"} {
				n := 0.0
				if engine == want.engine {
					n = 4
				}
				if got := d.Metric(`recurgent_engine_runs_total{engine="` + engine + `"}`); got != n {
					t.Errorf("%v runs of %s, want %v", got, engine, n)
				}
			}
		})
	}
}

// A call that no program answered has neither engine nor tier.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t,
		rig.Script{"runner.bad": {rig.Program("\treturn nil, undeclared"), rig.Program("\treturn nil, undeclared")}}))
	r := d.Call(d.Session("runner"), "bad")
	if r.Outcome.OK || r.Program.Engine != "" || r.Program.Tier != "" {
		t.Errorf("got %+v, %+v; want an error and no engine", r.Outcome, r.Program)
	}
	if n := d.Metric(`recurgent_engine_runs_total{engine="go"}`) +
		d.Metric(`recurgent_engine_runs_total{engine="yaegi"}`); n != 0 {
		t.Errorf("%v runs counted, want none", n)
	}
}

// A program that has to be compiled ends with the remedy where there is no compiler, however it comes to run, and the
// model is not asked for another.
func TestWithoutCompiler(t *testing.T) {
	t.Parallel()
	closure := rig.Program("\tf := func() int { return 1 }\n\treturn f(), nil")
	m := rig.NewModel(t, rig.Script{"runner.closure": {closure, closure}})
	d := rig.Start(t, m, "--engine", "yaegi")
	refused := func(how string) {
		got := d.Call(d.Session("runner"), "closure")
		d.WantError(got, "unsupported_capability")
		if said := got.Outcome.ErrorMessage; !strings.Contains(said, "make build") ||
			!strings.Contains(said, "recurgentd doctor") || got.Outcome.Retriable {
			t.Errorf("%s: got %+v", how, got.Outcome)
		}
	}
	refused("forged")
	if n := len(m.Questions()); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
	args := d.Args
	d.Args = nil
	d.Restart()
	d.WantValue(d.Call(d.Session("runner"), "closure"), 1.0, "")
	d.Args = args
	d.Restart()
	refused("stored")
	d.Args = nil
	d.Restart()
	d.WantValue(d.Call(d.Session("runner"), "closure"), 1.0, "persisted")
}

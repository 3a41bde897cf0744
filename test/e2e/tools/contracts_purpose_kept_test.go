package tools

import (
	"strings"
	"testing"
)

// While a program waits, the words of before bring back what was made for them, also past the program that answered
// last, and without a request.
func TestPurposeSetBackWhileOneWaits(t *testing.T) {
	t.Parallel()
	d, m, s := warm(t, progKelvin, progRankine)
	registers(d, object{"purpose": toKelvin})
	d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
	examples(d, "units", "convert", example(485.15, 212))
	registers(d, object{"purpose": "celsius to rankine"})
	wantStale(d, d.Call(s, "convert", 0), 273.15)
	registers(d, object{"purpose": toFahrenheit})
	wantFresh(d, d.Call(s, "convert", 0), 32, "gen-1")
	registers(d, object{"purpose": toKelvin})
	wantFresh(d, d.Call(s, "convert", 0), 273.15, "gen-2")
	wantAsked(t, m, 3)
}

// A program that the model keeps has to hold the active examples, as a new one has to. One that does not is no answer,
// be it that the model says unchanged or gives the same program: it is asked again, with the example, and without
// budget the old program stays stale.
func TestPurposeKeptAgainstExamples(t *testing.T) {
	t.Parallel()
	for name, keeps := range map[string]any{"unchanged": unchanged(), "the same program": progFahrenheit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, m, s := warm(t, keeps, progKelvin)
			registers(d, object{"purpose": toKelvin})
			examples(d, "units", "convert", example(273.15, 0))
			d.WantValue(d.Call(s, "convert", 0), 273.15, "generated")
			if asked := m.LastQuestion().User; !strings.Contains(asked, "the answer must be 273.15, it is 32") {
				t.Errorf("the second request does not name the example:\n%s", asked)
			}
			wantFresh(d, d.Call(s, "convert", 0), 273.15, "gen-2")
			wantAsked(t, m, 3)
		})
		t.Run(name+" without budget", func(t *testing.T) {
			t.Parallel()
			d, m, s := warm(t, keeps)
			d.Policy(delaysOfHours)
			d.Policy(object{"outcome_repair_budget": 0})
			d = d.One()
			registers(d, object{"purpose": toKelvin})
			examples(d, "units", "convert", example(273.15, 0))
			for range 2 {
				wantStale(d, d.Call(s, "convert", 0), 32)
			}
			wantAsked(t, m, 2)
			if a := d.Artifact("units", "convert"); a["purpose_checked_at"] != nil ||
				a["current_generation"] != "gen-1" || a["failure_count"] != 0.0 {
				t.Errorf("checked at %v, %v is current, %v failures", a["purpose_checked_at"], a["current_generation"],
					a["failure_count"])
			}
		})
	}
}

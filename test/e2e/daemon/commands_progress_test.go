package daemon

import (
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// On a terminal one line changes with the stages and is wiped at the end; where colours are off it is plain; a pipe
// gets nothing at all of a call that is not streamed.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.slow": {rig.Held(rig.ProgAdd)}})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	named := regexp.MustCompile(`^call call_[0-9a-z\n]{26,28}\n5$`) // its id is for why, right and wrong
	for i, args := range [][]string{{"--stream"}, {}} {
		w := rig.OnTerminal(t, 60, 5, append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL, "NO_COLOR="),
			append([]string{"call", "calculator", "slow", "2", "3", "--session", s}, args...)...)
		if i == 0 {
			// The stage is shown for ten seconds, and then what the call waits for in its place: that is there until
			// the model answers.
			late := regexp.MustCompile(`waiting: the model has .*`)
			w.WaitFor("that the model is asked", func(screen string) bool {
				return strings.Contains(screen, "forging (initial_forge) (") || late.MatchString(screen)
			})
			w.Golden("call-stream.screen", func(screen string) string {
				screen = late.ReplaceAllString(screen, "forging (initial_forge) (N s)")
				return regexp.MustCompile(`(?m)^\S `).ReplaceAllString(regexp.MustCompile(`\d+ s`).ReplaceAllString(
					screen, "N s"), "* ")
			})
			m.Release()
		}
		w.Shows("5")
		w.Ends(0)
		if got := w.Screen(); !named.MatchString(got) {
			t.Errorf("%v: the screen is %q afterwards, want the call and the value alone", args, got)
		}
	}
	narrow := rig.NewModel(t, rig.Script{"calculator.slow": {rig.Held(rig.ProgAdd)}})
	d = rig.Start(t, narrow)
	w := rig.OnTerminal(t, 20, 5, append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL, "NO_COLOR=1"), "call",
		"calculator", "slow", "2", "3", "--session", d.Session("calculator"))
	w.Shows("calculator.slow")
	if got := w.Screen(); strings.Contains(got, "\n") {
		t.Errorf("the line wrapped: %q", got)
	}
	narrow.Release()
	w.Shows("5")
	w.Ends(0)
	if got := w.Screen(); !named.MatchString(got) || rig.Coloured(w.Bytes()) {
		t.Errorf("the screen is %q (%q)", got, w.Bytes())
	}
	out, errs, code := d.Client("call", "calculator", "slow", "2", "3", "--session", d.Session("calculator"))
	if out != "5\n" || !named.MatchString(errs+"5") || code != 0 {
		t.Errorf("in a pipe: %q, %q, %d", out, errs, code)
	}
}

package daemon

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// costly is an answer that costs many tokens.
func costly(tokens int) openaitest.Reply {
	return openaitest.Reply{Code: rig.ProgGiven, Prompt: tokens - 100, Completion: 100}
}

// caps sets caps of the namespace.
func caps(d *rig.Daemon, spend map[string]any) {
	d.T.Helper()
	d.Policy(map[string]any{"spend": spend})
}

// A month's cap holds over the end of a day and over a restart, and ends with the month of UTC.
func TestCapOfAMonth(t *testing.T) {
	t.Parallel()
	const used = 9000
	m := rig.NewModel(t, rig.Script{"worker.m01": {costly(used)}, ".": {rig.ProgGiven}})
	d, set := rig.StartAhead(t, m)
	now := time.Now().UTC()
	tenth := time.Date(now.Year(), now.Month()+1, 10, 12, 0, 0, 0, time.UTC)
	next := time.Date(now.Year(), now.Month()+2, 1, 0, 0, 0, 0, time.UTC)
	at := func(when time.Time) { set(time.Until(when).String()) }
	at(tenth)
	limitOf := most(d) + used/2
	caps(d, map[string]any{"day_tokens": 0, "month_tokens": limitOf})
	s := d.Session("worker")
	d.WantValue(d.Call(s, "m01", "x"), "x", "generated")
	month := limit{Scope: "namespace", Window: "month", Limit: limitOf, Used: used, ResetsAt: next.Format(time.RFC3339)}
	refused := func(when, method string) {
		t.Helper()
		got := d.Call(s, method, "x")
		wantOver(d, got, limitOf, used, month.ResetsAt)
		if got.Outcome.Metadata["scope"] != "namespace" || got.Outcome.Metadata["window"] != "month" {
			t.Errorf("%s: refused for %v", when, got.Outcome.Metadata)
		}
		wantLimit(d, month)
		d.WantValue(d.Call(s, "m01", "y"), "y", "persisted")
	}
	refused("the same day", "m02")
	at(tenth.Add(24 * time.Hour))
	refused("the next day", "m03")
	at(next.Add(-time.Hour))
	d.Restart()
	refused("in the last minute of the month", "m04")
	at(next.Add(time.Minute))
	d.WantValue(d.Call(s, "m05", "x"), "x", "generated")
	wantLimit(d, limit{Scope: "namespace", Window: "month", Limit: limitOf, Used: perForge,
		ResetsAt: next.AddDate(0, 1, 0).Format(time.RFC3339)})
	if n := len(m.Questions()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A cap of each method bounds one method and no other, and neither those of the same name in other roles.
func TestCapOfAMethod(t *testing.T) {
	t.Parallel()
	const used = 9000
	m := rig.NewModel(t, rig.Script{"worker.m01": {costly(used)}, ".": {rig.ProgGiven}})
	d, resets := start(t, m)
	limitOf := most(d) + used/2
	caps(d, map[string]any{"day_tokens": 0, "method_day_tokens": limitOf})
	s := d.Session("worker")
	d.WantValue(d.Call(s, "m01", "x"), "x", "generated")
	d.WantValue(d.Call(s, "m02", "x"), "x", "generated")
	d.WantValue(d.Call(d.Session("helper"), "m01", "x"), "x", "generated")
	d.Do(http.StatusNoContent, http.MethodDelete, rig.MethodPath("worker", "m01"), nil)
	got := d.Call(s, "m01", "x")
	if over := got.Outcome.Metadata; got.Outcome.ErrorType != "budget_exceeded" || over["scope"] != "method" ||
		over["window"] != "day" || over["limit"] != float64(limitOf) || over["used"] != float64(used) ||
		over["resets_at"] != resets {
		t.Errorf("one more of m01: %+v", got.Outcome)
	}
	for _, l := range usage(d, "").Limits {
		if want := map[string]int{"worker.m01": used, "worker.m02": perForge,
			"helper.m01": perForge}[l.Name]; l.Scope == "method" && l.Used != want {
			t.Errorf("limit %+v, want %d used", l, want)
		}
	}
	caps(d, map[string]any{"method_day_tokens": 0})
	d.WantValue(d.Call(s, "m01", "x"), "x", "generated") // without the cap it is asked for
	if n := len(m.Questions()); n != 4 {
		t.Errorf("the model was asked %d times", n)
	}
}

// Prices count from the moment on in which their file changes, for what was used before, too. A file that cannot be
// used leaves those in force, and the log says which line it is.
func TestPricesAreReadAgain(t *testing.T) {
	t.Parallel()
	file := rig.WriteFile(t, "prices.yaml",
		"currency: EUR\nmodels:\n  scripted: {input: 2, cached_input: 0.5, output: 8}\n")
	d, _ := start(t, rig.NewModel(t, rig.Script{"worker.m01": {rig.ProgGiven}}), "--model-prices", file)
	d.WantValue(d.Call(d.Session("worker"), "m01", "x"), "x", "generated")
	for _, step := range []struct {
		name, file, currency string
		cost                 *float64
	}{
		{"at the start", "", "EUR", money(0.00006)},
		{"dearer", "currency: USD\nmodels:\n  scripted: {input: 20, cached_input: 5, output: 80}\n", "USD",
			money(0.0006)},
		{"broken", "currency: USD\nmodels:\n  scripted: {input: 20, output: -1}\n", "USD", money(0.0006)},
		{"of other models", "currency: USD\nmodels:\n  another: {input: 1, cached_input: 1, output: 1}\n", "USD", nil},
		{"free", "currency: USD\nmodels:\n  scripted: {input: 0, cached_input: 0, output: 0}\n", "USD", money(0)},
		{"gone", "-", "USD", money(0)},
	} {
		switch step.file {
		case "":
		case "-":
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		default:
			rig.WriteAt(t, file+".new", step.file)
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}
		for _, one := range d.Each() {
			got := usage(one, "?by=method")
			if len(got.Data) != 1 || got.Currency != step.currency || (got.Data[0].Cost == nil) != (step.cost == nil) ||
				step.cost != nil && *got.Data[0].Cost != *step.cost {
				t.Errorf("%s: %s %s, want %v", step.name, got.Currency, encodedRows(t, got.Data), step.cost)
			}
		}
	}
	if log := d.Output.String(); !strings.Contains(log, "prices were read again") ||
		!strings.Contains(log, "the prices read before stay in force") || !strings.Contains(log, ":3") {
		t.Errorf("the log: %s", log)
	}
}

func money(amount float64) *float64 { return &amount }

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/cli"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// recurgentd usage prints what was spent, in the namespace that --namespace names, with the caps.
func TestUsageCommand(t *testing.T) {
	t.Parallel()
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("currency: EUR\nmodels:\n  scripted: {input: 1000000, output: 1000000}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	since := time.Now().UTC().Format(time.DateOnly) // the calls may stand on either side of midnight
	d := rig.Start(t, m, "--model-prices", prices)
	d.Policy(map[string]any{"spend": map[string]any{"day_tokens": 1_000_000}})
	d.Do(201, "PUT", "/v1/namespaces/acme", nil)
	s := d.Session("calculator")
	for range 3 {
		d.Call(s, "add", 2, 3)
	}
	for _, c := range []struct {
		args string
		code int
		want []string // lines, in order, with runs of blanks as one
	}{
		{"usage --since " + since, 0, []string{"METHOD CALLS WARM REQUESTS ", "calculator.add 3 2 1 ", "",
			"SCOPE NAME WINDOW LIMIT USED RESERVED RESETS-AT", "namespace - day 1000000 ", "",
			"OWNER FILES CONTEXTS HISTORIES VALUES TOOLS EXAMPLES", "local 0 "}},
		{"usage --by owner --since " + since, 0, []string{"OWNER CALLS ", "local 3 2 1 ", "", "SCOPE ", "namespace ",
			"", "OWNER FILES ", "local 0 "}},
		{"usage --by role --until 2001-01-01", 0, []string{"nothing", "", "SCOPE ", "namespace ", "", "OWNER FILES ",
			"local 0 "}},
		{"usage --namespace acme", 0, []string{"nothing", "", "no caps"}},
		{"usage --namespace none", cli.ExitUnreachable, nil},
		{"usage --by model", cli.ExitUsage, nil},
		{"usage --since 2026-11-02 --until 2026-11-01", cli.ExitUnreachable, nil},
	} {
		out, errs, code := d.Client(strings.Fields(c.args)...)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if code != c.code || (errs != "") != (code != 0) {
			t.Errorf("%s: %d %s", c.args, code, errs)
		}
		if len(lines) != max(1, len(c.want)) {
			t.Errorf("%s: %d lines, want %d:\n%s", c.args, len(lines), len(c.want), out)
			continue
		}
		for i, want := range c.want {
			if line := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(line, want) {
				t.Errorf("%s: line %q, want %q", c.args, line, want)
			}
		}
		if c.args == "usage --since "+since && strings.Count(out, " EUR") != 2 {
			t.Errorf("cost and saved cost are not in euros:\n%s", out)
		}
	}
}

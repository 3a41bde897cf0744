//go:build postgres

package replicas

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// doctor returns what doctor finds of the database.
func doctor(t *testing.T, database string) (result, detail string) {
	t.Helper()
	out, errs, _ := rig.Run(t, append(rig.Environment(t.TempDir()), "RECURGENT_STORE="+database), "doctor", "--output",
		"json")
	var report []struct{ Check, Result, Detail, Fix string }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("doctor: %v\n%s%s", err, out, errs)
	}
	for _, c := range report {
		if c.Check == "database" {
			return c.Result, c.Detail + " " + c.Fix
		}
	}
	t.Fatalf("doctor says nothing of the database: %s", out)
	return "", ""
}

// doctor says whether there is a synchronous standby, whether it is connected, and that a database cannot be reached.
func TestDoctorOfADatabase(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{Fsync: true})
	c.CreateDatabase(t, "examined")
	want := func(state, result, detail string) {
		t.Helper()
		if r, text := doctor(t, c.URL("examined")); r != result || !strings.Contains(text, detail) {
			t.Errorf("%s: doctor says %s: %s, want %s with %q", state, r, text, result, detail)
		}
	}
	want("alone", "warn", "there is no synchronous standby")
	c.AddStandby(t)
	want("with a standby", "ok", "nothing acknowledged is lost")
	c.KillStandby(t)
	want("whose standby is dead", "warn", "none is seen")
	c.Kill(t)
	want("dead", "fail", "check that the server runs")
}

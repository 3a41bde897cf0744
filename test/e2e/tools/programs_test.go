package tools

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// wantNoneLost checks that no runner died of a program and that the engine failed on none.
func wantNoneLost(t *testing.T, d *rig.Daemon) {
	t.Helper()
	for _, series := range []string{
		"recurgent_engine_failures_total",
		`recurgent_call_errors_total{error_type="runner_crash"}`,
		`recurgent_runners_killed_total{reason="died"}`,
		`recurgent_runners_killed_total{reason="failed"}`,
		`recurgent_runners_killed_total{reason="protocol"}`,
	} {
		if n := d.Metric(series); n != 0 {
			t.Errorf("%s is %v, want 0", series, n)
		}
	}
}

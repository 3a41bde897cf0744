package seeds

import (
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// 003, metrics: the rate of weak successes counts calls; reasons are counted apart.
func TestSeed003WeakSuccessRateCountsCalls(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"movie finder.find": {rig.ProgMoviesWeak}}))
	s := d.Session("movie finder", map[string]any{"contract": rig.MovieContract})
	for range 5 {
		d.Call(s, "find", "action")
	}
	d.Call(s, "find", "drama")
	for series, want := range map[string]float64{
		`recurgent_weak_success_calls_total`:                        5,
		`recurgent_weak_successes_total{reason="success_no_parse"}`: 5,
		`recurgent_weak_successes_total{reason="empty_array"}`:      5,
	} {
		if got := d.Metric(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if n := len(d.List("/v1/calls?weak_success=true")); n != 5 {
		t.Errorf("%d calls are weak, want 5", n)
	}
}

package daemon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The metrics of a new daemon are few: routes and codes of problems appear when they are used, and what alerts look for
// stands at zero.
func TestFreshDaemonHasFewSeries(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	series := func() (all, routes []string) {
		for line := range strings.Lines(string(d.Do(http.StatusOK, http.MethodGet, "/metrics", nil).Body)) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			all = append(all, line)
			if strings.HasPrefix(line, "recurgent_http_requests_total") {
				routes = append(routes, line)
			}
		}
		return all, routes
	}
	before, routes := series()
	t.Logf("%d series, %d of them of routes", len(before), len(routes))
	if len(before) > 1100 {
		t.Errorf("a new daemon has %d series", len(before))
	}
	if strings.Contains(strings.Join(routes, ""), "/v1/sessions") ||
		!strings.Contains(strings.Join(before, ""), `recurgent_http_problems_total{problem="queue_full"} 0`) {
		t.Errorf("routes: %q", routes)
	}
	d.Session("calculator")
	if _, routes := series(); !strings.Contains(strings.Join(routes, ""),
		`code="2xx",method="POST",route="/v1/sessions"} 1`) {
		t.Errorf("after a session: %q", routes)
	}
	d.Send(http.MethodGet, "/v1/sessions/sess_none", nil, nil)
	if all, _ := series(); !strings.Contains(strings.Join(all, ""),
		`recurgent_http_problems_total{problem="not_found"} 1`) {
		t.Error("a problem does not stand in the metrics")
	}
}

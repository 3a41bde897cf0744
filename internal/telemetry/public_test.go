package telemetry

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."},
		[]string{"role", "method", "status"})
	used := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "used", Help: "Used."}, []string{"namespace", "window"})
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: "Requests."},
		[]string{"route", "method"})
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds", Help: "Seconds.",
		Buckets: []float64{1}}, []string{"role"})
	reg.MustRegister(calls, used, requests, times)
	calls.WithLabelValues("secret-role", "add", "ok").Add(2)
	calls.WithLabelValues("secret-role", "sub", "ok").Add(3)
	calls.WithLabelValues("other", "add", "error").Inc()
	used.WithLabelValues("acme", "day").Set(0.5)
	used.WithLabelValues("beta", "day").Set(0.25)
	requests.WithLabelValues("/v1/calls", "GET").Inc()
	times.WithLabelValues("secret-role").Observe(1)
	want := `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{status="error"} 1
calls_total{status="ok"} 5
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{method="GET",route="/v1/calls"} 1
# HELP used Used.
# TYPE used gauge
used{window="day"} 0.75
`
	for range 2 { // twice, because the registry's own metrics must not change
		if err := testutil.GatherAndCompare(Public(reg), strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	if got := testutil.ToFloat64(calls.WithLabelValues("secret-role", "add", "ok")); got != 2 {
		t.Errorf("the counter itself is %v", got)
	}
}

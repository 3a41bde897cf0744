package telemetry

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func (m *Metrics) newHTTP(f factory) {
	m.httpRequests = f.counterVec("recurgent_http_requests_total", "HTTP requests by route pattern, method and class of status.", "route", "method", "code")
	m.httpDuration = f.histogramVec("recurgent_http_request_duration_seconds", "Time of HTTP requests by route pattern; event streams are not observed.", httpBuckets, "route", "method")
	m.httpInFlight = f.gauge("recurgent_http_requests_in_flight", "HTTP requests being answered.")
	m.throttled = f.counterVec("recurgent_throttled_total", "Requests that were refused because their principal or owner had too much of something: rate, calls, streams, uploads, bodies, replies.", "reason")
	for _, reason := range ThrottleReasons() {
		m.throttled.WithLabelValues(reason)
	}
	m.waiting = f.gaugeVec("recurgent_waiting", "Requests that wait, by what for: concurrency (of their token), replies (of their owner, or of all, to be read).", "cause")
	for _, cause := range WaitCauses() {
		m.waiting.WithLabelValues(cause)
	}
	m.problems = f.counterVec("recurgent_http_problems_total", "HTTP requests that were refused, by the problem's code.", "problem")
}

// ThrottleReasons are the values of the label reason of recurgent_throttled_total: what a principal, or an owner, had too much of.
func ThrottleReasons() []string {
	return []string{"rate", "calls", "streams", "uploads", "bodies", "replies"}
}

// Throttled returns the counter of one of ThrottleReasons.
func (m *Metrics) Throttled(reason string) prometheus.Counter {
	return m.throttled.WithLabelValues(reason)
}

// WaitCauses are the values of the label cause of recurgent_waiting.
func WaitCauses() []string { return []string{"concurrency", "replies"} }

// Waiting returns the gauge of one of WaitCauses.
func (m *Metrics) Waiting(cause string) prometheus.Gauge { return m.waiting.WithLabelValues(cause) }

// Route is the metrics of one route of the API.
type Route struct {
	inFlight prometheus.Gauge
	requests [5]prometheus.Counter // by class of status
	duration prometheus.Observer   // nil for streams
}

// Route returns the metrics of a route pattern and a method, both from the API's fixed table. stream says that its
// requests last as long as the client likes and have no duration worth observing.
func (m *Metrics) Route(pattern, method string, stream bool) *Route {
	r := &Route{inFlight: m.httpInFlight}
	for i := range r.requests {
		r.requests[i] = m.httpRequests.WithLabelValues(pattern, method, strconv.Itoa(i+1)+"xx")
	}
	if !stream {
		r.duration = m.httpDuration.WithLabelValues(pattern, method)
	}
	return r
}

// Begin counts a request as being answered.
func (r *Route) Begin() { r.inFlight.Inc() }

// End counts it as answered with the status.
func (r *Route) End(status int, d time.Duration) {
	r.inFlight.Dec()
	r.requests[min(max(status/100, 1), 5)-1].Inc()
	if r.duration != nil {
		r.duration.Observe(d.Seconds())
	}
}

// Problem returns the counter of a problem code, from the API's fixed table.
func (m *Metrics) Problem(code string) prometheus.Counter { return m.problems.WithLabelValues(code) }

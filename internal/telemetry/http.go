package telemetry

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func (m *Metrics) newHTTP(f factory) {
	m.httpRequests = f.counterVec("recurgent_http_requests_total",
		"HTTP requests by route pattern, method and class of status.", "route", "method", "code")
	m.httpDuration = f.histogramVec("recurgent_http_request_duration_seconds",
		"Time of HTTP requests by route pattern; event streams are not observed.", httpBuckets, "route", "method")
	m.httpInFlight = f.gauge("recurgent_http_requests_in_flight", "HTTP requests being answered.")
	m.throttled = f.counterVec("recurgent_throttled_total",
		"Requests that were refused because their principal or owner had too much of something: rate, calls, streams, uploads, bodies, replies.", "reason")
	for _, reason := range ThrottleReasons() {
		m.throttled.WithLabelValues(reason)
	}
	m.waiting = f.gaugeVec("recurgent_waiting",
		"Requests that wait, by what for: concurrency (of their token), replies (of their owner, or of all, to be read).", "cause")
	for _, cause := range WaitCauses() {
		m.waiting.WithLabelValues(cause)
	}
	m.problems = f.counterVec("recurgent_http_problems_total",
		"HTTP requests that were refused, by the problem's code.", "problem")
	m.problems.WithLabelValues(alerting)
}

// ThrottleReasons returns the values of the label reason of recurgent_throttled_total: the resource of which a
// principal or owner used too much.
func ThrottleReasons() []string {
	return []string{"rate", "calls", "streams", "uploads", "bodies", "replies"}
}

// Throttled returns the counter of one of ThrottleReasons.
func (m *Metrics) Throttled(reason string) prometheus.Counter {
	return m.throttled.WithLabelValues(reason)
}

// WaitCauses returns the values of the label cause of recurgent_waiting.
func WaitCauses() []string { return []string{"concurrency", "replies"} }

// Waiting returns the gauge of one of WaitCauses.
func (m *Metrics) Waiting(cause string) prometheus.Gauge { return m.waiting.WithLabelValues(cause) }

// alerting is the problem code that an alert watches. Its counter must exist from the start: an alert does not see the
// increase of a counter that appears with the value 1.
const alerting = "queue_full"

// Route has the metrics of one route of the API. Each series appears when it first counts, because most daemons never
// use most routes.
type Route struct {
	metrics         *Metrics
	pattern, method string
	stream          bool

	requests [5]atomic.Pointer[prometheus.Counter] // by class of status; nil until it first counts
	duration atomic.Pointer[prometheus.Observer]   // likewise; always nil for streams
}

// Route returns the metrics of a route. pattern and method come from the API's fixed table. stream marks a route whose
// requests last as long as the client likes, so their duration is not observed.
func (m *Metrics) Route(pattern, method string, stream bool) *Route {
	return &Route{metrics: m, pattern: pattern, method: method, stream: stream}
}

// failed is the class of status that an alert watches.
const failed = 5

// Begin counts a request as in flight.
func (r *Route) Begin() { r.metrics.httpInFlight.Inc() }

// End counts the request as answered with that status after d.
func (r *Route) End(status int, d time.Duration) {
	r.metrics.httpInFlight.Dec()
	// An invalid status counts in the nearest class.
	r.class(min(max(status/100, 1), 5)).Inc()
	if r.stream {
		return
	}
	duration := r.duration.Load()
	if duration == nil {
		made := r.metrics.httpDuration.WithLabelValues(r.pattern, r.method)
		duration = &made
		r.duration.Store(duration)
	}
	(*duration).Observe(d.Seconds())
}

// class returns the counter of a class of status. The counter of failures is created with the first counter of any
// class, because rate() needs a sample from before the first failure.
func (r *Route) class(n int) prometheus.Counter {
	if c := r.requests[n-1].Load(); c != nil {
		return *c
	}
	c := r.metrics.httpRequests.WithLabelValues(r.pattern, r.method, strconv.Itoa(n)+"xx")
	r.requests[n-1].Store(&c)
	if n != failed {
		r.class(failed)
	}
	return c
}

// Problem counts a problem. Its code must be in the API's fixed table.
func (m *Metrics) Problem(code string) { m.problems.WithLabelValues(code).Inc() }

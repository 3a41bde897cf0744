package telemetry

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
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

// Arguments of Reloaded.
const (
	ReloadTokens      = "tokens"
	ReloadCertificate = "certificate"
)

// accessMetrics are the metrics about access to the daemon.
type accessMetrics struct {
	reloads map[string]set // by what was reloaded
	expires prometheus.Gauge
	keys    set
}

func newAccess(f factory) accessMetrics {
	m := accessMetrics{reloads: map[string]set{},
		expires: f.gauge("recurgent_certificate_expires_timestamp_seconds",
			"When the first of the certificates of --tls-cert and --cluster-cert expires, in seconds since 1970; 0 without either."),
		keys: f.set("recurgent_issuer_key_fetches_total",
			"Attempts to fetch the keys of the OpenID Connect issuer, by result.", "result", results)}
	vec := f.counterVec("recurgent_reloads_total",
		"Changed files that were read while the daemon ran: tokens (--auth-tokens-file) or certificate (--tls-cert, --tls-key). After a failed one what was known before stays in use.", "what", "result")
	for _, what := range []string{ReloadTokens, ReloadCertificate} {
		m.reloads[what] = set{results, []prometheus.Counter{vec.WithLabelValues(what, results[0]),
			vec.WithLabelValues(what, results[1])}}
	}
	return m
}

// Reloaded counts an attempt to reload a changed file. what is ReloadTokens or ReloadCertificate; err is nil if it
// succeeded.
func (m *Metrics) Reloaded(what string, err error) { m.access.reloads[what].inc(result(err == nil)) }

// CertificateExpires sets the expiry time of the certificate in use.
func (m *Metrics) CertificateExpires(at time.Time) { m.access.expires.Set(float64(at.Unix())) }

// IssuerKeys counts an attempt to fetch the issuer's keys. err is nil if it succeeded.
func (m *Metrics) IssuerKeys(err error) { m.access.keys.inc(result(err == nil)) }

// Public returns a gatherer of the same metrics without labels that name a role, a method of a tool or a namespace, so
// anybody may see them. It sums series that differ only in these labels, and drops metrics that cannot be summed.
func Public(g prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := g.Gather()
		out := families[:0]
		for _, f := range families {
			if hides(f) {
				f = summed(f)
			}
			if f != nil {
				out = append(out, f)
			}
		}
		return out, err
	})
}

// private are the labels that Public removes. Beside role, the label method is removed as well.
var private = []string{"role", "namespace"}

// hides reports whether the family has a private label. The label method alone is an HTTP method, which is public.
func hides(f *dto.MetricFamily) bool {
	return slices.ContainsFunc(f.Metric, func(m *dto.Metric) bool {
		return slices.ContainsFunc(m.Label,
			func(l *dto.LabelPair) bool { return slices.Contains(private, l.GetName()) })
	})
}

// summed returns the family without its private labels, or nil if its series cannot be added up. It may change the
// gathered metrics, which are copies.
func summed(f *dto.MetricFamily) *dto.MetricFamily {
	out := &dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type, Unit: f.Unit}
	byLabels := map[string]*dto.Metric{}
	for _, m := range f.Metric {
		m.Label = slices.DeleteFunc(slices.Clone(m.Label), func(l *dto.LabelPair) bool {
			return l.GetName() == "method" || slices.Contains(private, l.GetName())
		})
		var key strings.Builder
		for _, l := range m.Label {
			key.WriteString(l.GetName() + "\x00" + l.GetValue() + "\x00")
		}
		sum := byLabels[key.String()]
		switch {
		case sum == nil && (m.Counter != nil || m.Gauge != nil):
			byLabels[key.String()] = m
			out.Metric = append(out.Metric, m)
		case m.Counter != nil:
			*sum.Counter.Value += m.Counter.GetValue()
		case m.Gauge != nil:
			*sum.Gauge.Value += m.Gauge.GetValue()
		default:
			return nil
		}
	}
	return out
}

package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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

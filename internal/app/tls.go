package app

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// ExpiresSoon is how long before its expiry a certificate causes warnings.
const ExpiresSoon = 14 * 24 * time.Hour

// certificate is a chain with its key. Leaf is set.
type certificate = tls.Certificate

// readCertificate parses a chain and its key. Errors do not quote their contents.
func readCertificate(contents ...[]byte) (certificate, error) {
	return tls.X509KeyPair(contents[0], contents[1])
}

// useTLS makes the server speak HTTPS and HTTP/2. Each new connection gets the current certificate.
func (a *App) useTLS(o *Options, m *telemetry.Metrics) {
	a.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.certificate.now.Load(), nil }}
	a.server.Protocols = new(http.Protocols)
	a.server.Protocols.SetHTTP1(true)
	a.server.Protocols.SetHTTP2(true)
	a.watchCertificate(o, o.certificate, m)
}

// watchCertificate watches a certificate, and reports the expiry of all certificates after each change.
func (a *App) watchCertificate(o *Options, c *file[certificate], m *telemetry.Metrics) {
	watch(a.files, c, func(err error) {
		m.Reloaded(telemetry.ReloadCertificate, err)
		if err == nil {
			a.reportEnds(o, m)
		}
	})
}

// reportEnds sets the metric of the earliest expiry, and logs a warning for each certificate that expires soon.
func (a *App) reportEnds(o *Options, m *telemetry.Metrics) {
	var first time.Time
	for _, c := range []struct {
		setting string
		*file[certificate]
	}{{"tls-cert", o.certificate}, {"cluster-cert", o.identity}} {
		if c.file == nil {
			continue
		}
		ends := c.now.Load().Leaf.NotAfter
		if time.Until(ends) < ExpiresSoon {
			a.log.Warn().Str("setting", c.setting).Time("not_after", ends).Msg("the certificate ends soon")
		}
		if first.IsZero() || ends.Before(first) {
			first = ends
		}
	}
	if !first.IsZero() {
		m.CertificateExpires(first)
	}
}

// CertificateEnds returns when the certificate expires; ok is false without TLS. Resolve must have been called.
func (o *Options) CertificateEnds() (at time.Time, ok bool) { return endOf(o.certificate) }

// ClusterCertificateEnds is CertificateEnds for the certificate between replicas.
func (o *Options) ClusterCertificateEnds() (at time.Time, ok bool) { return endOf(o.identity) }

// endOf returns when a certificate expires; ok is false without one.
func endOf(c *file[certificate]) (at time.Time, ok bool) {
	if c == nil {
		return at, false
	}
	return c.now.Load().Leaf.NotAfter, true
}

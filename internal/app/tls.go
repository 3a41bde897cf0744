package app

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// ExpiresSoon is how long before its end a certificate is worth a warning.
const ExpiresSoon = 14 * 24 * time.Hour

// certificate is a chain with its key. Its Leaf is parsed.
type certificate = tls.Certificate

// readCertificate reads the chain and its key. Errors quote nothing of them.
func readCertificate(contents ...[]byte) (certificate, error) {
	return tls.X509KeyPair(contents[0], contents[1])
}

// useTLS has the server speak HTTPS, HTTP/2 included, with the certificate that the files hold when a connection begins.
func (a *App) useTLS(o *Options, m *telemetry.Metrics) {
	a.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.certificate.now.Load(), nil }}
	a.server.Protocols = new(http.Protocols)
	a.server.Protocols.SetHTTP1(true)
	a.server.Protocols.SetHTTP2(true)
	a.watchCertificate(o, o.certificate, m)
}

// watchCertificate has a certificate read again when it changes, and reports when those that are in use end.
func (a *App) watchCertificate(o *Options, c *file[certificate], m *telemetry.Metrics) {
	watch(a.files, c, func(err error) {
		m.Reloaded(telemetry.ReloadCertificate, err)
		if err == nil {
			a.reportEnds(o, m)
		}
	})
}

// reportEnds says when the first certificate ends of those that are in use, and warns of each that ends soon.
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

// CertificateEnds returns when the certificate of the options, which have been resolved, ends; ok is false without TLS.
func (o *Options) CertificateEnds() (at time.Time, ok bool) { return endOf(o.certificate) }

// ClusterCertificateEnds is CertificateEnds of the certificate among replicas.
func (o *Options) ClusterCertificateEnds() (at time.Time, ok bool) { return endOf(o.identity) }

func endOf(c *file[certificate]) (at time.Time, ok bool) {
	if c == nil {
		return at, false
	}
	return c.now.Load().Leaf.NotAfter, true
}

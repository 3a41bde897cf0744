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
func (a *App) useTLS(c *file[certificate], m *telemetry.Metrics) {
	a.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil }}
	a.server.Protocols = new(http.Protocols)
	a.server.Protocols.SetHTTP1(true)
	a.server.Protocols.SetHTTP2(true)
	report := func() {
		ends := c.now.Load().Leaf.NotAfter
		m.CertificateExpires(ends)
		if left := time.Until(ends); left < ExpiresSoon {
			a.log.Warn().Time("not_after", ends).Msg("the certificate ends soon")
		}
	}
	report()
	watch(a.files, c, func(err error) {
		m.Reloaded(telemetry.ReloadCertificate, err)
		if err == nil {
			report()
		}
	})
}

// CertificateEnds returns when the certificate of the options, which have been resolved, ends; ok is false without TLS.
func (o *Options) CertificateEnds() (at time.Time, ok bool) {
	if o.certificate == nil {
		return at, false
	}
	return o.certificate.now.Load().Leaf.NotAfter, true
}

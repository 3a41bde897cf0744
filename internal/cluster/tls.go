package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// TLS holds the certificate a replica presents and the authorities it trusts. The functions are called for each
// connection, which allows the files to be replaced while the daemon runs. A peer counts as a replica if its
// certificate is issued by these authorities and shares a name with our own: see Names.
type TLS struct {
	Certificate func() *tls.Certificate
	Authorities func() *x509.CertPool
}

// server returns the configuration for connections from other replicas.
func (t *TLS) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config,
		error) {
		return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
				Certificates: []tls.Certificate{*t.Certificate()},
				ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: t.Authorities(),
				VerifyConnection: t.verifyName},
			nil
	}}
}

// client returns the configuration for connections to other replicas. Certificates do not name the peers' addresses,
// which belong to pods or machines that come and go. The peer is verified by its authority and by the name that
// replicas share.
func (t *TLS) client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.Certificate(),
				nil
		},
		InsecureSkipVerify: true, // VerifyConnection verifies the chain
		VerifyConnection:   t.verify,
	}
}

// verify does what InsecureSkipVerify turned off, except for the host name: it verifies the peer's chain, then calls
// verifyName.
func (t *TLS) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the peer shows no certificate")
	}
	o := x509.VerifyOptions{Roots: t.Authorities(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, c := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	if _, err := s.PeerCertificates[0].Verify(o); err != nil {
		return err
	}
	return t.verifyName(s)
}

// verifyName refuses a peer whose certificate has no name in common with our own. The certificate's chain has been
// verified already.
func (t *TLS) verifyName(s tls.ConnectionState) error {
	own, theirs := Names(t.Certificate().Leaf), Names(s.PeerCertificates[0])
	if slices.ContainsFunc(own, func(name string) bool { return slices.Contains(theirs, name) }) {
		return nil
	}
	return fmt.Errorf("the peer's certificate is for %q, replicas' are for %q", theirs, own)
}

// Names returns the DNS names and URIs of a certificate. If there are none, it returns the common name of the subject,
// if any.
func Names(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	if len(names) == 0 && c.Subject.CommonName != "" {
		names = []string{c.Subject.CommonName}
	}
	return names
}

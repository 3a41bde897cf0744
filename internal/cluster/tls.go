package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// TLS is what a replica shows to the others and what it accepts of them. The functions are asked for each connection, so that files may
// change. A replica is whoever has a certificate of the authorities that has a name in common with this one's: see Names.
type TLS struct {
	Certificate func() *tls.Certificate
	Authorities func() *x509.CertPool
}

// server is the configuration for connections of other replicas.
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

// client is the configuration for connections to other replicas. Their addresses are those of pods or machines that come and go, which no
// certificate names: the authority and the name that replicas share say that the peer is one.
func (t *TLS) client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.Certificate(),
				nil
		},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies the chain
		VerifyConnection:   t.verify,
	}
}

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

// verifyName refuses a peer whose certificate, which was verified, has no name in common with this replica's.
func (t *TLS) verifyName(s tls.ConnectionState) error {
	own, theirs := Names(t.Certificate().Leaf), Names(s.PeerCertificates[0])
	if slices.ContainsFunc(own, func(name string) bool { return slices.Contains(theirs, name) }) {
		return nil
	}
	return fmt.Errorf("the peer's certificate is for %q, replicas' are for %q", theirs, own)
}

// Names are the names of a certificate: DNS names and URIs or, where it has none of either, the common name of its subject.
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

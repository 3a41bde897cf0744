package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// TLS is what a replica shows to the others and what it accepts of them. The functions are asked for each connection, so that files may
// change. Whoever has a certificate of the authorities is a replica, whatever its name: they sign for nothing else.
type TLS struct {
	Certificate func() *tls.Certificate
	Authorities func() *x509.CertPool
}

// server is the configuration for connections of other replicas.
func (t *TLS) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{*t.Certificate()},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: t.Authorities()}, nil
	}}
}

// client is the configuration for connections to other replicas. Their addresses are those of pods or machines that come and go, which no
// certificate names: the authority alone says that the peer is a replica.
func (t *TLS) client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.Certificate(), nil },
		InsecureSkipVerify:   true, //nolint:gosec // VerifyConnection verifies the chain
		VerifyConnection:     t.verify,
	}
}

func (t *TLS) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the peer shows no certificate")
	}
	o := x509.VerifyOptions{Roots: t.Authorities(), Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, c := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(o)
	return err
}

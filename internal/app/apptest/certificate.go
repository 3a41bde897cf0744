// Package apptest provides certificates, addresses and servers for tests of a daemon.
package apptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Pair is a certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// NewPair returns a self-signed certificate for 127.0.0.1 and localhost that expires at ends. The serial number
// distinguishes certificates.
func NewPair(t testing.TB, serial int64, ends time.Time) Pair {
	t.Helper()
	return signed(t, nil, &x509.Certificate{SerialNumber: big.NewInt(serial),
		Subject: pkix.Name{CommonName: "recurgentd test"}, NotBefore: ends.AddDate(-10, 0, 0), NotAfter: ends,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

// signed returns a new key and a certificate for it, signed by the authority, or by itself if by is nil.
func signed(t testing.TB, by *Authority, c *x509.Certificate) Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := c, key
	if by != nil {
		parent, signer = by.der, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})}
}

// Write writes cert.pem and key.pem into the directory, not atomically.
func (p Pair) Write(t testing.TB, dir string) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, data := range map[string][]byte{cert: p.Cert, key: p.Key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

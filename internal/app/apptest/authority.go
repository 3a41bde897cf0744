package apptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority is a certificate authority for replicas in tests.
type Authority struct {
	Cert []byte // PEM
	der  *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns a new authority, valid for a year.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "replicas of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return &Authority{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), c, key}
}

// Pair returns a certificate for a replica. It has the common name "replica" and no DNS names.
func (a *Authority) Pair(t testing.TB, serial int64) Pair {
	t.Helper()
	return a.PairFor(t, serial, "replica")
}

// PairFor returns a certificate with that common name, which may be "", and those DNS names.
func (a *Authority) PairFor(t testing.TB, serial int64, name string, dns ...string) Pair {
	t.Helper()
	return signed(t, a, &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		DNSNames: dns, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth}})
}

// Write writes the authority's certificate to ca.pem in the directory.
func (a *Authority) Write(t testing.TB, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(path, a.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Package oidctest runs an OpenID Connect issuer on a loopback address, for tests: discovery, keys, and tokens of any
// kind, good and hostile.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A Key signs tokens.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// JWK is the key's public half as the issuer hands it out.
func (k Key) JWK() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig"}
}

// An Issuer hands out its keys. It may be used concurrently.
type Issuer struct {
	URL string

	mu       sync.Mutex
	keys     []Key
	replace  http.HandlerFunc // answers instead; nil: the issuer does
	requests int
}

// New starts an issuer with one RSA key, "rsa-1"; it ends with the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{}
	server := httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(server.Close)
	i.URL = server.URL
	i.SetKeys(RSA(t, "rsa-1"))
	return i
}

// SetKeys replaces the keys.
func (i *Issuer) SetKeys(keys ...Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// Replace has h answer all requests; nil ends that.
func (i *Issuer) Replace(h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.replace = h
}

// Requests is how many requests the issuer has received.
func (i *Issuer) Requests() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.requests++
	keys, replace := i.keys, i.replace
	i.mu.Unlock()
	if replace != nil {
		replace(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q, "authorization_endpoint": %q, "id_token_signing_alg_values_supported": ["RS256"]}`, i.URL, i.URL+"/keys", i.URL+"/auth")
	case "/keys":
		var set jose.JSONWebKeySet
		for _, k := range keys {
			set.Keys = append(set.Keys, k.JWK())
		}
		_ = json.NewEncoder(w).Encode(set)
	default:
		http.NotFound(w, r)
	}
}

// Claims are those of a good token of alice in namespace acme, for the audience recurgentd, from a minute ago for an
// hour; more is added, nil takes away.
func (i *Issuer) Claims(now time.Time, more map[string]any) map[string]any {
	c := map[string]any{"iss": i.URL, "aud": "recurgentd", "sub": "alice", "iat": now.Add(-time.Minute).Unix(),
		"exp":       now.Add(time.Hour).Unix(),
		"namespace": "acme", "scope": "openid read call"}
	for name, value := range more {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

// Token is a good token, signed with the first key.
func (i *Issuer) Token(t testing.TB, now time.Time, more map[string]any) string {
	t.Helper()
	return Sign(t, i.Key(), nil, i.Claims(now, more))
}

// Key is the first key.
func (i *Issuer) Key() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[0]
}

// Sign makes a token of the claims with these headers besides alg and kid; a header of the same name wins over kid.
// Claims that are []byte are the payload as it is.
func Sign(t testing.TB, key Key, headers map[jose.HeaderKey]any, claims any) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("JWT")
	if key.ID != "" {
		o = o.WithHeader("kid", key.ID)
	}
	for name, value := range headers {
		o = o.WithHeader(name, value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: key.Algorithm, Key: key.Private}, o)
	if err != nil {
		t.Fatal(err)
	}
	payload, ok := claims.([]byte)
	if !ok {
		if payload, err = json.Marshal(claims); err != nil {
			t.Fatal(err)
		}
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// RSA makes a key for RS256.
func RSA(t testing.TB, id string) Key {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, jose.RS256, k}
}

// EC makes a key for ES256.
func EC(t testing.TB, id string) Key {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, jose.ES256, k}
}

// Ed makes a key for EdDSA.
func Ed(t testing.TB, id string) Key {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, jose.EdDSA, k}
}

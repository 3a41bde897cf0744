// Package oidc finds the principals of tokens that an OpenID Connect issuer has signed (JWTs). It asks the issuer for its
// public keys only: at the start, when they are old, and when a token names a key that it does not know, at a bounded rate. No
// token is ever sent anywhere, logged, or part of an error.
//
// While the issuer cannot be reached, tokens signed with keys that are known go on working.
package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/cache"
)

const (
	// Skew is how far the issuer's clock may be from this machine's.
	Skew = time.Minute
	// MaxToken is the longest token, in bytes.
	MaxToken = 16 << 10
	// cached is how many verified tokens are kept.
	cached = 4096
)

// algorithms are those with a public key. With HS256 the public key would be the secret, and none is no signature.
var algorithms = []string{
	gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.PS256, gooidc.PS384, gooidc.PS512,
	gooidc.ES256, gooidc.ES384, gooidc.ES512, gooidc.EdDSA,
}

// Options configures an Issuer.
type Options struct {
	Issuer   string // its URL, as it stands in iss; see CheckURL
	Audience string // one of aud; required

	NameClaim      string // who it is; "": sub
	NamespaceClaim string // in which namespace the token acts; "": no token may do anything
	ScopeClaim     string // what it may do: names with spaces between them, or an array of names; "": scope

	Rate        float64 // requests per second of each owner; 0: no limit
	Concurrency int     // calls at once of each owner; 0: no limit

	Transport http.RoundTripper // to the issuer; nil: that of net/http
	Now       func() time.Time  // nil: time.Now
	Logger    zerolog.Logger
	Fetched   func(err error) // receives the result of each attempt to fetch the keys; may be nil
}

// An Issuer is an Authenticator of the issuer's tokens.
type Issuer struct {
	o     Options
	keys  *keys
	known cache.Cache[[sha256.Size]byte, *verified] // by digest of the token
}

// verified is a token whose signature has been checked.
type verified struct {
	access.Principal
	expires time.Time // exp and Skew
}

// New makes an Issuer and begins to fetch its keys; it does not wait for them. Close ends it.
func New(o Options) (*Issuer, error) {
	if err := CheckURL(o.Issuer); err != nil {
		return nil, err
	}
	if o.Audience == "" {
		return nil, errors.New("oidc: Audience is required")
	}
	if o.NameClaim == "" {
		o.NameClaim = "sub"
	}
	if o.ScopeClaim == "" {
		o.ScopeClaim = "scope"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Fetched == nil {
		o.Fetched = func(error) {}
	}
	known := cache.New[[sha256.Size]byte, *verified](cached)
	i := &Issuer{o: o, known: known}
	i.keys = newKeys(o, func() { known.InvalidateAll() })
	i.keys.refresh(o.Now())
	return i, nil
}

// Probe fetches the keys once and returns how many there are.
func Probe(ctx context.Context, issuer string) (int, error) {
	if err := CheckURL(issuer); err != nil {
		return 0, err
	}
	k := newKeys(Options{Issuer: issuer}, nil)
	defer k.close()
	set, err := k.fetch(ctx)
	if err != nil {
		return 0, errors.New(brief(err))
	}
	return len(set), nil
}

// Close ends what is being fetched, and waits for that.
func (i *Issuer) Close() { i.keys.close() }

// CheckURL returns an error unless an issuer may have that URL: https without user, query and fragment, or http to this machine.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("must be the https URL of an issuer")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("must have neither user, query nor fragment")
	}
	return checkSecure(u)
}

// checkSecure refuses plain http to other machines: whoever is in between could hand out keys of their own.
func checkSecure(u *url.URL) error {
	if u.Scheme == "https" {
		return nil
	}
	host := u.Hostname()
	addr, err := netip.ParseAddr(host)
	if u.Scheme == "http" && (strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()) {
		return nil
	}
	return errors.New("must be https; http is for this machine only")
}

// Authenticate implements access.Authenticator. A token that is not of the issuer, or that may not be used now, matches
// access.ErrUnknown; one that names no namespace is an *access.ForbiddenError; one that cannot be checked since the issuer
// cannot be asked for its key is an *access.UnavailableError.
func (i *Issuer) Authenticate(ctx context.Context, bearer string) (access.Principal, error) {
	if !shaped(bearer) {
		return access.Principal{}, access.ErrUnknown
	}
	now := i.o.Now()
	digest := digestOf(bearer)
	if v, ok := i.known.GetIfPresent(digest); ok {
		i.keys.refresh(now)
		if now.Before(v.expires) {
			return v.Principal, nil
		}
		i.known.Invalidate(digest)
		return access.Principal{}, expired(v.expires.Add(-Skew))
	}
	if !canonical(bearer) {
		return access.Principal{}, access.ErrUnknown
	}
	age := i.keys.age.Load()
	v, err := i.verify(ctx, bearer, now)
	if err != nil {
		return access.Principal{}, err
	}
	i.known.Set(digest, v)
	if i.keys.age.Load() != age { // keys have changed meanwhile, perhaps without that of this token
		i.known.Invalidate(digest)
	}
	return v.Principal, nil
}

// digestOf allocates nothing for tokens of the usual length.
func digestOf(bearer string) [sha256.Size]byte {
	var text [2 << 10]byte
	return sha256.Sum256(append(text[:0], bearer...))
}

// shaped reports whether the text can be a signed JWT in its compact form: three parts of base64url, the first of which begins
// with {".
func shaped(bearer string) bool {
	if len(bearer) > MaxToken || !strings.HasPrefix(bearer, "eyJ") || strings.Count(bearer, ".") != 2 {
		return false
	}
	for k := range len(bearer) {
		c := bearer[k]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// canonical reports whether each part is base64url as one would write it. go-jose ignores the bits after the last byte, so that
// a token could be written in several ways.
func canonical(bearer string) bool {
	for part := range strings.SplitSeq(bearer, ".") {
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return false
		}
	}
	return true
}

// client asks the issuer. It follows no redirects, so that nobody but the issuer hands out its keys.
func client(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: fetchTimeout}).DialContext, ForceAttemptHTTP2: true, MaxIdleConns: 1,
			IdleConnTimeout: time.Minute}
	}
	return &http.Client{Timeout: fetchTimeout, Transport: bounded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// bounded bounds the body of each reply.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxReply)
	}
	return resp, err
}

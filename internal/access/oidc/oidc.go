// Package oidc authenticates tokens that an OpenID Connect issuer has signed (JWTs). It contacts the issuer only for
// its public keys: at the start, when they are old, and, with a rate limit, when a token names an unknown key. Tokens
// are never sent anywhere or logged, and never appear in errors.
//
// While the issuer is unreachable, tokens signed with known keys keep working.
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
	// skew is the accepted difference between the issuer's clock and this machine's.
	skew = time.Minute
	// maxToken is the maximum length of a token in bytes.
	maxToken = 16 << 10
	// cached is the maximum number of cached verified tokens.
	cached = 4096
)

// algorithms are the accepted signature algorithms, all with public keys. HMAC (HS256) would use the public key as a
// secret, and "none" means no signature.
var algorithms = []string{
	gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.PS256, gooidc.PS384, gooidc.PS512,
	gooidc.ES256, gooidc.ES384, gooidc.ES512, gooidc.EdDSA,
}

// Options configures an Issuer.
type Options struct {
	Issuer   string // URL of the issuer, equal to the claim iss; see CheckURL
	Audience string // must be in the claim aud; required

	NameClaim      string // claim with the principal's name; "" means sub
	NamespaceClaim string // claim with the namespace of the token; if "", no token is accepted
	ScopeClaim     string // claim with the scopes, as a string separated by spaces or as an array; "" means scope

	Rate        float64 // requests per second of each owner; 0 means no limit
	Concurrency int     // concurrent calls of each owner; 0 means no limit

	Transport http.RoundTripper // for requests to the issuer; nil means a default one
	Now       func() time.Time  // nil means time.Now
	Logger    zerolog.Logger
	Fetched   func(err error) // called with the result of each attempt to fetch the keys; may be nil
}

// An Issuer is an access.Authenticator for tokens of one issuer. It is safe for concurrent use.
type Issuer struct {
	o     Options
	keys  *keys
	known cache.Cache[[sha256.Size]byte, *verified] // by the token's digest
}

// verified is a token whose signature has been verified.
type verified struct {
	access.Principal
	expires time.Time // exp plus skew
}

// New returns an Issuer and starts to fetch its keys in the background. The caller calls Close.
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

// Probe fetches the keys once and returns their number.
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

// Close cancels a running fetch and waits for its end.
func (i *Issuer) Close() { i.keys.close() }

// CheckURL returns an error unless the text is a valid issuer URL: https, or http to this machine, without user, query
// and fragment.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("must be the https URL of an issuer")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("must not have a user, query or fragment")
	}
	return checkSecure(u)
}

// checkSecure rejects plain http to other machines, because anyone in between could provide their own keys.
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

// Authenticate implements access.Authenticator. The error matches access.ErrUnknown if the token is not from the issuer
// or is not valid now. It is an *access.ForbiddenError if the token names no namespace, and an *access.UnavailableError
// if the token's key cannot be fetched.
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
		return access.Principal{}, expired(v.expires.Add(-skew))
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
	if i.keys.age.Load() != age { // the keys have changed meanwhile, perhaps without this token's key
		i.known.Invalidate(digest)
	}
	return v.Principal, nil
}

// digestOf returns the token's digest. It does not allocate for tokens of usual length.
func digestOf(bearer string) [sha256.Size]byte {
	var text [2 << 10]byte
	return sha256.Sum256(append(text[:0], bearer...))
}

// shaped reports whether the text can be a signed JWT in compact form: three parts of base64url, the first of which
// begins with {". This rejects most other tokens cheaply.
func shaped(bearer string) bool {
	if len(bearer) > maxToken || !strings.HasPrefix(bearer, "eyJ") || strings.Count(bearer, ".") != 2 {
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

// canonical reports whether each part is canonical base64url. go-jose ignores the unused bits of the last character, so
// one token would have several spellings, each with its own cache entry.
func canonical(bearer string) bool {
	for part := range strings.SplitSeq(bearer, ".") {
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return false
		}
	}
	return true
}

// client returns the HTTP client for the issuer. It follows no redirects, so only the issuer itself can provide keys.
func client(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: fetchTimeout}).DialContext, ForceAttemptHTTP2: true, MaxIdleConns: 1,
			IdleConnTimeout: time.Minute}
	}
	return &http.Client{Timeout: fetchTimeout, Transport: bounded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// bounded limits the size of each response body to maxReply.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxReply)
	}
	return resp, err
}

package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// maxTokenName is the maximum length of a principal's name in characters. The claim sub has at most 255.
const maxTokenName = 255

// verify checks the whole token. It reads claims only after the signature has been verified.
func (i *Issuer) verify(ctx context.Context, bearer string, now time.Time) (*verified, error) {
	a := attempt{keys: i.keys}
	// checkTimes checks the times instead: go-oidc accepts an nbf five minutes ahead and ignores iat.
	v := gooidc.NewVerifier(i.o.Issuer, &a, &gooidc.Config{ClientID: i.o.Audience, SupportedSigningAlgs: algorithms,
		SkipExpiryCheck: true})
	token, err := v.Verify(ctx, bearer)
	if a.err != nil {
		return nil, a.err
	}
	if err != nil {
		return nil, access.Unknown("the token is refused: %s", brief(err))
	}
	if token.Issuer != i.o.Issuer { // go-oidc accepts two issuers for Google
		return nil, access.Unknown("the token is of another issuer")
	}
	c, err := readClaims(a.payload)
	if err != nil {
		return nil, err
	}
	expires, err := c.checkTimes(now)
	if err != nil {
		return nil, err
	}
	p, err := i.principal(c)
	if err != nil {
		return nil, err
	}
	return &verified{p, expires.Add(skew)}, nil
}

// An attempt is the KeySet for one verification. It keeps the error of the signature check, because go-oidc would only
// keep its text.
type attempt struct {
	keys    *keys
	payload []byte
	err     error
}

// VerifySignature implements go-oidc's KeySet.
func (a *attempt) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	a.payload, a.err = a.check(ctx, raw)
	return a.payload, a.err
}

func (a *attempt) check(ctx context.Context, raw string) ([]byte, error) {
	var allowed []jose.SignatureAlgorithm
	for _, name := range algorithms {
		allowed = append(allowed, jose.SignatureAlgorithm(name))
	}
	signed, err := jose.ParseSignedCompact(raw, allowed)
	if err != nil {
		return nil, access.Unknown("the token is refused: %s", brief(err))
	}
	h := signed.Signatures[0].Protected
	typ, _ := h.ExtraHeaders[jose.HeaderType].(string)
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt":
	default: // such as logout+jwt, which is signed for another purpose
		return nil, access.Unknown("the token's typ is neither JWT nor at+jwt")
	}
	// Keys in the token's header (jwk, jku, x5c) are ignored: only the issuer's keys count.
	for again := false; ; again = true {
		keys, err := a.keys.candidates(ctx, h.KeyID, again)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if key.Algorithm != "" && key.Algorithm != h.Algorithm {
				continue
			}
			if payload, err := signed.Verify(key); err == nil {
				return payload, nil
			}
		}
		if again { // the keys were just fetched, because a new key may reuse the id of an old one
			return nil, access.Unknown("the token's signature is not the issuer's")
		}
	}
}

// claims are the members of a token's payload.
type claims map[string]json.RawMessage

// readClaims parses the payload. It rejects ambiguous input, such as a repeated claim.
func readClaims(payload []byte) (claims, error) {
	c := claims{}
	err := strict.Members(slices.Clone(payload), func(name, value []byte) error {
		c[string(name)] = slices.Clone(value)
		return nil
	})
	if err != nil {
		return nil, access.Unknown("the token's claims are not one JSON object, or name a claim twice")
	}
	return c, nil
}

// time reads a NumericDate. ok reports whether the claim exists.
func (c claims) time(name string) (at time.Time, ok bool, err error) {
	raw, ok := c[name]
	if !ok {
		return at, false, nil
	}
	const year10000 = 253402300800
	var n *float64
	if err := json.Unmarshal(raw, &n); err != nil || n == nil || !(*n >= 0 && *n < year10000) {
		return at, true, access.Unknown("the token's %s is not a time", name)
	}
	whole, part := math.Modf(*n)
	return time.Unix(int64(whole), int64(part*1e9)), true, nil
}

// checkTimes checks exp, nbf and iat, and returns when the token expires, without skew.
func (c claims) checkTimes(now time.Time) (expires time.Time, err error) {
	expires, ok, err := c.time("exp")
	switch {
	case err != nil:
		return expires, err
	case !ok:
		return expires, access.Unknown("the token never expires: it has no exp")
	case !now.Before(expires.Add(skew)):
		return expires, expired(expires)
	}
	for _, name := range []string{"nbf", "iat"} {
		at, ok, err := c.time(name)
		if err != nil {
			return expires, err
		}
		if ok && at.After(now.Add(skew)) {
			return expires, access.Unknown("the token is of the future: %s is %s", name, at.UTC().Format(time.RFC3339))
		}
	}
	return expires, nil
}

func expired(at time.Time) error {
	return access.Unknown("the token expired at %s", at.UTC().Format(time.RFC3339))
}

// text reads a claim that must be a non-empty string.
func (c claims) text(name string) (string, error) {
	raw, ok := c[name]
	if !ok {
		return "", errors.New("has no claim " + name)
	}
	text, ok := strict.String(raw)
	if !ok || text == "" {
		return "", errors.New("has a claim " + name + " that is not a text")
	}
	return text, nil
}

// principal maps the claims to a principal.
func (i *Issuer) principal(c claims) (p access.Principal, err error) {
	forbidden := func(reason string) (access.Principal, error) {
		return access.Principal{}, &access.ForbiddenError{Reason: reason}
	}
	p.Issuer, p.Rate, p.Concurrency = i.o.Issuer, i.o.Rate, i.o.Concurrency
	if p.Name, err = c.text(i.o.NameClaim); err != nil {
		return forbidden("the token names nobody: it " + err.Error())
	}
	if utf8.RuneCountInString(p.Name) > maxTokenName || strings.ContainsFunc(p.Name,
		func(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }) {
		return forbidden("the token's claim " + i.o.NameClaim +
			" is too long for a name, or has characters that cannot be seen")
	}
	if i.o.NamespaceClaim == "" {
		return forbidden("the daemon does not say which claim names a namespace (--oidc-namespace-claim), so that the issuer's tokens give no right here")
	}
	name, err := c.text(i.o.NamespaceClaim)
	if err != nil {
		return forbidden("the token names no namespace: it " + err.Error())
	}
	if p.Namespace = agent.Namespace(name); p.Namespace.Validate() != nil {
		return forbidden("the token's claim " + i.o.NamespaceClaim +
			" is not the name of a namespace: 1 to 63 characters of a-z, 0-9 and -, not - at either end")
	}
	p.Scopes = scopes(c[i.o.ScopeClaim])
	return p, nil
}

// scopes parses a string of names separated by spaces, or an array of names. It ignores unknown names, which are for
// other services.
func scopes(raw json.RawMessage) (all access.Scopes) {
	var list []string
	if text, ok := strict.String(raw); ok {
		list = strings.Fields(text)
	} else if json.Unmarshal(raw, &list) != nil {
		return 0
	}
	for _, name := range list {
		if s, ok := access.ParseScope(name); ok {
			all |= access.Scopes(s)
		}
	}
	return all
}

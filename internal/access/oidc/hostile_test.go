package oidc

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
)

func header(name string, value any) map[jose.HeaderKey]any {
	return map[jose.HeaderKey]any{jose.HeaderKey(name): value}
}

// encode builds a token by hand.
func encode(header, payload string, signature []byte) string {
	e := base64.RawURLEncoding
	return e.EncodeToString([]byte(header)) + "." + e.EncodeToString([]byte(payload)) + "." +
		e.EncodeToString(signature)
}

// hmacToken signs a token with a secret, as if it came from the issuer.
func hmacToken(t testing.TB, secret []byte, claims any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: secret},
		(&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", "rsa-1"))
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(claims)
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, _ := signed.CompactSerialize()
	return token
}

// hostile are tokens that must never work, by what is wrong with them.
func hostile(t testing.TB, id *oidctest.Issuer, key oidctest.Key, now time.Time) map[string]string {
	t.Helper()
	good := id.Token(t, now, nil)
	head, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	claims, _ := json.Marshal(id.Claims(now, nil))
	with := func(more map[string]any) string { return id.Token(t, now, more) }
	stranger, other := oidctest.RSA(t, "rsa-1"), oidctest.EC(t, "theirs")
	der, _ := x509.MarshalPKIXPublicKey(key.Private.Public())
	jwk, _ := key.JWK().MarshalJSON()
	signed := func(h map[jose.HeaderKey]any) string { return oidctest.Sign(t, stranger, h, id.Claims(now, nil)) }
	raw := func(payload string) string { return oidctest.Sign(t, key, nil, []byte(payload)) }
	text := string(claims)
	return map[string]string{
		"alg none, no signature":       encode(`{"alg":"none","kid":"rsa-1"}`, text, nil),
		"alg None":                     encode(`{"alg":"None","typ":"JWT"}`, text, []byte("x")),
		"alg none, the good signature": encode(`{"alg":"none","kid":"rsa-1"}`, text, nil) + signature,
		"alg empty":                    encode(`{"alg":"","kid":"rsa-1"}`, text, []byte("x")),
		"no alg":                       encode(`{"kid":"rsa-1"}`, text, []byte("x")),
		"HS256 with the modulus": hmacToken(t, key.Private.Public().(*rsa.PublicKey).N.Bytes(),
			id.Claims(now, nil)),
		"HS256 with the public key DER": hmacToken(t, der, id.Claims(now, nil)),
		"HS256 with the JWK":            hmacToken(t, jwk, id.Claims(now, nil)),
		"another algorithm of the key": oidctest.Sign(t, oidctest.Key{ID: "rsa-1", Algorithm: jose.PS256,
			Private: key.Private}, nil, id.Claims(now, nil)),
		"another key by that kid": signed(nil),
		"a kid of somebody's key": oidctest.Sign(t, other, nil, id.Claims(now, nil)),
		"its own key as jwk":      oidctest.Sign(t, stranger, header("jwk", stranger.JWK()), id.Claims(now, nil)),
		"its own key as jku":      signed(header("jku", "http://127.0.0.1:1/keys")),
		"its own key as x5u":      signed(header("x5u", "http://127.0.0.1:1/keys")),
		"a path as kid": oidctest.Sign(t, oidctest.Key{ID: "../../dev/null", Algorithm: jose.RS256,
			Private: stranger.Private}, nil, id.Claims(now, nil)),
		"a critical header":  oidctest.Sign(t, key, header("crit", []string{"exp"}), id.Claims(now, nil)),
		"a logout token":     oidctest.Sign(t, key, header("typ", "logout+jwt"), id.Claims(now, nil)),
		"an encrypted token": strings.Repeat("eyJh.", 4) + "eyJh",
		"JSON instead of the compact": `{"payload":"` + payload + `","protected":"` + head + `","signature":"` +
			signature + `"}`,
		"two signatures": `{"payload":"` + payload + `","signatures":[{"protected":"` + head +
			`","signature":"` + signature + `"}]}`,

		"another audience":        with(map[string]any{"aud": "other"}),
		"an audience with more":   with(map[string]any{"aud": "recurgentd2"}),
		"no audience":             with(map[string]any{"aud": nil}),
		"an empty list of them":   with(map[string]any{"aud": []string{}}),
		"an audience of numbers":  with(map[string]any{"aud": []int{1}}),
		"another issuer":          with(map[string]any{"iss": "https://evil.example"}),
		"the issuer with a slash": with(map[string]any{"iss": id.URL + "/"}),
		"the issuer in capitals":  with(map[string]any{"iss": strings.ToUpper(id.URL)}),
		"no issuer":               with(map[string]any{"iss": nil}),
		"expired":                 with(map[string]any{"exp": now.Add(-skew).Unix()}),
		"of the first second":     with(map[string]any{"exp": 0}),
		"no exp":                  with(map[string]any{"exp": nil}),
		"exp null":                raw(strings.Replace(text, `"exp":`, `"exp":null,"x":`, 1)),
		"exp as text":             with(map[string]any{"exp": fmt.Sprint(now.Add(time.Hour).Unix())}),
		"exp below zero":          with(map[string]any{"exp": -1}),
		"exp without end":         with(map[string]any{"exp": 1e300}),
		"exp by another name":     raw(strings.Replace(text, `"exp"`, `"EXP"`, 1)),
		"nbf ahead":               with(map[string]any{"nbf": now.Add(skew + time.Second).Unix()}),
		"nbf as text":             with(map[string]any{"nbf": "now"}),
		"iat ahead":               with(map[string]any{"iat": now.Add(skew + time.Second).Unix()}),
		"a claim twice":           raw(strings.Replace(text, `{`, `{"sub":"root",`, 1)),
		"exp twice": raw(strings.Replace(text, `{`,
			fmt.Sprintf(`{"exp":%d,`, now.Add(time.Hour).Unix()), 1)),
		"a payload that is nested": raw(good),
		"a payload that is a list": raw("[" + text + "]"),
		"a payload with a tail":    raw(text + text),
		"an empty payload":         raw("{}"),
		"deep claims": raw(strings.Replace(text, `{`,
			`{"deep":`+strings.Repeat("[", 4000)+strings.Repeat("]", 4000)+`,`, 1)),
		"giant": with(map[string]any{"more": strings.Repeat("a", maxToken)}),
		"a giant header": encode(`{"alg":"RS256","kid":"`+strings.Repeat("k", 4*maxToken)+`"}`, text,
			[]byte("x")),
		"a header twice": encode(`{"alg":"RS256","alg":"none","kid":"rsa-1"}`, text, []byte("x")),
		"no signature":   head + "." + payload + ".",
		"no payload":     head + ".." + signature,
		"two parts":      head + "." + payload,
		"four parts":     good + ".",
		"padding":        good + "=",
		"a line end":     good[:40] + "\n" + good[40:],
		"a space":        " " + good,
		"a zero byte":    good + "\x00",
		"the parts of two": head + "." + strings.Split(with(map[string]any{"sub": "root"}), ".")[1] + "." +
			signature,
		"signature bits in the pad": good[:len(good)-1] + nextInPad(good[len(good)-1]),
		"nothing":                   "", "dots": "..", "many dots": strings.Repeat(".", 1000), "only a header": "eyJ",
	}
}

// nextInPad returns another character with the same significant bits as c at the end of 256 bytes.
func nextInPad(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)^1])
}

func TestHostileTokens(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, nil)
	good := id.Token(t, at.Now(), nil)
	for name, token := range hostile(t, id, id.Key(), at.Now()) {
		for range 2 { // the first attempt must not make the second one work
			p, err := i.Authenticate(t.Context(), token)
			if !errors.Is(err, access.ErrUnknown) || p != (access.Principal{}) {
				t.Errorf("%s: %+v, %v", name, p, err)
				continue
			}
			if text := err.Error(); len(text) > 400 || len(token) > 20 &&
				(strings.Contains(text, token) || strings.Contains(text, good[len(good)-20:])) {
				t.Errorf("%s: the error quotes the token: %s", name, text)
			}
		}
	}
	if _, err := i.Authenticate(t.Context(), good); err != nil {
		t.Errorf("the good token among them: %v", err)
	}
	if i.known.EstimatedSize() != 1 {
		t.Errorf("%d tokens are cached", i.known.EstimatedSize())
	}
}

// A valid token with any byte changed is rejected.
func TestTamperedTokens(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, nil)
	id.SetKeys(oidctest.Ed(t, "ed"))
	at.add(refreshAfter)
	token := id.Token(t, at.Now(), nil)
	if _, err := i.Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	for k := range len(token) {
		for _, c := range []byte{token[k] ^ 1, token[k] ^ 0x20, 'A', '.', 0} {
			changed := token[:k] + string(rune(c&0x7f)) + token[k+1:]
			if changed == token {
				continue
			}
			if p, err := i.Authenticate(t.Context(), changed); err == nil {
				t.Errorf("byte %d as %q: %+v", k, c, p)
			}
		}
	}
}

// Any input is rejected without a panic, unless it is the issuer's own token.
func FuzzAuthenticate(f *testing.F) {
	id, at, i := newRig(f, nil)
	good := id.Token(f, at.Now(), nil)
	if _, err := i.Authenticate(f.Context(), good); err != nil {
		f.Fatal(err)
	}
	for _, token := range hostile(f, id, id.Key(), at.Now()) {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		p, err := i.Authenticate(t.Context(), token)
		if err == nil && (p.Name != "alice" || p.Issuer != id.URL) {
			t.Fatalf("%q is %+v", token, p)
		}
		if err != nil && p != (access.Principal{}) {
			t.Fatalf("%q: %+v and %v", token, p, err)
		}
	})
}

// For any claims, the resulting principal is within limits.
func FuzzPrincipal(f *testing.F) {
	for _, seed := range []string{`{}`, `{"sub":"a","namespace":"b","scope":"read","exp":1e9}`,
		`{"sub":"\ud800","namespace":"a","scope":["call",1]}`, `{"exp":1e-400}`} {
		f.Add([]byte(seed))
	}
	i := &Issuer{o: Options{Issuer: "https://id.example", NameClaim: "sub", NamespaceClaim: "namespace",
		ScopeClaim: "scope"}}
	f.Fuzz(func(t *testing.T, payload []byte) {
		c, err := readClaims(payload)
		if err != nil {
			return
		}
		now := time.Unix(1e9, 0)
		if at, err := c.checkTimes(now); err == nil && !now.Before(at.Add(skew)) {
			t.Fatalf("%s is good until %s", payload, at)
		}
		p, err := i.principal(c)
		if err == nil && (p.Name == "" || p.Namespace.Validate() != nil || p.Scopes&^access.All != 0 ||
			p.Issuer == "") {
			t.Fatalf("%s is %+v", payload, p)
		}
	})
}

// A cached token needs no signature check. Each warm call pays this cost.
func BenchmarkAuthenticate(b *testing.B) {
	id, at, i := newRig(b, nil)
	token := id.Token(b, at.Now(), nil)
	if _, err := i.Authenticate(b.Context(), token); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := i.Authenticate(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}

func TestKnownTokenAllocatesNothing(t *testing.T) {
	id, at, i := newRig(t, nil)
	token := id.Token(t, at.Now(), nil)
	if _, err := i.Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if got := testing.AllocsPerRun(100, func() { _, _ = i.Authenticate(ctx, token) }); got > 0 {
		t.Errorf("a known token makes %v allocations", got)
	}
}

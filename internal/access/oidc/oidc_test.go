package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/internal/agent"
)

// clock is a clock that tests can set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newRig starts an issuer and an Issuer for its tokens.
func newRig(t testing.TB, change func(*Options)) (*oidctest.Issuer, *clock, *Issuer) {
	t.Helper()
	at := &clock{now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	id := oidctest.New(t)
	return id, at, open(t, id, at, change)
}

func open(t testing.TB, id *oidctest.Issuer, at *clock, change func(*Options)) *Issuer {
	t.Helper()
	o := Options{Issuer: id.URL, Audience: "recurgentd", NamespaceClaim: "namespace", Now: at.Now,
		Logger: zerolog.Nop()}
	if change != nil {
		change(&o)
	}
	i, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	i.keys.settle()
	return i
}

// settle waits for the running attempt.
func (k *keys) settle() {
	k.mu.Lock()
	end := k.fetching
	k.mu.Unlock()
	if end != nil {
		<-end
	}
}

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, nil)
	ec, ed, plain := oidctest.EC(t, "ec"), oidctest.Ed(t, "ed"), oidctest.RSA(t, "")
	id.SetKeys(oidctest.RSA(t, "rsa-2"), ec, ed, plain)
	at.add(fetchEvery)
	want := access.Principal{Name: "alice", Issuer: id.URL, Namespace: "acme",
		Scopes: access.Scopes(access.Read | access.Call)}
	now := at.Now()
	for name, token := range map[string]string{
		"RS256":                 id.Token(t, now, nil),
		"ES256":                 oidctest.Sign(t, ec, nil, id.Claims(now, nil)),
		"EdDSA":                 oidctest.Sign(t, ed, nil, id.Claims(now, nil)),
		"no kid":                oidctest.Sign(t, plain, nil, id.Claims(now, nil)),
		"several audiences":     id.Token(t, now, map[string]any{"aud": []string{"other", "recurgentd"}}),
		"an array of scopes":    id.Token(t, now, map[string]any{"scope": []string{"call", "email", "read"}}),
		"no iat":                id.Token(t, now, map[string]any{"iat": nil}),
		"expired within skew":   id.Token(t, now, map[string]any{"exp": now.Add(-skew + time.Second).Unix()}),
		"of tomorrow in skew":   id.Token(t, now, map[string]any{"nbf": now.Add(skew).Unix()}),
		"a fraction of seconds": id.Token(t, now, map[string]any{"exp": float64(now.Unix()) + 0.5}),
		"an access token":       oidctest.Sign(t, ec, header("typ", "at+JWT"), id.Claims(now, nil)),
	} {
		for range 2 { // first verified, then from the cache
			if got, err := i.Authenticate(t.Context(), token); err != nil || got != want {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	if want.Owner() == (access.Principal{Name: "alice"}).Owner() {
		t.Error("the alice of the issuer owns what the alice of the file does")
	}
}

func TestClaimsAreMapped(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, func(o *Options) {
		o.NameClaim, o.NamespaceClaim, o.ScopeClaim = "email", "https://acme.example/team", "roles"
	})
	now := at.Now()
	got, err := i.Authenticate(t.Context(), id.Token(t, now, map[string]any{"email": "a/b@example.org",
		"https://acme.example/team": "x", "roles": []string{"operate", "root"}}))
	if want := (access.Principal{Name: "a/b@example.org", Issuer: id.URL, Namespace: agent.Namespace("x"),
		Scopes: access.Scopes(access.Operate)}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for name, scope := range map[string]any{"none": nil, "unknown ones": []string{"root"}, "a number": 7,
		"an object": map[string]any{"read": true}, "an array of numbers": []int{1},
		"another spelling": []string{"Read", "read,call"}} {
		got, err := i.Authenticate(t.Context(), id.Token(t, now,
			map[string]any{"email": "a", "https://acme.example/team": "x", "roles": scope}))
		if err != nil || got.Scopes != 0 {
			t.Errorf("scopes %s: %+v, %v", name, got, err)
		}
	}
}

// A valid token without a namespace is forbidden, and the error explains why.
func TestForbiddenTokens(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, nil)
	for name, c := range map[string]struct {
		more map[string]any
		want string
	}{
		"no namespace":         {map[string]any{"namespace": nil}, "no claim namespace"},
		"a list of namespaces": {map[string]any{"namespace": []string{"acme"}}, "not a text"},
		"a bad namespace":      {map[string]any{"namespace": "../acme"}, "not the name of a namespace"},
		"another's spelling":   {map[string]any{"namespace": nil, "Namespace": "acme"}, "no claim namespace"},
		"no name":              {map[string]any{"sub": nil}, "no claim sub"},
		"a long name":          {map[string]any{"sub": strings.Repeat("a", 256)}, "too long"},
		"a hidden name":        {map[string]any{"sub": "ali\u202ece"}, "cannot be seen"},
		"a name of two lines":  {map[string]any{"sub": "ali\nce"}, "cannot be seen"},
	} {
		_, err := i.Authenticate(t.Context(), id.Token(t, at.Now(), c.more))
		var bad *access.ForbiddenError
		if !errors.As(err, &bad) || !strings.Contains(bad.Reason, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unmapped := open(t, id, at, func(o *Options) { o.NamespaceClaim = "" })
	var bad *access.ForbiddenError
	if _, err := unmapped.Authenticate(t.Context(), id.Token(t, at.Now(),
		nil)); !errors.As(err, &bad) || !strings.Contains(bad.Reason, "--oidc-namespace-claim") {
		t.Errorf("no namespace claim configured: %v", err)
	}
}

func TestTokensExpireInTheCache(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, nil)
	token := id.Token(t, at.Now(), map[string]any{"exp": at.Now().Add(time.Hour).Unix()})
	for _, step := range []struct {
		after time.Duration
		good  bool
	}{{0, true}, {time.Hour, true}, {skew - time.Second, true}, {time.Second, false}, {0, false}} {
		at.add(step.after)
		i.keys.settle()
		if _, err := i.Authenticate(t.Context(), token); (err == nil) != step.good || err != nil &&
			(!errors.Is(err, access.ErrUnknown) || !strings.Contains(err.Error(), "expired at 2026-11-22T13:00:00Z")) {
			t.Errorf("at %s: %v", at.Now(), err)
		}
	}
}

func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, nil)
	old := id.Token(t, at.Now(), nil)
	if _, err := i.Authenticate(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	id.SetKeys(oidctest.EC(t, "ec-2"))
	fresh := id.Token(t, at.Now(), nil)
	if _, err := i.Authenticate(t.Context(), fresh); err != nil {
		t.Errorf("right after the rotation: %v", err)
	}
	if _, err := i.Authenticate(t.Context(), old); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("a token of the key that is gone: %v", err)
	}

	stranger := oidctest.Sign(t, oidctest.EC(t, "theirs"), nil, id.Claims(at.Now(), nil))
	for range 100 {
		if _, err := i.Authenticate(t.Context(), stranger); !errors.Is(err, access.ErrUnknown) {
			t.Fatalf("a stranger's token: %v", err)
		}
	}
	if got := id.Requests(); got != 2*atOnce { // discovery and keys
		t.Errorf("the issuer got %d requests, want %d", got, 2*atOnce)
	}
	id.SetKeys(oidctest.EC(t, "ec-3"))
	fresh = id.Token(t, at.Now(), nil)
	if _, err := i.Authenticate(t.Context(), fresh); !errors.Is(err, access.ErrUnknown) ||
		!strings.Contains(err.Error(), "fetched less than 5s ago") {
		t.Errorf("too soon after the last attempts: %v", err)
	}
	at.add(fetchEvery)
	if _, err := i.Authenticate(t.Context(), fresh); err != nil {
		t.Errorf("when keys may be fetched again: %v", err)
	}

	old = fresh
	id.SetKeys(oidctest.EC(t, "ec-3")) // another key with that id
	at.add(fetchEvery)
	if _, err := i.Authenticate(t.Context(), id.Token(t, at.Now(), nil)); err != nil {
		t.Errorf("after a rotation that keeps the id: %v", err)
	}
	if _, err := i.Authenticate(t.Context(), old); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("a token of the key that had the id before: %v", err)
	}
}

// A withdrawn key stops working, even if no token needs a new key.
func TestKeysAreRefreshed(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, nil)
	token := id.Token(t, at.Now(), map[string]any{"exp": at.Now().Add(24 * time.Hour).Unix()})
	if _, err := i.Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	id.SetKeys(oidctest.RSA(t, "rsa-1")) // another key with that id
	at.add(refreshAfter)
	if _, err := i.Authenticate(t.Context(), token); err != nil { // starts the refresh without waiting for it
		t.Fatal(err)
	}
	i.keys.settle()
	if _, err := i.Authenticate(t.Context(), token); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("a token of a withdrawn key: %v", err)
	}
}

// A flood of garbage does not cause a flood of requests to the issuer, and its tokens keep working.
func TestFloodOfUnknownKeys(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, nil)
	good := id.Token(t, at.Now(), nil)
	stranger := oidctest.EC(t, "")
	before := id.Requests()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for m := range 25 {
				token := oidctest.Sign(t, stranger, header("kid", fmt.Sprint(n, "-", m)), id.Claims(at.Now(), nil))
				if _, err := i.Authenticate(t.Context(), token); !errors.Is(err, access.ErrUnknown) {
					t.Errorf("a stranger's token: %v", err)
				}
				if _, err := i.Authenticate(t.Context(), good); err != nil {
					t.Errorf("a good token: %v", err)
				}
			}
		})
		at.add(fetchEvery)
	}
	all.Wait()
	if got := id.Requests() - before; got > 2*(atOnce+8) { // discovery and keys, at once and then once in fetchEvery
		t.Errorf("200 tokens of unknown keys made %d requests in %s", got, 8*fetchEvery)
	}
}

// An issuer that is unreachable, or sends nonsense, is retried. Known keys keep working.
func TestBrokenIssuer(t *testing.T) {
	t.Parallel()
	keysOnly := func(h http.HandlerFunc) func(*oidctest.Issuer) http.HandlerFunc {
		return func(id *oidctest.Issuer) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/.well") {
					fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, id.URL, id.URL+"/keys")
					return
				}
				h(w, r)
			}
		}
	}
	discovery := func(text string) func(*oidctest.Issuer) http.HandlerFunc {
		return func(id *oidctest.Issuer) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.ReplaceAll(text, "URL", id.URL))
			}
		}
	}
	reply := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, h := range map[string]func(*oidctest.Issuer) http.HandlerFunc{
		"an error": func(*oidctest.Issuer) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
		},
		"no HTTP": func(*oidctest.Issuer) http.HandlerFunc {
			return func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		},
		"no JSON":            discovery("<html>"),
		"another issuer":     discovery(`{"issuer": "https://evil.example", "jwks_uri": "URL/keys"}`),
		"no keys":            discovery(`{"issuer": "URL"}`),
		"keys by plain http": discovery(`{"issuer": "URL", "jwks_uri": "http://keys.example/"}`),
		"keys in a file":     discovery(`{"issuer": "URL", "jwks_uri": "file:///etc/keys"}`),
		"a redirect": keysOnly(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.example/keys", http.StatusFound)
		}),
		"keys that are none": keysOnly(reply(`[1]`)),
		"no usable key": keysOnly(reply(
			`{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "rsa-1"}, {"kty": "new"}]}`)),
		"a broken key": keysOnly(reply(
			`{"keys": [{"kty": "RSA", "n": "", "e": "AQAB", "kid": "rsa-1"}, 7, null]}`)),
		"too many keys":    keysOnly(reply(`{"keys": [` + strings.Repeat(`{},`, maxKeys) + `{}]}`)),
		"keys without end": keysOnly(func(w http.ResponseWriter, _ *http.Request) { flood(w, `{"keys": [`) }),
		"discovery without end": func(*oidctest.Issuer) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { flood(w, `{"issuer": "`) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := oidctest.New(t)
			at := &clock{now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
			token := id.Token(t, at.Now(), nil)
			id.Replace(h(id))
			fetched := map[bool]int{}
			i := open(t, id, at, func(o *Options) { o.Fetched = func(err error) { fetched[err == nil]++ } })
			var busy *access.UnavailableError
			if _, err := i.Authenticate(t.Context(), token); !errors.As(err, &busy) || busy.RetryAfter < time.Second ||
				busy.RetryAfter > fetchEvery {
				t.Fatalf("before the keys are known: %v", err)
			}
			id.Replace(nil)
			at.add(fetchEvery)
			if _, err := i.Authenticate(t.Context(), token); err != nil {
				t.Fatalf("when the issuer is back: %v", err)
			}
			id.Replace(h(id))
			at.add(refreshAfter)
			for range 2 {
				if _, err := i.Authenticate(t.Context(), token); err != nil {
					t.Errorf("a token of a key that is known: %v", err)
				}
				i.keys.settle()
			}
			at.add(fetchEvery)
			other := oidctest.Sign(t, oidctest.EC(t, "new"), nil, id.Claims(at.Now(), nil))
			if _, err := i.Authenticate(t.Context(), other); !errors.As(err, &busy) {
				t.Errorf("a token of a key that is not known: %v", err)
			}
			i.keys.settle()
			if fetched[true] != 1 || fetched[false] != 3 {
				t.Errorf("attempts: %v", fetched)
			}
		})
	}
}

func flood(w io.Writer, begin string) {
	_, _ = io.WriteString(w, begin)
	for range 3 * maxReply / 1024 {
		if _, err := io.WriteString(w, strings.Repeat(" ", 1024)); err != nil {
			return
		}
	}
}

// A request that waits for a slow issuer ends with its client. Close ends the attempt.
func TestSlowIssuer(t *testing.T) {
	t.Parallel()
	id, at, i := newRig(t, nil)
	asked := make(chan struct{}, 2)
	id.Replace(func(_ http.ResponseWriter, r *http.Request) { asked <- struct{}{}; <-r.Context().Done() })
	token := oidctest.Sign(t, oidctest.EC(t, "new"), nil, id.Claims(at.Now(), nil))
	good := id.Token(t, at.Now(), nil)
	at.add(fetchEvery)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() { _, err := i.Authenticate(ctx, token); ended <- err }()
	<-asked
	if _, err := i.Authenticate(t.Context(), good); err != nil {
		t.Errorf("a token of a key that is known waits: %v", err)
	}
	gone := errors.New("the client hung up")
	cancel(gone)
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	i.Close()
	if _, err := i.Authenticate(t.Context(), good); err != nil {
		t.Errorf("after Close: %v", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for url, good := range map[string]bool{
		"https://id.example": true, "https://id.example/realms/a": true, "http://127.0.0.1:80": true,
		"http://localhost:8080/x": true, "http://[::1]:1": true,
		"": false, "id.example": false, "http://id.example": false, "http://127.0.0.1.example": false,
		"ftp://127.0.0.1": false, "https://u@id.example": false,
		"https://id.example?x": false, "https://id.example#x": false, "https://": false, "file:///x": false,
	} {
		if err := CheckURL(url); (err == nil) != good {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, o := range []Options{{Issuer: "https://id.example"}, {Issuer: "http://id.example", Audience: "a"}} {
		if i, err := New(o); err == nil || i != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

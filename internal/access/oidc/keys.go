package oidc

import (
	"context"
	"crypto"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/recurgentd/recurgentd/internal/access"
)

const (
	// fetchEvery is the average time between two attempts to fetch keys, regardless of the tokens received. After a
	// failed attempt it is the minimum.
	fetchEvery = 5 * time.Second
	// atOnce is the number of attempts that may exceed this rate, so a token with a new key works at once.
	atOnce = 8
	// refreshAfter is the age at which known keys are fetched again, so withdrawn keys stop working.
	refreshAfter = 10 * time.Minute
	// fetchTimeout is the timeout of each of the two requests of an attempt.
	fetchTimeout = 5 * time.Second
	// maxReply is the maximum size of a response in bytes. maxKeys is the maximum number of keys in it: a token without
	// a key id is tried with each of them.
	maxReply = 1 << 20
	maxKeys  = 64
)

// keys are the public keys of an issuer. They are safe for concurrent use.
type keys struct {
	issuer  string
	client  *http.Client
	now     func() time.Time
	log     zerolog.Logger
	fetched func(error)
	changed func() // called when a key was withdrawn or replaced

	ctx    context.Context // context of fetches
	cancel context.CancelFunc
	under  sync.WaitGroup

	due atomic.Int64 // time of the next refresh, in nanoseconds since 1970
	age atomic.Int64 // number of changes of the keys

	attempts *rate.Limiter

	mu       sync.Mutex
	set      []jose.JSONWebKey
	have     bool          // set has been fetched at least once
	tried    time.Time     // start of the last attempt
	failure  error         // error of the last attempt
	fetching chan struct{} // closed at the end of the running attempt; nil if there is none
}

func newKeys(o Options, changed func()) *keys {
	k := &keys{issuer: o.Issuer, client: client(o.Transport), now: o.Now, log: o.Logger, fetched: o.Fetched,
		changed: changed, attempts: rate.NewLimiter(rate.Every(fetchEvery), atOnce)}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

func (k *keys) close() {
	k.cancel()
	k.under.Wait()
	k.client.CloseIdleConnections()
}

// refresh starts to fetch the keys if they are due. It does not wait.
func (k *keys) refresh(now time.Time) {
	if now.UnixNano() < k.due.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(now)
}

// begin starts an attempt, unless one is running or the last ones are too recent. It returns a channel that is closed
// at the end of the running attempt, or nil if there is none. The caller holds k.mu.
func (k *keys) begin(now time.Time) <-chan struct{} {
	if k.fetching != nil {
		return k.fetching
	}
	if k.ctx.Err() != nil || k.failure != nil && now.Sub(k.tried) < fetchEvery || !k.attempts.AllowN(now, 1) {
		return nil
	}
	k.tried = now
	// A failed attempt is repeated after fetchEvery. A successful one sets due to a later time.
	k.due.Store(now.Add(fetchEvery).UnixNano())
	done := make(chan struct{})
	k.fetching = done
	k.under.Go(func() {
		set, err := k.fetch(k.ctx)
		k.take(set, err)
		close(done)
	})
	return done
}

// take stores the result of an attempt. A failed attempt does not change the keys.
func (k *keys) take(set []jose.JSONWebKey, err error) {
	k.fetched(err)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fetching = nil
	if failed := k.failure != nil; err != nil && !failed && k.ctx.Err() == nil {
		k.log.Warn().Str("issuer", k.issuer).Str("error", brief(err)).Bool("keys_known",
			k.have).Msg("the keys of the issuer cannot be fetched; its tokens work as far as their keys are known")
	} else if err == nil && failed {
		k.log.Info().Str("issuer", k.issuer).Msg("the keys of the issuer have been fetched again")
	}
	if k.failure = err; err != nil {
		return
	}
	k.due.Store(k.tried.Add(refreshAfter).UnixNano())
	kept := !slices.ContainsFunc(k.set, func(old jose.JSONWebKey) bool {
		return !slices.ContainsFunc(set, func(one jose.JSONWebKey) bool { return same(old, one) })
	})
	k.set, k.have = set, true
	if !kept {
		k.age.Add(1)
		k.changed()
	}
}

// same reports whether two public keys and their ids are equal.
func same(a, b jose.JSONWebKey) bool {
	key, ok := a.Key.(interface{ Equal(crypto.PublicKey) bool })
	return ok && a.KeyID == b.KeyID && key.Equal(b.Key)
}

// candidates returns the keys with that id, or all keys if id is "". If there are none, or if again is set, it first
// fetches the keys, unless the last attempts are too recent. It waits for the fetch until ctx ends.
func (k *keys) candidates(ctx context.Context, id string, again bool) ([]jose.JSONWebKey, error) {
	now := k.now()
	k.mu.Lock()
	found := k.find(id)
	if len(found) > 0 && !again {
		k.mu.Unlock()
		k.refresh(now)
		return found, nil
	}
	end := k.begin(now)
	k.mu.Unlock()
	if end != nil {
		select {
		case <-end:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	wait := max(time.Second, fetchEvery-k.now().Sub(k.tried))
	switch found = k.find(id); {
	// With again, only keys that were just fetched count.
	case len(found) > 0 && !(again && end == nil):
		return found, nil
	// The key may exist, but the issuer did not answer.
	case (k.failure != nil || !k.have) && len(found) == 0:
		return nil, &access.UnavailableError{Reason: "the issuer " + k.issuer +
			" cannot be asked for the key of the token", RetryAfter: wait}
	// There was no fetch, because the last attempts were too recent.
	case end == nil:
		return nil, access.Unknown(
			"the token is signed with none of the issuer's keys, which were fetched less than %s ago", fetchEvery)
	}
	return nil, access.Unknown("the token is signed with none of the issuer's keys")
}

func (k *keys) find(id string) []jose.JSONWebKey {
	if id == "" {
		return k.set
	}
	var found []jose.JSONWebKey
	for _, key := range k.set {
		if key.KeyID == id {
			found = append(found, key)
		}
	}
	return found
}

// fetch asks the issuer's discovery document for the URL of the keys, and fetches them.
func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	p, err := gooidc.NewProvider(gooidc.ClientContext(ctx, k.client), k.issuer)
	if err != nil {
		return nil, err
	}
	var found struct {
		URL string `json:"jwks_uri"`
	}
	if err := p.Claims(&found); err != nil {
		return nil, err
	}
	u, err := url.Parse(found.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("jwks_uri is not a URL")
	}
	if err := checkSecure(u); err != nil {
		return nil, fmt.Errorf("jwks_uri %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, found.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the keys at %s: %s", found.URL, resp.Status)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return parseKeys(data)
}

// parseKeys returns the keys in a key set (RFC 7517) that can sign tokens. It ignores others, as the standard requires.
func parseKeys(data []byte) ([]jose.JSONWebKey, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("the keys are not a JSON Web Key Set: %w", err)
	}
	if len(raw.Keys) > maxKeys {
		return nil, fmt.Errorf("there are more than %d keys", maxKeys)
	}
	var set []jose.JSONWebKey
	for _, one := range raw.Keys {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(one); err == nil && usable(key) {
			set = append(set, key)
		}
	}
	if len(set) == 0 {
		return nil, errors.New("there is no key that tokens can be signed with")
	}
	return set, nil
}

// usable reports whether tokens may be signed with the key. RSA keys must be long enough to be secure, and short enough
// to be verified quickly.
func usable(key jose.JSONWebKey) bool {
	if !key.IsPublic() || !key.Valid() || key.Use != "" && key.Use != "sig" || key.Algorithm != "" &&
		!slices.Contains(algorithms, key.Algorithm) {
		return false
	}
	r, ok := key.Key.(*rsa.PublicKey)
	return !ok || r.N.BitLen() >= 2048 && r.N.BitLen() <= 8192
}

// brief returns the error's text on one line and with limited length. The text may quote the issuer's response.
func brief(err error) string {
	const most = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	return strings.ToValidUTF8(text[:min(len(text), most)], "?") // the cut may be within a character
}

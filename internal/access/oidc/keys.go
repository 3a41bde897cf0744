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
	// fetchEvery is the time between two attempts to fetch keys, on average, whatever tokens ask for. After one that failed it is the least.
	fetchEvery = 5 * time.Second
	// atOnce is how many attempts may follow each other without that, so that a token of a key that has just come works at once.
	atOnce = 8
	// refreshAfter is the age at which keys are fetched again although they are known, so that a withdrawn key ends.
	refreshAfter = 10 * time.Minute
	// fetchTimeout bounds each of the two requests of an attempt.
	fetchTimeout = 5 * time.Second
	// maxReply bounds a reply of the issuer, in bytes, and maxKeys the keys in it: a token without the id of its key is tried with each.
	maxReply = 1 << 20
	maxKeys  = 64
)

// keys are the public keys of an issuer. They may be used concurrently.
type keys struct {
	issuer  string
	client  *http.Client
	now     func() time.Time
	log     zerolog.Logger
	fetched func(error)
	changed func() // is called when a key has been withdrawn or replaced

	ctx    context.Context // of fetches
	cancel context.CancelFunc
	under  sync.WaitGroup

	due atomic.Int64 // when they are fetched again, in nanoseconds since 1970
	age atomic.Int64 // how often they have changed

	attempts *rate.Limiter

	mu       sync.Mutex
	set      []jose.JSONWebKey
	have     bool          // set was fetched at least once
	tried    time.Time     // when the last attempt began
	failure  error         // of the last attempt
	fetching chan struct{} // closed at the end of the attempt that is under way; nil: none is
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

// refresh begins to fetch the keys when they are due.
func (k *keys) refresh(now time.Time) {
	if now.UnixNano() < k.due.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(now)
}

// begin begins an attempt, unless one is under way or the last ones are too recent. It returns what is closed at the end of the
// attempt that is under way now, nil when there is none. k.mu is held.
func (k *keys) begin(now time.Time) <-chan struct{} {
	if k.fetching != nil {
		return k.fetching
	}
	if k.ctx.Err() != nil || k.failure != nil && now.Sub(k.tried) < fetchEvery || !k.attempts.AllowN(now, 1) {
		return nil
	}
	k.tried = now
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

// take takes the result of an attempt. An attempt that failed changes no key.
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

// same compares the public keys and their ids.
func same(a, b jose.JSONWebKey) bool {
	key, ok := a.Key.(interface{ Equal(crypto.PublicKey) bool })
	return ok && a.KeyID == b.KeyID && key.Equal(b.Key)
}

// candidates returns the keys with that id, all for "". Where there is none, or with again, they are fetched first, if
// the last attempts are not too recent.
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
	case len(found) > 0 && !(again && end == nil):
		return found, nil
	case (k.failure != nil || !k.have) && len(found) == 0:
		return nil, &access.UnavailableError{Reason: "the issuer " + k.issuer +
			" cannot be asked for the key of the token", RetryAfter: wait}
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

// fetch asks the issuer where its keys are, and for them.
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

// parseKeys returns the keys of a set (RFC 7517) that tokens may be signed with. Others are ignored, as the standard asks.
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

func usable(key jose.JSONWebKey) bool {
	if !key.IsPublic() || !key.Valid() || key.Use != "" && key.Use != "sig" || key.Algorithm != "" &&
		!slices.Contains(algorithms, key.Algorithm) {
		return false
	}
	r, ok := key.Key.(*rsa.PublicKey)
	return !ok || r.N.BitLen() >= 2048 && r.N.BitLen() <= 8192
}

// brief is the error's text without line ends, bounded: it may quote what the issuer replied.
func brief(err error) string {
	const most = 300
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	return text[:min(len(text), most)]
}

package connections

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
)

// A use is a connection used for one fetch.
type use struct {
	service *Service
	c       agent.Connection
	err     error // the reason why it cannot be used; may be nil

	mu     sync.Mutex
	secret string // the secret of the last request; guarded by mu, as are all fields below
	token  string // the access token of the last request
	sent   []string
	known  *mask.Known // of all values sent
}

// Name implements fetch.Connection.
func (u *use) Name() string { return u.c.Name }

// Grants implements fetch.Connection.
func (u *use) Grants(method string) bool { return grants(&u.c, method) }

// IdempotencyHeader implements fetch.Connection.
func (u *use) IdempotencyHeader() string { return u.c.IdempotencyHeader }

// Sign implements fetch.Connection. It reads the secret anew and adds it to r. The error is a *fetch.Refusal.
func (u *use) Sign(ctx context.Context, r *http.Request) error {
	secret, err := u.service.secret(&u.c)
	if u.err != nil {
		err = u.err
	}
	if err != nil {
		return u.refuse(err)
	}
	a := &u.c.Auth
	if a.Type == agent.AuthURL {
		return nil // the address itself is the credential
	}
	token := ""
	if a.Type == agent.AuthOAuth2 {
		if token, err = u.service.source(&u.c, secret).token(ctx); err != nil {
			return u.refuse(err)
		}
	}
	// Before the request is sent: from then on its response may echo the secret.
	u.remember(secret, token)
	switch a.Type {
	case agent.AuthBearer:
		r.Header.Set("Authorization", "Bearer "+secret)
	case agent.AuthHeader:
		r.Header.Set(a.Name, secret)
	case agent.AuthBasic:
		r.SetBasicAuth(a.Username, secret)
	case agent.AuthOAuth2:
		r.Header.Set("Authorization", "Bearer "+token)
	case agent.AuthQuery:
		r.URL.RawQuery = withParameter(r.URL, a.Name, secret)
	}
	return nil
}

// withParameter returns the query with the parameter set. It keeps the encoding of the other parameters unless it must
// replace one.
func withParameter(u *url.URL, name, value string) string {
	if q := u.Query(); q.Has(name) {
		q.Set(name, value)
		return q.Encode()
	}
	query := url.QueryEscape(name) + "=" + url.QueryEscape(value)
	if u.RawQuery != "" {
		query = u.RawQuery + "&" + query
	}
	return query
}

// refuse returns the error for an unusable connection. It blames neither the program nor the API.
func (u *use) refuse(err error) error {
	return &fetch.Refusal{Kind: fetch.KindConnection, Message: fmt.Sprintf("the connection %q cannot be used: %s",
		u.c.Name, err)}
}

// remember adds the values to those masked from now on.
func (u *use) remember(secret, token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.secret, u.token = secret, token
	before := len(u.sent)
	secrets := []string{secret}
	if u.c.Auth.Type == agent.AuthURL {
		secrets = partsOf(secret)
	}
	for _, v := range append(secrets, token) {
		if v != "" && !slices.Contains(u.sent, v) {
			u.sent = append(u.sent, v)
		}
	}
	if len(u.sent) > before {
		u.known = mask.NewKnown(u.sent...)
	}
}

// Renew implements fetch.Connection. It drops the access token, which may have been revoked early, and reports whether
// there was one. Other secrets cannot be renewed.
func (u *use) Renew(ctx context.Context) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.token == "" {
		return false
	}
	u.service.source(&u.c, u.secret).drop(ctx, u.token)
	return true
}

// Mask implements fetch.Connection. It masks all values that this fetch has sent.
func (u *use) Mask(ctx context.Context, text []byte) []byte {
	u.mu.Lock()
	known := u.known
	u.mu.Unlock()
	masked, _ := known.Until(ctx).Bytes(text)
	return masked
}

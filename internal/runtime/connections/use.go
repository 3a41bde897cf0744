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

// A use is a connection in one fetch.
type use struct {
	service *Service
	c       agent.Connection
	err     error // why it cannot be used; nil: not known

	mu     sync.Mutex
	secret string // that signed the last request; guarded by mu, as all below
	token  string // the access token that did
	sent   []string
	known  *mask.Known // of all that were sent
}

// Name is part of fetch.Connection.
func (u *use) Name() string { return u.c.Name }

// Grants is part of fetch.Connection.
func (u *use) Grants(method string) bool { return grants(&u.c, method) }

// IdempotencyHeader is part of fetch.Connection.
func (u *use) IdempotencyHeader() string { return u.c.IdempotencyHeader }

// Sign is part of fetch.Connection.
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
		return nil // the address is the credential
	}
	token := ""
	if a.Type == agent.AuthOAuth2 {
		if token, err = u.service.source(&u.c, secret).token(ctx); err != nil {
			return u.refuse(err)
		}
	}
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

// withParameter returns the query of the address with the parameter, and leaves the others as they are written where it can.
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

// refuse is the error of a connection that cannot be used: neither the program nor the API is to blame.
func (u *use) refuse(err error) error {
	return &fetch.Refusal{Kind: fetch.KindConnection, Message: fmt.Sprintf("the connection %q cannot be used: %s",
		u.c.Name, err)}
}

// remember has the values masked from now on.
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

// Renew is part of fetch.Connection: an access token may have ended before its time, any other secret is what it is.
func (u *use) Renew(ctx context.Context) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.token == "" {
		return false
	}
	u.service.source(&u.c, u.secret).drop(ctx, u.token)
	return true
}

// Mask is part of fetch.Connection.
func (u *use) Mask(ctx context.Context, text []byte) []byte {
	u.mu.Lock()
	known := u.known
	u.mu.Unlock()
	masked, _ := known.Until(ctx).Bytes(text)
	return masked
}

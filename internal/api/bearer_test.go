package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
)

// answers is an Authenticator of one principal or one error.
type answers struct {
	who access.Principal
	err error
}

func (a *answers) Authenticate(context.Context, string) (access.Principal, error) {
	return a.who, a.err
}

// turning is an Authenticator whose result tests can change.
type turning struct{ atomic.Pointer[answers] }

func (t *turning) Authenticate(ctx context.Context, bearer string) (access.Principal, error) {
	return t.Load().Authenticate(ctx, bearer)
}

// The result of an Authenticator determines the status, the code, the texts and, if it will pass, Retry-After.
func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err          error
		status       int
		code, detail string
		retry        string
	}{
		"unknown": {access.ErrUnknown, 401, codeUnauthenticated, "the request carries no known access token", ""},
		"expired": {access.Unknown("the token expired at %s", "noon"), 401, codeUnauthenticated,
			"the token expired at noon", ""},
		"forbidden": {&access.ForbiddenError{Reason: "the token names no namespace"}, 403, codeForbidden,
			"the token names no namespace", ""},
		"unavailable": {fmt.Errorf("x: %w", &access.UnavailableError{Reason: "the issuer is away",
			RetryAfter: 2500 * time.Millisecond}), 503, codeIssuer, "the issuer is away", "3"},
	} {
		g := newRig(t, func(o *Options) { o.Auth = &answers{err: c.err} })
		got := g.ask("GET", "/v1/version", "", "Authorization: Bearer x")
		p := got.json(t)
		if got.status != c.status || p["code"] != c.code || p["detail"] != c.detail ||
			got.header.Get("Retry-After") != c.retry ||
			(c.status == 401) != (got.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d %s, Retry-After %q", name, got.status, got.body, got.header.Get("Retry-After"))
		}
		if open := g.ask("GET", "/healthz", "", "Authorization: Bearer x"); open.status != 200 {
			t.Errorf("%s: /healthz is %d", name, open.status)
		}
	}
}

// A stream ends soon after its token does. It goes on while the token cannot be checked.
func TestStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	alice := access.Principal{Name: "alice", Namespace: "acme", Scopes: access.All}
	less := alice
	less.Scopes = access.Scopes(access.Read)
	for name, c := range map[string]struct {
		then answers
		ends bool
	}{
		"the same":        {answers{who: alice}, false},
		"an issuer away":  {answers{err: &access.UnavailableError{}}, false},
		"another fault":   {answers{err: errors.New("x")}, false},
		"withdrawn":       {answers{err: access.ErrUnknown}, true},
		"expired":         {answers{err: access.Unknown("expired")}, true},
		"no namespace":    {answers{err: &access.ForbiddenError{}}, true},
		"fewer rights":    {answers{who: less}, true},
		"somebody else's": {answers{who: access.Principal{Name: "bob"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				auth := &turning{}
				auth.Store(&answers{who: alice})
				s := &server{o: DefaultOptions()}
				s.o.Auth = auth
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events", nil)
				r.Header.Set("Authorization", "Bearer x")
				r, done := s.whileTokenLasts(&reply{who: alice}, r)
				defer done()
				time.Sleep(time.Hour)
				if err := r.Context().Err(); err != nil {
					t.Fatalf("the stream ended before its token: %v", context.Cause(r.Context()))
				}
				auth.Store(&c.then)
				time.Sleep(s.o.Recheck)
				synctest.Wait()
				if ended := errors.Is(context.Cause(r.Context()), errTokenEnded); ended != c.ends {
					t.Errorf("ended: %v, want %v", ended, c.ends)
				}
			})
		})
	}
}

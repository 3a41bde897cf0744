package connections

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
)

// A source gets access tokens with one secret, and keeps the last one until it ends.
type source struct {
	key    sourceKey
	config clientcredentials.Config
	client *http.Client

	turn chan struct{} // holds one: one token request at a time, and access to what is below
	last *oauth2.Token
}

// sourceKey is what a source was made for.
type sourceKey struct {
	revision, created int64
	secret            [32]byte // its digest
}

func newSource(key sourceKey, c *agent.Connection, secret string, t http.RoundTripper) *source {
	// A redirect is not followed: the secret is for the token endpoint alone.
	client := &http.Client{Transport: t, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return &source{key: key, client: client, turn: make(chan struct{}, 1),
		config: clientcredentials.Config{ClientID: c.Auth.ClientID, ClientSecret: secret, TokenURL: c.Auth.TokenURL,
			Scopes: c.Auth.Scopes}}
}

// enter takes the turn, unless ctx ends before.
func (s *source) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *source) leave() { <-s.turn }

// token returns an access token that has not ended.
func (s *source) token(ctx context.Context) (string, error) {
	if err := s.enter(ctx); err != nil {
		return "", errors.New("the token endpoint did not answer in time")
	}
	defer s.leave()
	if s.last.Valid() {
		return s.last.AccessToken, nil
	}
	t, err := s.config.Token(context.WithValue(ctx, oauth2.HTTPClient, s.client))
	if err != nil {
		return "", tokenError(ctx, err)
	}
	if why := unfit(t.AccessToken); why != "" {
		return "", errors.New("the token endpoint gave a token that " + why)
	}
	s.last = t
	return t.AccessToken, nil
}

// drop forgets the token, unless there is another one by now.
func (s *source) drop(ctx context.Context, token string) {
	if s.enter(ctx) != nil {
		return // the fetch is over
	}
	defer s.leave()
	if s.last != nil && s.last.AccessToken == token {
		s.last = nil
	}
}

// tokenError is the error without what the endpoint said, which may hold the secret: its status, and the code where it is one of
// RFC 6749.
func tokenError(ctx context.Context, err error) error {
	var answered *oauth2.RetrieveError
	var refused *fetch.Refusal
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("the token endpoint cannot be reached: %s", refused.Message)
	case errors.As(err, &answered) && answered.Response != nil:
		text := fmt.Sprintf("the token endpoint answered %d", answered.Response.StatusCode)
		if slices.Contains([]string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
			"unsupported_grant_type", "invalid_scope"}, answered.ErrorCode) {
			text += " (" + answered.ErrorCode + ")"
		}
		return errors.New(text)
	case ctx.Err() != nil:
		return errors.New("the token endpoint did not answer in time")
	}
	return errors.New("the token endpoint cannot be reached, or its answer holds no token")
}

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

// A source obtains access tokens with one secret and caches the last one until it expires.
type source struct {
	key    sourceKey
	config clientcredentials.Config
	client *http.Client

	turn chan struct{} // a semaphore of one: serializes token requests and guards the fields below
	last *oauth2.Token
}

// sourceKey identifies the connection and secret that a source was made for.
type sourceKey struct {
	revision, created int64
	secret            [32]byte // SHA-256
}

// newSource returns a token source that sends its requests through t.
func newSource(key sourceKey, c *agent.Connection, secret string, t http.RoundTripper) *source {
	// Do not follow redirects: the secret is meant for the token endpoint only.
	client := &http.Client{Transport: t, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return &source{key: key, client: client, turn: make(chan struct{}, 1),
		config: clientcredentials.Config{ClientID: c.Auth.ClientID, ClientSecret: secret, TokenURL: c.Auth.TokenURL,
			Scopes: c.Auth.Scopes}}
}

// enter acquires the turn, or returns the cause if ctx ends first.
func (s *source) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *source) leave() { <-s.turn }

// token returns a valid access token. Its errors do not contain the secret.
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
	// The token becomes a header, and is masked like a secret.
	if why := unfit(t.AccessToken); why != "" {
		return "", errors.New("the token endpoint returned a token that " + why)
	}
	s.last = t
	return t.AccessToken, nil
}

// drop discards the cached token if it is still this one.
func (s *source) drop(ctx context.Context, token string) {
	if s.enter(ctx) != nil {
		return // the fetch is over
	}
	defer s.leave()
	if s.last != nil && s.last.AccessToken == token {
		s.last = nil
	}
}

// tokenError returns an error without the endpoint's text, which may contain the secret. It keeps the status, and the
// error code if RFC 6749 defines it.
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

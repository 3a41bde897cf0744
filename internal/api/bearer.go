package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
)

// errTokenEnded is why a stream ends whose token was withdrawn, has expired, or may do something else than before.
var errTokenEnded = errors.New("the token of the stream has ended")

// whyUnknown is what the owner of a token that is not taken gets to know.
func whyUnknown(err error) string {
	if err == access.ErrUnknown { //nolint:errorlint // one that wraps it says more
		return "the request carries no known access token"
	}
	return err.Error()
}

// bearer returns the request's token.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// whileTokenLasts returns the request with a context that ends with its token: a stream may outlive it by Recheck. done must be
// called.
func (s *server) whileTokenLasts(w *reply, r *http.Request) (_ *http.Request, done func()) {
	token, ok := bearer(r)
	if s.o.Auth == nil || !ok {
		return r, func() {}
	}
	who := w.who
	ctx, cancel := context.WithCancelCause(r.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(s.o.Recheck)
		defer t.Stop()
		for {
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
			now, err := s.o.Auth.Authenticate(ctx, token)
			var forbidden *access.ForbiddenError
			if err == nil && now != who || errors.Is(err, access.ErrUnknown) || errors.As(err, &forbidden) {
				cancel(errTokenEnded)
			}
		}
	}()
	return r.WithContext(ctx), func() { cancel(nil); <-ended }
}

package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
)

// errTokenEnded ends a stream whose token was withdrawn, has expired, or now has other rights.
var errTokenEnded = errors.New("the token of the stream has ended")

// whyUnknown returns the detail that the sender of a rejected token gets.
func whyUnknown(err error) string {
	if err == access.ErrUnknown { // one that wraps it says more
		return "the request carries no known access token"
	}
	return err.Error()
}

// bearer returns the token of the Authorization header; ok reports whether the scheme is Bearer.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// whileTokenLasts returns the request with a context that ends with its token. The token is checked again every
// Options.Recheck, so a stream may outlive it by that long. The caller must call done.
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
			// other errors, such as an issuer that cannot be reached, do not end the stream
			if err == nil && now != who || errors.Is(err, access.ErrUnknown) || errors.As(err, &forbidden) {
				cancel(errTokenEnded)
			}
		}
	}()
	return r.WithContext(ctx), func() { cancel(nil); <-ended }
}

// protectedPath is where OAuth clients look up the issuer of tokens for this daemon (RFC 9728). The metadata of the MCP
// endpoint is below it.
const protectedPath = "/.well-known/oauth-protected-resource"

// protectedResource is the metadata of an OAuth protected resource.
type protectedResource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// getProtectedResource names the issuer of tokens. If there is none, it answers as for an unknown path.
func (s *server) getProtectedResource(w *reply, r *http.Request) error {
	if s.o.Issuer == "" {
		return s.noRoute(w, r)
	}
	return s.sendNow(w, http.StatusOK,
		protectedResource{Resource: s.address(r, strings.TrimPrefix(r.URL.Path, protectedPath)),
			Servers: []string{s.o.Issuer}, Scopes: access.All.Names(),
			Methods: []string{"header"}, Name: "recurgentd"})
}

// challenge returns the value of WWW-Authenticate for a request without a valid token; more is appended to it. On the
// MCP endpoint it points clients to the issuer.
func (s *server) challenge(r *http.Request, more string) string {
	if s.o.Issuer != "" && r.URL.Path == mcpPath {
		more += `, resource_metadata="` + s.address(r, protectedPath+mcpPath) + `"`
	}
	return `Bearer realm="recurgentd"` + more
}

package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/cors"
)

// AnyOrigin in Options.Origins allows the pages of every origin.
const AnyOrigin = "*"

// corsAge is for how many seconds a browser may cache the reply to a preflight request. Browsers cache it for two
// hours at most.
const corsAge = 7200

// exposed lists the reply headers that pages of other origins may read in addition to the CORS-safelisted ones.
var exposed = []string{"Content-Disposition", "Content-Range", "ETag", "Idempotent-Replayed", "Location",
	"Mcp-Session-Id", "Preference-Applied", "RateLimit", "RateLimit-Policy",
	headerAuditHead, headerAuditID, "Recurgent-Outcome", replicaHeader, "Recurgent-Spend", "Retry-After",
	"WWW-Authenticate", "X-Request-Id"}

// CheckOrigin returns an error unless a browser can send the text as the Origin of a page. It rejects AnyOrigin and
// "null".
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil {
		return err
	}
	if u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.ToLower(origin) != origin ||
		strings.Contains(origin, "*") {
		return errors.New("an origin is a scheme and a host in lower case, without a path")
	}
	if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" ||
		strings.HasSuffix(u.Host, ":") {
		return fmt.Errorf("leave out the default port of %s, as browsers do", u.Scheme)
	}
	return nil
}

// trust exempts the origins from the cross-origin check.
func (s *server) trust(origins []string) error {
	if slices.Contains(origins, AnyOrigin) {
		s.origin = nil
		return nil
	}
	for _, o := range origins {
		if err := s.origin.AddTrustedOrigin(o); err != nil {
			return err
		}
	}
	return nil
}

// crossOrigin wraps h with the CORS headers that let pages of the origins use it. Credentials are not allowed: tokens
// come in headers, never in cookies. The console is exempt, since it is loaded from the daemon's own origin only.
func crossOrigin(h http.Handler, origins []string) http.Handler {
	if len(origins) == 0 {
		return h
	}
	// AllowedHeaders includes Authorization; credentials stay off
	open := cors.New(cors.Options{
		AllowedOrigins: origins, AllowedHeaders: []string{"*"}, ExposedHeaders: exposed, MaxAge: corsAge,
		AllowPrivateNetwork: true,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
			http.MethodDelete},
	}).Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" || r.URL.Path == "/ui" || strings.HasPrefix(r.URL.Path, "/ui/") {
			h.ServeHTTP(w, r)
			return
		}
		open.ServeHTTP(w, r)
	})
}

package api

import (
	"net/http"
	"strings"

	"github.com/recurgentd/recurgentd/internal/access"
)

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

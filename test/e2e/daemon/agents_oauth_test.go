package daemon

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// With an issuer a client of MCP learns from the refusal where the metadata is, and from that who gives tokens; without one there is none.
func TestMCPClientsFindTheIssuer(t *testing.T) {
	t.Parallel()
	id := oidctest.New(t)
	d := rig.Start(t, nil, ofIssuer(id)...).One()
	const path = "/.well-known/oauth-protected-resource"
	for at, resource := range map[string]string{path: d.URL, path + "/mcp": d.URL + "/mcp"} {
		got := d.Get(at)
		want := object{"resource": resource, "authorization_servers": []any{id.URL}, "scopes_supported": []any{"read", "call", "operate", "admin"}, "bearer_methods_supported": []any{"header"}, "resource_name": "recurgentd"}
		if !rig.Equal(want, got) {
			t.Errorf("%s: %v, want %v", at, got, want)
		}
	}
	list := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	header := map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
	refused := d.Send(http.MethodPost, "/mcp", list, header)
	where := `resource_metadata="` + d.URL + path + `/mcp"`
	if got := refused.Header.Get("WWW-Authenticate"); refused.Status != http.StatusUnauthorized || got != `Bearer realm="recurgentd", `+where {
		t.Errorf("without a token: %d %q", refused.Status, got)
	}
	refused = d.As("of-nobody").Send(http.MethodPost, "/mcp", list, header)
	if got := refused.Header.Get("WWW-Authenticate"); got != `Bearer realm="recurgentd", error="invalid_token", `+where {
		t.Errorf("with a token of nobody: %q", got)
	}
	if got := d.Send(http.MethodGet, "/v1/me", nil, nil).Header.Get("WWW-Authenticate"); got != `Bearer realm="recurgentd"` {
		t.Errorf("another path: %q", got)
	}

	own := rig.Start(t, nil, "--auth-tokens-file", rig.WriteFile(t, "tokens", "ann ann-token-0123456789abcdef\n"))
	for _, at := range []string{path, path + "/mcp"} {
		if r := own.Send(http.MethodGet, at, nil, nil); r.Status != http.StatusNotFound {
			t.Errorf("%s without an issuer: %d %s", at, r.Status, r.Body)
		}
	}
	if got := own.Send(http.MethodPost, "/mcp", list, header).Header.Get("WWW-Authenticate"); got != `Bearer realm="recurgentd"` {
		t.Errorf("without an issuer: %q", got)
	}
}

package daemon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// With an issuer a client of MCP learns from the refusal where the metadata is, and from that who gives tokens; without
// one there is none.
func TestMCPClientsFindTheIssuer(t *testing.T) {
	t.Parallel()
	id := oidctest.New(t)
	d := rig.Start(t, nil, ofIssuer(id)...).One()
	const path = "/.well-known/oauth-protected-resource"
	for at, resource := range map[string]string{path: d.URL, path + "/mcp": d.URL + "/mcp"} {
		got := d.Get(at)
		want := object{"resource": resource, "authorization_servers": []any{id.URL},
			"scopes_supported": []any{"read", "call", "operate", "admin"}, "bearer_methods_supported": []any{"header"},
			"resource_name": "recurgentd"}
		if !rig.Equal(want, got) {
			t.Errorf("%s: %v, want %v", at, got, want)
		}
	}
	list := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	header := map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
	refused := d.Send(http.MethodPost, "/mcp", list, header)
	where := `resource_metadata="` + d.URL + path + `/mcp"`
	if got := refused.Header.Get("WWW-Authenticate"); refused.Status != http.StatusUnauthorized ||
		got != `Bearer realm="recurgentd", `+where {
		t.Errorf("without a token: %d %q", refused.Status, got)
	}
	refused = d.As("of-nobody").Send(http.MethodPost, "/mcp", list, header)
	if got := refused.Header.Get("WWW-Authenticate"); got != `Bearer realm="recurgentd", error="invalid_token", `+
		where {
		t.Errorf("with a token of nobody: %q", got)
	}
	if got := d.Send(http.MethodGet, "/v1/me", nil,
		nil).Header.Get("WWW-Authenticate"); got != `Bearer realm="recurgentd"` {
		t.Errorf("another path: %q", got)
	}

	own := rig.Start(t, nil, "--auth-tokens-file", rig.WriteFile(t, "tokens", "ann ann-token-0123456789abcdef\n"))
	for _, at := range []string{path, path + "/mcp"} {
		if r := own.Send(http.MethodGet, at, nil, nil); r.Status != http.StatusNotFound {
			t.Errorf("%s without an issuer: %d %s", at, r.Status, r.Body)
		}
	}
	if got := own.Send(http.MethodPost, "/mcp", list,
		header).Header.Get("WWW-Authenticate"); got != `Bearer realm="recurgentd"` {
		t.Errorf("without an issuer: %q", got)
	}
}

// Behind a proxy that ends TLS and serves the daemon below a path, all addresses that the daemon says of itself begin
// with the public one, whatever the request's headers say.
func TestPublicAddress(t *testing.T) {
	t.Parallel()
	const public = "https://tools.example.com/base"
	id := oidctest.New(t)
	d := rig.Start(t, nil, append(ofIssuer(id), "--public-url", public+"/", "--auth-tokens-file",
		rig.WriteFile(t, "tokens", "ann ann-token-0123456789abcdef\n"))...)
	spoofed := map[string]string{"X-Forwarded-Proto": "http", "X-Forwarded-Host": "evil.example",
		"Forwarded": "host=evil.example", "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream"}
	const path = "/.well-known/oauth-protected-resource"
	for at, resource := range map[string]string{path: public, path + "/mcp": public + "/mcp"} {
		if got := d.Send(http.MethodGet, at, nil, spoofed).Object(t)["resource"]; got != resource {
			t.Errorf("%s: %v", at, got)
		}
	}
	refused := d.Send(http.MethodPost, "/mcp", []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), spoofed)
	if got := refused.Header.Get("WWW-Authenticate"); !strings.Contains(got,
		`resource_metadata="`+public+path+`/mcp"`) {
		t.Errorf("WWW-Authenticate: %s", got)
	}
	if document := string(d.Send(http.MethodGet, "/openapi.yaml", nil,
		nil).Body); !strings.Contains(document, "\nservers:\n  - url: "+public+"\ntags:\n") {
		t.Error("the OpenAPI document has another server")
	}
	ann := d.As("ann-token-0123456789abcdef")
	for at, c := range map[string]struct{ method, body string }{
		"/v1/sessions": {http.MethodPost, `{"role":"calculator"}`}, "/v1/files": {http.MethodPost, "x"},
		"/v1/signatures/sum": {http.MethodPut, `{"inputs":[{"name":"a"}],"outputs":[{"name":"b"}]}`},
	} {
		made := ann.Send(c.method, at, []byte(c.body), spoofed)
		if got := made.Header.Get("Location"); made.Status != http.StatusCreated || !strings.HasPrefix(got, public+at) {
			t.Errorf("%s: %d, Location %q: %s", at, made.Status, got, made.Body)
		}
	}
}

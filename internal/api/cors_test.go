package api

import (
	"slices"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access"
)

const site = "https://app.example.com"

// Pages of allowed origins may use every operation and read the documented headers. Pages of other origins may not.
func TestPagesOfNamedOrigins(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *Options) { o.Origins = []string{site, "http://localhost:5173"} })
	for _, c := range []struct {
		what, method, path string
		headers            []string
		status             int
		allow              string // Access-Control-Allow-Origin
	}{
		{"a preflight request", "OPTIONS", "/v1/sessions", []string{"Origin: " + site,
			"Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: authorization,content-type,idempotency-key"}, 204, site},
		{"one of another origin", "OPTIONS", "/v1/sessions", []string{"Origin: https://evil.example",
			"Access-Control-Request-Method: POST"}, 204, ""},
		{"one for the console", "OPTIONS", "/ui/", []string{"Origin: " + site, "Access-Control-Request-Method: GET"},
			405, ""},
		{"a request", "POST", "/v1/sessions", []string{"Origin: " + site, "Sec-Fetch-Site: cross-site"}, 201, site},
		{"one of the other origin", "GET", "/v1/version", []string{"Origin: http://localhost:5173"}, 200,
			"http://localhost:5173"},
		{"one that is refused", "GET", "/v1/nothing", []string{"Origin: " + site}, 404, site},
		{"a change by another origin", "POST", "/v1/sessions", []string{"Origin: https://evil.example",
			"Sec-Fetch-Site: cross-site"}, 403, ""},
		{"a look by another origin", "GET", "/v1/version", []string{"Origin: https://evil.example"}, 200, ""},
		{"one of a longer name", "GET", "/v1/version", []string{"Origin: " + site + ".evil.example"}, 200, ""},
		{"a file without an origin", "GET", "/v1/version", []string{"Origin: null"}, 200, ""},
		{"a program", "GET", "/v1/version", nil, 200, ""},
		{"the console", "GET", "/ui/", []string{"Origin: " + site}, 200, ""},
	} {
		body := ""
		if c.method == "POST" {
			body = `{"role":"a"}`
		}
		got := g.ask(c.method, c.path, body, c.headers...)
		if got.status != c.status || got.header.Get("Access-Control-Allow-Origin") != c.allow ||
			got.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d, %v, want %d and %q", c.what, got.status, got.header, c.status, c.allow)
		}
		if c.path != "/ui/" && !slices.ContainsFunc(got.header["Vary"],
			func(v string) bool { return v == "Origin" || v[:7] == "Origin," }) {
			t.Errorf("%s: Vary is %q: a cache would give the answer to other origins", c.what, got.header["Vary"])
		}
	}
	if got := g.ask("OPTIONS", "/v1/policy", "", "Origin: "+site, "Access-Control-Request-Method: PATCH",
		"Access-Control-Request-Headers: if-match"); got.header.Get("Access-Control-Allow-Methods") != "PATCH" ||
		got.header.Get("Access-Control-Allow-Headers") != "if-match" {
		t.Errorf("a preflight request: %v", got.header)
	}
}

// Pages can read every documented reply header.
func TestPagesReadDescribedHeaders(t *testing.T) {
	t.Parallel()
	doc := loadDocument(t)
	for path, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for _, r := range op.Responses.Map() {
				for name := range r.Value.Headers {
					if !slices.Contains(exposed, name) {
						t.Errorf("%s: %s is not exposed", path, name)
					}
				}
			}
		}
	}
}

// "*" allows every page, if it has a token.
func TestPagesOfAnyOrigin(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *Options) {
		o.Origins = []string{AnyOrigin}
		o.Auth = access.NewTokens(access.NewToken(access.Principal{Name: "alice", Scopes: access.All}, "rgd_one"))
	})
	for header, status := range map[string]int{"Authorization: Bearer rgd_one": 201, "Cookie: token=rgd_one": 401} {
		got := g.ask("POST", "/v1/sessions", `{"role":"a"}`, "Origin: "+site, "Sec-Fetch-Site: cross-site", header)
		if got.status != status || got.header.Get("Access-Control-Allow-Origin") != "*" ||
			got.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d, %v, want %d", header, got.status, got.header, status)
		}
	}
}

// Without the setting there are no CORS headers.
func TestNoPageMayAsk(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	got := g.ask("OPTIONS", "/v1/sessions", "", "Origin: "+site, "Access-Control-Request-Method: POST")
	if got.status != 405 || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight request: %d, %v", got.status, got.header)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	for origin, good := range map[string]bool{
		"https://a.example": true, "http://localhost:5173": true, "http://[::1]:3000": true,
		"chrome-extension://abcdef": true, "vscode-webview://0a1b": true,
		"": false, "null": false, "*": false, "a.example": false, "https://": false, "https://a.example/": false,
		"https://a.example/x": false, "https://A.example": false, "HTTPS://a.example": false,
		"https://*.example": false, "https://u@a.example": false, "https://a.example:443": false,
		"http://a.example:80": false, "https://a.example:": false, "https://a.example?x": false,
		"https://a.example#x": false, "https://a example": false,
	} {
		if err := CheckOrigin(origin); (err == nil) != good {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

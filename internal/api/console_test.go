package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/ui"
)

// The root redirects browsers to the console. Other clients get 404.
func TestRootLeadsBrowsersToTheConsole(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	g.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for accept, status := range map[string]int{
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": 303,
		"application/json, text/html;q=0.5":                               303,
		"":                                                                404, "*/*": 404, "application/json": 404,
		"text/html;q=0": 404,
	} {
		got := g.ask("GET", "/", "", "Accept: "+accept)
		if got.status != status || (status == 303) != (got.header.Get("Location") == "ui/") ||
			got.header.Get("Vary") != "Accept" {
			t.Errorf("Accept: %q = %d, %v", accept, got.status, got.header)
		}
	}
	if got := g.ask("GET", "/ui", ""); got.status != 303 || got.header.Get("Location") != "ui/" {
		t.Errorf("/ui = %d, %v", got.status, got.header)
	}
}

// Everyone may load the console's page and files, under its policy, but not under another site's host name.
func TestConsoleIsServed(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]*rig{"open": newRig(t, nil),
		"with tokens": newRig(t, func(o *Options) { o.Auth = &answers{err: access.ErrUnknown} })} {
		page := g.ask("GET", "/ui/", "")
		if page.status != 200 || !strings.HasPrefix(page.header.Get("Content-Security-Policy"),
			"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-") ||
			page.header.Get("Cache-Control") != "no-cache" {
			t.Fatalf("%s: the page = %d, %v", name, page.status, page.header)
		}
		_, rest, _ := strings.Cut(string(page.body), `type="module" src="`)
		file, _, _ := strings.Cut(rest, `"`)
		if got := g.ask("GET", "/ui/"+file, ""); got.status != 200 ||
			!strings.HasPrefix(got.header.Get("Content-Type"), "text/javascript") ||
			got.header.Get("Content-Security-Policy") != ui.Policy {
			t.Errorf("%s: /ui/%s = %d, %v", name, file, got.status, got.header)
		}
		for _, none := range []string{"/ui/0000000000000000/core/main.js", "/ui/" + file + ".map", "/ui/x",
			strings.Replace("/ui/"+file, "core/", "core%2f..%2f", 1)} {
			if got := g.ask("GET", none, ""); got.status != 404 ||
				got.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %s = %d, %v", name, none, got.status, got.header)
			}
		}
	}
	if got := newRig(t, nil).ask("GET", "/ui/", "", "Host: evil.example"); got.status < 400 {
		t.Errorf("another host's name = %d", got.status)
	}
}

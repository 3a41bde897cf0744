package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
)

const knownConnection = "weather"

func connection1() operator.ConnectionView {
	v := operator.ConnectionView{SecretSet: true, Problem: "its secret cannot be decrypted"}
	v.Connection = agent.Connection{Name: knownConnection, Hosts: []string{"api.example.org"}, Methods: []string{"GET"},
		Roles: []string{"*"}, CreatedAt: at, UpdatedAt: at, Revision: 3}
	v.Auth.Type, v.Auth.Secret = agent.AuthBearer, &operator.SecretSource{Env: "RECURGENT_SECRET_X"}
	return v
}

func (f *fake) ListConnections(context.Context, string, int) ([]operator.ConnectionView, error) {
	return []operator.ConnectionView{connection1()}, f.note("ListConnections")
}

func (f *fake) Connection(_ context.Context, name string) (operator.ConnectionView, error) {
	return connection1(), f.known("Connection", name, knownConnection)
}

func (f *fake) PutConnection(_ context.Context, q operator.ConnectionPut) (operator.ConnectionView, bool, error) {
	f.connected = q
	if !store.Matches(q.Revision, 3) {
		return operator.ConnectionView{}, false, store.ErrConflict
	}
	return connection1(), q.Connection.Name != knownConnection, f.note("PutConnection")
}

func (f *fake) DeleteConnection(_ context.Context, name string, revision int64, _, _ string) error {
	if !store.Matches(revision, 3) {
		return store.ErrConflict
	}
	return f.known("DeleteConnection", name, knownConnection)
}

const goodConnection = `{"description":"d","hosts":["a.example.org"],"methods":["GET"],"roles":["*"],"auth":{"type":"oauth2","token_url":"https://x.example.org","client_id":"c","scopes":["s"],"secret":%s},"idempotency_header":"Idempotency-Key"}`

// A connection is decoded completely: with a secret, with a source of it, or with neither.
func TestPutConnection(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for secret, want := range map[string]string{`"swordfish-1"`: "swordfish-1 {  }",
		`{"env":"RECURGENT_SECRET_X"}`: "- {RECURGENT_SECRET_X }", `{"file":"x"}`: "- { x}", "null": "- { }"} {
		w := g.ask("PUT", "/v1/connections/weather", fmt.Sprintf(goodConnection, secret))
		if w.status != http.StatusOK || w.header.Get("ETag") != `"3"` {
			t.Fatalf("%s: %d %s", secret, w.status, w.body)
		}
		got := "-"
		if g.fake.connected.Secret != nil {
			got = *g.fake.connected.Secret
		}
		if got = strings.Join(strings.Fields(fmt.Sprint(got, " ", g.fake.connected.Source)),
			" "); got != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s: got %s, want %s", secret, got, want)
		}
		c := g.fake.connected.Connection
		if c.Name != "weather" || c.Auth.TokenURL == "" || c.Auth.ClientID != "c" || c.Auth.Scopes[0] != "s" ||
			c.IdempotencyHeader == "" || c.Hosts[0] != "a.example.org" {
			t.Errorf("got %+v", c)
		}
	}
	for header, status := range map[string]int{`If-Match: "3"`: 200, `If-Match: "2"`: 412, "If-Match: *": 200,
		"If-None-Match: *": 412} {
		if w := g.ask("PUT", "/v1/connections/weather", fmt.Sprintf(goodConnection, "null"),
			header); w.status != status {
			t.Errorf("%s: got %d, want %d", header, w.status, status)
		}
	}
}

// A connection is deleted only at the requested revision; a star accepts any revision.
func TestConnectionRevisions(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for header, status := range map[string]int{"X: y": 204, `If-Match: "3"`: 204, `If-Match: "2"`: 412,
		"If-Match: *": 204} {
		if w := g.ask("DELETE", "/v1/connections/weather", "", header); w.status != status {
			t.Errorf("DELETE with %s: got %d, want %d", header, w.status, status)
		}
	}
	for method, body := range map[string]string{"DELETE": "", "PUT": fmt.Sprintf(goodConnection, "null")} {
		if w := g.ask(method, "/v1/connections/none", body, "If-Match: *"); w.status != 412 {
			t.Errorf("%s with a star where there is none: got %d, want 412", method, w.status)
		}
	}
}

// Invalid connections are refused, and no reply repeats a possible secret.
func TestPutConnectionRefused(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for body, pointer := range map[string]string{
		`{"auth":{"type":"bearer","secret":["swordfish-1"]}}`:        "/auth/secret",
		`{"auth":{"type":"bearer","secret":{"swordfish-1":1}}}`:      "/auth/secret",
		`{"auth":{"type":"bearer","secret":{"env":"A","file":"b"}}}`: "/auth/secret",
		`{"auth":{"type":"bearer","secret":{}}}`:                     "/auth/secret", `{"auth":"swordfish-1"}`: "/auth",
		`{"hosts":[null]}`: "/hosts/0", `{"roles":"x"}`: "/roles", `{"secret":"swordfish-1"}`: "/secret",
		`{"auth":{"secret":"swordfish-1","password":"swordfish-1"}}`: "/auth/password",
	} {
		w := g.ask("PUT", "/v1/connections/weather", body)
		if w.status != http.StatusUnprocessableEntity || !strings.Contains(string(w.body), `"`+pointer+`"`) ||
			strings.Contains(string(w.body), "swordfish") {
			t.Errorf("%s: %d %s", body, w.status, w.body)
		}
	}
	if w := g.ask("PUT", "/v1/connections/No", "{}"); w.status != http.StatusUnprocessableEntity {
		t.Errorf("a name with a capital: %d", w.status)
	}
}

package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
)

// fakeSecrets seals a text by reversing it.
type fakeSecrets struct{}

func (fakeSecrets) Seal(_, secret string) ([]byte, error) {
	if secret == "unsealable" {
		return nil, errors.New("no key")
	}
	b := []byte(secret)
	for i := range len(b) / 2 {
		b[i], b[len(b)-1-i] = b[len(b)-1-i], b[i]
	}
	return b, nil
}

func (fakeSecrets) Problem(c *agent.Connection) string {
	if c.Auth.HasSecret() {
		return ""
	}
	return "it has no secret"
}

func weather(name string) agent.Connection {
	return agent.Connection{Name: strings.NewReplacer(" ", "-", ",", "").Replace(name),
		Hosts: []string{"api.example.org"}, Methods: []string{"GET"}, Roles: []string{"reporter"},
		Auth: agent.ConnectionAuth{Type: "header", Name: "X-Key"}}
}

// put puts a connection; secret "" means none.
func (g *rig) put(c agent.Connection, secret string) (operator.ConnectionView, error) {
	q := operator.ConnectionPut{Connection: c, Revision: store.AnyRevision, Actor: "ann"}
	if secret != "" {
		q.Secret = &secret
	}
	v, _, err := g.op.PutConnection(context.Background(), q)
	return v, err
}

// A PUT without a secret keeps the stored one, unless the connection would reach further.
func TestPutConnectionKeepsSecret(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for name, c := range map[string]struct {
		change func(c *agent.Connection)
		asks   string
	}{
		"description":   {func(c *agent.Connection) { c.Description = "forecasts" }, ""},
		"fewer roles":   {func(c *agent.Connection) { c.Roles = []string{"reporter"} }, ""},
		"fewer methods": {func(c *agent.Connection) { c.Methods = []string{"GET"} }, ""},
		"idempotency":   {func(c *agent.Connection) { c.IdempotencyHeader = "Idempotency-Key" }, ""},
		"host":          {func(c *agent.Connection) { c.Hosts = []string{"evil.example.org"} }, "hosts"},
		"fewer hosts":   {func(c *agent.Connection) { c.Hosts = c.Hosts[:1] }, "hosts"},
		"header":        {func(c *agent.Connection) { c.Auth.Name = "X-Other" }, "auth"},
		"type":          {func(c *agent.Connection) { c.Auth = agent.ConnectionAuth{Type: "bearer"} }, "auth"},
		"method":        {func(c *agent.Connection) { c.Methods = append(c.Methods, "POST") }, "methods"},
		"role":          {func(c *agent.Connection) { c.Roles = append(c.Roles, "other") }, "roles"},
		"every role":    {func(c *agent.Connection) { c.Roles = []string{"*"} }, "roles"},
	} {
		base := func() agent.Connection {
			b := weather(name)
			b.Hosts, b.Methods, b.Roles = []string{"api.example.org", "b.example.org"}, []string{"GET", "PUT"},
				[]string{"reporter", "boss"}
			return b
		}
		if v, err := g.put(base(), ""); err == nil {
			t.Errorf("made without a secret: %+v", v)
		}
		if v, err := g.put(base(), "first-secret"); err != nil || !v.SecretSet || v.Revision != 1 {
			t.Fatalf("%+v, %v", v, err)
		}
		next := base()
		c.change(&next)
		v, err := g.put(next, "")
		var refused *agent.InputError
		switch {
		case c.asks == "" && (err != nil || !v.SecretSet || v.Revision != 2):
			t.Errorf("%s: %+v, %v", name, v, err)
		case c.asks != "" && (!errors.As(err, &refused) || refused.Pointer != "/auth/secret" ||
			!strings.Contains(refused.Detail, ": "+c.asks+" would")):
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if c.asks != "" {
			if v, err := g.put(next, "second-secret"); err != nil || v.Revision != 2 {
				t.Errorf("%s, with a secret: %+v, %v", name, v, err)
			}
		}
	}
	if _, err := g.put(weather("weather"), "unsealable"); !errors.Is(err, operator.ErrNoSeal) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := g.op.Connection(t.Context(), "weather"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it was kept all the same: %v", err)
	}
}

// undo undoes the latest operation, and returns the connection's secret after it, or "-" if there is no connection.
func (g *rig) undo(t *testing.T, name string) (secret string, err error) {
	t.Helper()
	trail, err := g.op.Audit(t.Context(), store.AuditQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.op.Undo(t.Context(), operator.UndoRequest{AuditID: trail[0].ID, Actor: "ann", Admin: true})
	all, listErr := g.memory.ListConnections(t.Context())
	if listErr != nil {
		t.Fatal(listErr)
	}
	for _, c := range all {
		if c.Name == name {
			return string(c.Auth.Sealed), err
		}
	}
	return "-", err
}

// An undo restores a connection's settings, and never a secret.
func TestUndoConnection(t *testing.T) {
	t.Parallel()
	wider := func(name string) agent.Connection {
		c := weather(name)
		c.Roles = []string{"*"}
		return c
	}
	described := func(name string) agent.Connection {
		c := weather(name)
		c.Description = "forecasts"
		return c
	}
	type change struct {
		to     func(name string) agent.Connection // nil means deleted
		secret string
	}
	first := change{weather, "first-secret"}
	g := newRig(t, nil)
	for name, c := range map[string]struct {
		changes []change
		want    string // secret afterwards, or "refused"
	}{
		"made":               {[]change{first}, "-"},
		"described":          {[]change{first, {described, ""}}, "terces-tsrif"},
		"described, rotated": {[]change{first, {described, "second-secret"}}, "terces-dnoces"},
		"rotated":            {[]change{first, {weather, "second-secret"}}, "refused"},
		"widened":            {[]change{first, {wider, "second-secret"}}, "terces-dnoces"},
		"narrowed":           {[]change{{wider, "first-secret"}, {weather, ""}}, ""},
		"deleted":            {[]change{first, {nil, ""}}, ""},
	} {
		var err error
		for _, change := range c.changes {
			if change.to != nil {
				_, err = g.put(change.to(name), change.secret)
			} else {
				err = g.op.DeleteConnection(t.Context(), weather(name).Name, store.AnyRevision, "", "ann")
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		secret, err := g.undo(t, weather(name).Name)
		if err != nil {
			secret = "refused"
		}
		if secret != c.want {
			t.Errorf("%s: the secret is %q, want %q (%v)", name, secret, c.want, err)
		}
		if c.want != "-" {
			continue
		}
		if secret, err := g.undo(t, weather(name).Name); err != nil || secret != "" { // the undo is undone
			t.Errorf("%s, undone twice: %q, %v", name, secret, err)
		}
	}
	trail, err := g.op.Audit(t.Context(), store.AuditQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	text := string(agent.Encoded(trail))
	for _, never := range []string{"terces", "first-", "second-", "sealed"} {
		if strings.Contains(text, never) {
			t.Errorf("the audit trail holds %q: %s", never, text)
		}
	}
}

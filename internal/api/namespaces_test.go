package api

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// A request acts in the namespace of its token; an admin may name another one that exists.
func TestNamespaceOfARequest(t *testing.T) {
	t.Parallel()
	const admin, ben = "0123456789abcdef", "fedcba9876543210"
	tokens, err := access.ParseTokens([]byte("root " + admin + "\nben " + ben +
		" namespace=acme scopes=read,call,operate"))
	if err != nil {
		t.Fatal(err)
	}
	var all *one
	g := newRig(t, func(o *Options) {
		o.Auth = tokens
		all = o.Namespaces.(*one)
		all.made["other"] = true
	})
	for _, c := range []struct {
		name, token, header string
		status              int
		used                agent.Namespace // "" if none
	}{
		{"an admin's own", admin, "", 200, "default"},
		{"another's own", ben, "", 200, "acme"},
		{"another's own, named", ben, "acme", 200, "acme"},
		{"an admin elsewhere", admin, "other", 200, "other"},
		{"one that does not exist", admin, "none", 404, ""},
		{"no admin elsewhere", ben, "other", 403, ""},
		{"no admin, where nothing is", ben, "none", 403, ""},
		{"no name", admin, "Not/One", 400, ""},
		{"an empty name", admin, "", 200, "default"},
		{"no token", "unknown-token-here", "other", 401, ""},
	} {
		all.used = nil
		header := []string{"Authorization: Bearer " + c.token}
		if c.header != "" {
			header = append(header, namespaceHeader+": "+c.header)
		}
		got := g.ask("GET", "/v1/tools", "", header...)
		if got.status != c.status {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
		if want := []agent.Namespace{c.used}; c.used != "" && !slices.Equal(all.used, want) || c.used == "" &&
			all.used != nil {
			t.Errorf("%s: %v was used, want %q", c.name, all.used, c.used)
		}
	}
	if all.held != 0 {
		t.Errorf("%d uses were not given back", all.held)
	}
	if got := g.ask("GET", "/v1/namespaces", "", "Authorization: Bearer "+
		ben); got.status != 403 || got.json(t)["missing"] != "admin" {
		t.Errorf("the list of namespaces: %d %s", got.status, got.body)
	}
}

// Without tokens everyone on this machine may act in every existing namespace.
func TestNamespacesWithoutTokens(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, step := range []struct {
		method, path, header string
		status               int
	}{
		{"GET", "/v1/tools", "acme", 404}, {"PUT", "/v1/namespaces/acme", "", 201}, {"GET", "/v1/tools", "acme", 200},
		{"DELETE", "/v1/namespaces/acme", "", 204}, {"GET", "/v1/tools", "acme", 404},
	} {
		var header []string
		if step.header != "" {
			header = []string{namespaceHeader + ": " + step.header}
		}
		if got := g.ask(step.method, step.path, "", header...); got.status != step.status {
			t.Errorf("%s %s in %q: %d %s, want %d", step.method, step.path, step.header, got.status, got.body,
				step.status)
		}
	}
}

// endless streams until its client or its namespace has gone.
type endless struct{ *fake }

func (endless) Events(ctx context.Context, q operator.EventQuery, _ func(progress.Event) error) error {
	q.Listens()
	<-ctx.Done()
	return context.Cause(ctx)
}

// A stream ends when its namespace is deleted.
func TestStreamsEndWithTheirNamespace(t *testing.T) {
	t.Parallel()
	erased, erase := context.WithCancelCause(context.Background())
	g := newRig(t, func(o *Options) {
		all := o.Namespaces.(*one)
		all.erased, all.Runtime = erased, endless{&fake{}}
	})
	resp, err := http.Get(g.url + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Scan() // it has begun
	erase(errors.New("deleted"))
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

// counting is an Authenticator that counts its calls.
type counting struct {
	access.Authenticator
	asked chan struct{}
}

func (c counting) Authenticate(ctx context.Context, bearer string) (access.Principal, error) {
	select {
	case c.asked <- struct{}{}:
	case <-ctx.Done():
	}
	return c.Authenticator.Authenticate(ctx, bearer)
}

// caused returns the cause with which its stream ended.
type caused struct {
	*fake
	why chan error
}

func (c caused) Events(ctx context.Context, q operator.EventQuery, _ func(progress.Event) error) error {
	q.Listens()
	<-ctx.Done()
	c.why <- context.Cause(ctx)
	return context.Cause(ctx)
}

// In another namespace an admin acts under another owner, and streams there last as long as elsewhere.
func TestVisitors(t *testing.T) {
	t.Parallel()
	const admin = "0123456789abcdef"
	tokens, err := access.ParseTokens([]byte("bob " + admin + " namespace=acme"))
	if err != nil {
		t.Fatal(err)
	}
	auth, erased := counting{tokens, make(chan struct{})}, errors.New("deleted")
	until, erase := context.WithCancelCause(context.Background())
	run := caused{&fake{}, make(chan error, 1)}
	g := newRig(t, func(o *Options) {
		o.Recheck, o.Auth = time.Millisecond, auth
		all := o.Namespaces.(*one)
		all.erased, all.Runtime, all.made["acme"] = until, run, true
	})
	go func() { <-auth.asked }()
	if got := g.ask("POST", "/v1/sessions", `{"role": "r"}`, "Authorization: Bearer "+admin,
		namespaceHeader+": default"); got.status != 201 || run.session.Owner != "acme/bob" {
		t.Errorf("a session: %d, of %q", got.status, run.session.Owner)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/v1/events", nil)
	r.Header = http.Header{"Authorization": {"Bearer " + admin}, namespaceHeader: {"default"}}
	go func() {
		for range 5 { // at the beginning, and while it lasts
			<-auth.asked
		}
		erase(erased)
	}()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if why := <-run.why; !errors.Is(why, erased) {
		t.Errorf("the stream ended with: %v", why)
	}
}

// A request that names two namespaces is refused.
func TestNamespaceTwice(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	if got := g.ask("GET", "/v1/tools", "", namespaceHeader+": default",
		namespaceHeader+": default"); got.status != 400 || got.json(t)["code"] != codeParameter {
		t.Errorf("%d %s", got.status, got.body)
	}
}

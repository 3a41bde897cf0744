package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/store"
)

// An approved manifest reaches the runtime unchanged: lists that are absent or null stay, empty lists are empty.
// If-Match applies, and the reply of GET can be sent back.
func TestPutEffects(t *testing.T) {
	t.Parallel()
	const path = "/v1/tools/calculator/methods/add/effects"
	for _, c := range []struct {
		body, header, match string
		status              int
		hosts, methods      []string
		revision            int64
	}{
		{`{"hosts":["api.example.org"],"methods":[]}`, "", "", 200, []string{"api.example.org"}, []string{},
			store.AnyRevision},
		{`{"hosts":null,"methods":["GET"],"reason":"needed"}`, "If-Match", `"3"`, 200, nil, []string{"GET"}, 3},
		{`{"hosts":["*"]}`, "If-None-Match", "*", 200, []string{"*"}, nil, 0},
		{`{"hosts":["*"]}`, "If-Match", "*", 200, []string{"*"}, nil, store.AnyRevision},
		{`{"role":"x","method_name":"y","hosts":[],"revision":3,"origin":"observed","policy":"observe","generations":[{"id":"gen-1"}]}`, "", "", 200, []string{}, nil, store.AnyRevision},
		{`{"hosts":["*"],"host":["*"]}`, "", "", 422, nil, nil, 0},
		{`{"hosts":[1]}`, "", "", 422, nil, nil, 0},
		{`{"hosts":["*"]}`, "If-Match", "yesterday", 400, nil, nil, 0},
	} {
		g := newRig(t, nil)
		q, err := http.NewRequestWithContext(t.Context(), "PUT", g.url+path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		if c.header != "" {
			q.Header.Set(c.header, c.match)
		}
		res, err := g.client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != c.status || c.status == 200 && res.Header.Get("ETag") != `"3"` {
			t.Errorf("%s %s: status %d, ETag %s", c.body, c.match, res.StatusCode, res.Header.Get("ETag"))
			continue
		}
		got := g.fake.effects
		if c.status == 200 && (!slices.Equal(got.Hosts, c.hosts) || (got.Hosts == nil) != (c.hosts == nil) ||
			!slices.Equal(got.Methods, c.methods) || (got.Methods == nil) != (c.methods == nil) ||
			got.Revision != c.revision || got.Actor != "local") {
			t.Errorf("%s %s: got %+v", c.body, c.match, got)
		}
	}
	g := newRig(t, nil)
	g.fake.err = store.ErrConflict
	q, _ := http.NewRequestWithContext(t.Context(), "PUT", g.url+path, strings.NewReader(`{"hosts":["*"]}`))
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("If-Match", `"2"`)
	res, err := g.client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("another revision: %d", res.StatusCode)
	}
}

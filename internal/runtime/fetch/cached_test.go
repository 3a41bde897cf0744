package fetch

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch/httpcache"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// counted returns a server that answers with the number of requests so far. Its answers may be cached for a minute.
func counted(t *testing.T, encoding string) (*httptest.Server, string) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Type", "text/plain; charset=iso-8859-1")
		text := fmt.Sprintf("%d f\xfcr %s", asked.Add(1), r.Header.Get("Authorization"))
		switch encoding {
		case "gzip":
			text = gzipped(text)
		case "br":
			text = brotlied(text)
		case "broken":
			text += " and this is no gzip"
			w.Header().Set("Content-Encoding", "gzip")
		}
		if encoding == "gzip" || encoding == "br" {
			w.Header().Set("Content-Encoding", encoding)
		}
		io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return server, strings.TrimPrefix(server.URL, "http://")
}

// A cached answer equals the original, and has its age and source.
func TestKeptAnswers(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"", "gzip", "br"} {
		server, host := counted(t, encoding)
		var sources []string
		o := DefaultOptions()
		o.OnResult = func(source string) { sources = append(sources, source) }
		c := clientWith(t, o, host)
		now := time.Now().UTC()
		c.now = func() time.Time { return now }
		ask := func(q recurgent.Request) (string, Note) {
			q.URL = server.URL
			a := c.Do(t.Context(), Caller{Writes: &Ledger{}}, q)
			a.Release()
			if a.Failure != nil {
				t.Fatal(a.Failure)
			}
			r, note := a.Response, a.Note
			if q.Cache && (r.Header["Age"] == "" && note.Mode != ModeLive || r.FetchedAt != note.FetchedAt) {
				t.Errorf("%q: the answer is %+v", encoding, r)
			}
			return r.Body, note
		}
		first, note := ask(recurgent.Request{Cache: true})
		if first != "1 für " || note.Mode != ModeLive {
			t.Fatalf("%q: got %q, %+v", encoding, first, note)
		}
		now = now.Add(30 * time.Second)
		second, kept := ask(recurgent.Request{Cache: true})
		if second != first || kept.Mode != httpcache.Cached || kept.FetchedAt != note.FetchedAt ||
			kept.Shape != note.Shape || kept.ContentType != "text/plain; charset=utf-8" {
			t.Errorf("%q: got %q, %+v, want what came first", encoding, second, kept)
		}
		for _, q := range []recurgent.Request{{}, {Cache: true, Header: map[string]string{"Accept": "x"}},
			{Cache: true, Method: "POST"}, {Cache: true}} {
			if q.Method == "POST" {
				c.opts.Connector = &fakeConnection{host: host, methods: []string{"POST"}}
			}
			if body, note := ask(q); note.Mode != ModeLive {
				t.Errorf("%q %+v: got %q from what was kept", encoding, q, body)
			}
			c.opts.Connector = nil
		}
		if want := []string{"live", "cached", "live", "live", "live", "live"}; !slices.Equal(sources, want) {
			t.Errorf("%q: counted %v, want %v", encoding, sources, want)
		}
	}
}

// An answer that cannot be read is not cached.
func TestBrokenAnswersAreNotKept(t *testing.T) {
	t.Parallel()
	server, host := counted(t, "broken")
	var sources []string
	o := DefaultOptions()
	o.OnResult = func(source string) { sources = append(sources, source) }
	c := clientWith(t, o, host)
	for range 2 {
		if _, note, failure := do(t.Context(), c, recurgent.Request{URL: server.URL,
			Cache: true}); failure == nil || note.ErrorKind != KindEncoding {
			t.Errorf("got %+v, %+v", failure, note)
		}
	}
	if !slices.Equal(sources, []string{"encoding", "encoding"}) {
		t.Errorf("counted %v", sources)
	}
}

// roles gives each role a connection with its own name.
type roles struct{ *fakeConnection }

func (r roles) Connect(who Caller, method string, at *url.URL) Connection {
	if who.Role == "none" || r.fakeConnection.Connect(who, method, at) == nil {
		return nil
	}
	return r.fakeConnection
}

// An answer obtained with a credential is only for the same role and the same credential, and its echoes stay masked.
func TestKeptAnswersOfConnections(t *testing.T) {
	t.Parallel()
	server, host := counted(t, "gzip")
	f := &fakeConnection{host: host, methods: []string{"GET"}}
	o := DefaultOptions()
	o.Connector = roles{f}
	c := clientWith(t, o, host)
	ask := func(caller string) (string, string) {
		namespace, role, _ := strings.Cut(caller, "/")
		a := c.Do(t.Context(), Caller{Owner: agent.Owner{Namespace: agent.Namespace(namespace)}, Role: role},
			recurgent.Request{URL: server.URL, Cache: true})
		a.Release()
		if a.Failure != nil {
			t.Fatal(a.Failure)
		}
		return a.Response.Body, a.Note.Mode
	}
	for i, step := range []struct {
		role, body, mode string
		rotate           bool
	}{
		{"/one", "1 für Bearer [masked]", ModeLive, false},
		{"/one", "1 für Bearer [masked]", httpcache.Cached, false},
		{"/two", "2 für Bearer [masked]", ModeLive, false},
		{"/none", "3 für ", ModeLive, false},
		{"/one", "4 für Bearer [masked]", ModeLive, true},
		{"/one", "4 für Bearer [masked]", httpcache.Cached, false},
		{"/two", "5 für Bearer [masked]", ModeLive, false},
		{"/none", "3 für ", httpcache.Cached, false},
		{"acme/one", "6 für Bearer [masked]", ModeLive, false},
		{"acme/none", "7 für ", ModeLive, false},
		{"/one", "4 für Bearer [masked]", httpcache.Cached, false},
	} {
		if step.rotate {
			f.secret.Add(1)
		}
		if body, mode := ask(step.role); body != step.body || mode != step.mode {
			t.Errorf("step %d, role %s: got %q, %s, want %q, %s", i, step.role, body, mode, step.body, step.mode)
		}
	}
	f.refused = deny("revoked")
	a := c.Do(t.Context(), Caller{Role: "one"}, recurgent.Request{URL: server.URL, Cache: true})
	if a.Failure == nil || a.Failure.Type != "denied" {
		t.Errorf("a revoked credential still got %+v", a.Response)
	}
}

// A stale answer replaces that of a failing host if the host allowed it, also for 503 with retries.
func TestStaleAnswersStandIn(t *testing.T) {
	t.Parallel()
	down := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1, stale-if-error=100")
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, "good")
	}))
	t.Cleanup(server.Close)
	c := testClient(t, strings.TrimPrefix(server.URL, "http://"))
	waits := clocked(c)
	q := recurgent.Request{URL: server.URL, Cache: true, Retry: 3}
	do(t.Context(), c, q)
	now := c.now().Add(time.Minute)
	c.now = func() time.Time { return now }
	down = true
	if r, note, failure := do(t.Context(), c, q); failure != nil || r.Body != "good" || r.Status != 200 ||
		note.Mode != httpcache.Stale || len(*waits) > 0 {
		t.Errorf("got %+v, %+v, %+v, want what was kept", failure, r, note)
	}
	server.Close()
	if r, note, failure := do(t.Context(), c, q); failure != nil || r.Body != "good" || note.Mode != httpcache.Stale {
		t.Errorf("got %+v, %+v, %+v, want what was kept", failure, r, note)
	}
	if _, _, failure := do(t.Context(), c, recurgent.Request{URL: server.URL}); failure == nil {
		t.Error("a program that did not ask for kept answers got one")
	}
}

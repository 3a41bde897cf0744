package rig

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A Source is a web server on this machine that programs fetch from. A test can change its answer at any time.
type Source struct {
	*httptest.Server
	answer atomic.Value // func(http.ResponseWriter)
	asked  atomic.Int64 // number of requests
}

// Requests returns the number of requests so far.
func (s *Source) Requests() int64 { return s.asked.Load() }

// NewSource starts a Source that answers with the body. It is closed at the end of the test.
func NewSource(t *testing.T, body string) *Source {
	t.Helper()
	s := &Source{}
	s.Body(body)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		s.answer.Load().(func(http.ResponseWriter))(w)
	}))
	t.Cleanup(s.Close)
	return s
}

// ItemsBody is a body for ProgFetches, which returns both items.
const ItemsBody = `{"items":["a","b"]}`

// Answer sets the handler of all later requests.
func (s *Source) Answer(with func(http.ResponseWriter)) { s.answer.Store(with) }

// Body makes the Source answer with the body.
func (s *Source) Body(body string) {
	s.Answer(func(w http.ResponseWriter) { fmt.Fprint(w, body) })
}

// Status makes the Source answer with the status and an empty body.
func (s *Source) Status(code int) {
	s.Answer(func(w http.ResponseWriter) { w.WriteHeader(code) })
}

// Host returns the host and port, for --fetch-allow.
func (s *Source) Host() string { return strings.TrimPrefix(s.URL, "http://") }

// NewsBody returns a body for ProgHeadlines with these titles.
func NewsBody(titles ...string) string {
	items := make([]map[string]string, len(titles))
	for i, t := range titles {
		items[i] = map[string]string{"title": t}
	}
	return string(MustJSON(map[string]any{"items": items}))
}

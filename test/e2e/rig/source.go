package rig

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A Source is a web server on this machine that programs fetch from. A test changes its answer.
type Source struct {
	*httptest.Server
	answer atomic.Value // func(http.ResponseWriter)
	asked  atomic.Int64
}

// Requests is how often it was asked.
func (s *Source) Requests() int64 { return s.asked.Load() }

// NewSource starts a source that answers with the body. It is closed at the end of the test.
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

// ItemsBody is what ProgFetches understands; it returns both items.
const ItemsBody = `{"items":["a","b"]}`

// Answer sets how it answers from now on.
func (s *Source) Answer(with func(http.ResponseWriter)) { s.answer.Store(with) }

// Body makes it answer with the body.
func (s *Source) Body(body string) {
	s.Answer(func(w http.ResponseWriter) { fmt.Fprint(w, body) })
}

// Status makes it answer with the status and no body.
func (s *Source) Status(code int) {
	s.Answer(func(w http.ResponseWriter) { w.WriteHeader(code) })
}

// Host is its host and port, for --fetch-allow.
func (s *Source) Host() string { return strings.TrimPrefix(s.URL, "http://") }

// NewsBody is what ProgHeadlines understands: a page with these titles.
func NewsBody(titles ...string) string {
	items := make([]map[string]string, len(titles))
	for i, t := range titles {
		items[i] = map[string]string{"title": t}
	}
	return string(MustJSON(map[string]any{"items": items}))
}

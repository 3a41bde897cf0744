package apptest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A Gate is a server whose requests wait until they are let through, for calls that stay under way as long as a test likes.
type Gate struct {
	*httptest.Server
	Host    string        // HOST:PORT
	Entered chan struct{} // one for each request that arrived
	once    sync.Once
	open    chan struct{}
	pass    chan struct{}
}

// NewGate starts one.
func NewGate(t testing.TB) *Gate {
	t.Helper()
	g := &Gate{Entered: make(chan struct{}, 100), open: make(chan struct{}), pass: make(chan struct{})}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.Entered <- struct{}{}
		select {
		case <-g.open:
		case <-g.pass:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte("through"))
	}))
	g.Host = g.Listener.Addr().String()
	t.Cleanup(func() { g.Open(); g.Close() })
	return g
}

// Pass lets one request through that has entered.
func (g *Gate) Pass() { g.pass <- struct{}{} }

// Open lets all requests through from now on.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

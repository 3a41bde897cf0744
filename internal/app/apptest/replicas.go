package apptest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A Gate is an HTTP server that holds requests until the test lets them through. Calls that fetch from it last as long
// as the test needs.
type Gate struct {
	*httptest.Server
	Host    string        // HOST:PORT
	Entered chan struct{} // receives one value per arrived request
	once    sync.Once
	open    chan struct{}
	pass    chan struct{}
}

// NewGate starts a Gate. It is opened and closed when t ends.
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

// Pass lets one request through. It waits until one has arrived.
func (g *Gate) Pass() { g.pass <- struct{}{} }

// Open lets all present and later requests through.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

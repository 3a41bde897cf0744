package apptest

import (
	"context"
	"net"
	"sync"
)

// A Wire is a listener whose connections stay in memory, for a daemon in a bubble of testing/synctest, which must make
// it. Only Dial reaches it.
type Wire struct {
	calls  chan net.Conn
	closed chan struct{}

	mu   sync.Mutex
	open []net.Conn // the clients' ends, in the order of their connections; guarded by mu
	cut  bool       // guarded by mu
}

// NewWire returns an open Wire.
func NewWire() *Wire {
	return &Wire{calls: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the daemon, as the DialContext of an http.Transport. The error of a Wire that is closed matches
// net.ErrClosed.
func (w *Wire) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	w.mu.Lock()
	cut := w.cut
	if !cut {
		w.open = append(w.open, ours)
	}
	w.mu.Unlock()
	if cut {
		return nil, &net.OpError{Op: "dial", Net: "wire", Err: net.ErrClosed}
	}
	select {
	case w.calls <- theirs:
		return ours, nil
	case <-w.closed:
		return nil, &net.OpError{Op: "dial", Net: "wire", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (w *Wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.calls:
		return c, nil
	case <-w.closed:
		return nil, &net.OpError{Op: "accept", Net: "wire", Err: net.ErrClosed}
	}
}

// Close implements net.Listener. Connections stay open.
func (w *Wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.closed:
		return net.ErrClosed
	default:
		close(w.closed)
		return nil
	}
}

// Cut ends all connections at once, as when the daemon's machine stops: nothing that the daemon writes from now on
// arrives. No new connection can be made.
func (w *Wire) Cut() {
	w.mu.Lock()
	open := w.open
	w.open, w.cut = nil, true
	w.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // never fails
	}
}

// Addr implements net.Listener. It is an address of this machine, at which nothing listens.
func (w *Wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8420} }

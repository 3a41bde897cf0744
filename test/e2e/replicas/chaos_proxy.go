// Package chaos puts daemons under load while they are killed, stopped and cut off, and checks afterwards, against the
// record of what clients sent and received, that nothing acknowledged was lost or done twice.
//
// A Load sends calls and records them, by way of a Proxy that does to connections what networks do. Read reads what
// daemons hold in the end, and Check compares both.
package replicas

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy forwards the TCP connections of one address to another, which may change, and cuts, slows and half-closes
// them. Its methods may be called concurrently.
type Proxy struct {
	Address string // host and port

	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	network string // of the target
	target  string
	delay   time.Duration
	held    chan struct{} // not nil while nothing passes; closed when it ends
	links   map[*link]bool
	ended   bool
}

// NewProxy starts a proxy that ends with the test. The target's network is tcp or unix.
func NewProxy(tb testing.TB, network, target string) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Address: listener.Addr().String(), listener: listener, network: network, target: target,
		links: map[*link]bool{}}
	p.running.Go(p.accept)
	tb.Cleanup(func() {
		_ = listener.Close() // accept ends with it
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		p.Cut()
		p.running.Wait()
	})
	return p
}

// Target sends new connections elsewhere. Those that are open stay.
func (p *Proxy) Target(network, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.network, p.target = network, address
}

// Cut resets all connections.
func (p *Proxy) Cut() {
	for _, l := range p.open() {
		l.reset()
	}
}

// HalfCloseReplies ends what servers send, of all connections: clients see the end of the stream, and may go on
// sending.
func (p *Proxy) HalfCloseReplies() {
	for _, l := range p.open() {
		closeWrite(l.client)
	}
}

// HalfCloseRequests ends what clients send, of all connections: servers see the end of the stream, and may go on
// answering.
func (p *Proxy) HalfCloseRequests() {
	for _, l := range p.open() {
		closeWrite(l.server)
	}
}

// Slow delays each piece that passes. 0 ends it.
func (p *Proxy) Slow(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = by
}

// Hold keeps connections open and lets nothing pass, as a network that drops all packets does, until release is called.
func (p *Proxy) Hold() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := make(chan struct{})
	p.held = held
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.held == held {
			p.held = nil
			close(held)
		}
	}
}

func (p *Proxy) open() (out []*link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		out = append(out, l)
	}
	return out
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	network, target := p.network, p.target
	p.mu.Unlock()
	server, err := net.Dial(network, target)
	if err != nil {
		abort(client) // nobody listens: so it looks to the client
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{client: client, server: server, cancel: cancel}
	p.mu.Lock()
	p.links[l] = true
	ended := p.ended
	p.mu.Unlock()
	if ended {
		l.reset()
	}
	var both sync.WaitGroup
	both.Go(func() { p.pass(ctx, server, client) })
	both.Go(func() { p.pass(ctx, client, server) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
	l.reset()
}

// pass copies one direction to its end.
func (p *Proxy) pass(ctx context.Context, to, from net.Conn) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && p.wait(ctx) == nil {
			if _, werr := to.Write(buffer[:n]); werr != nil {
				// The other direction must end too, or a client waits for what nobody sends.
				abort(from)
				return
			}
		}
		if err == io.EOF {
			closeWrite(to)
			return
		}
		if err != nil || ctx.Err() != nil {
			abort(to)
			return
		}
	}
}

// wait holds a piece for as long as the faults say.
func (p *Proxy) wait(ctx context.Context) error {
	p.mu.Lock()
	delay, held := p.delay, p.held
	p.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
		}
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// A link is one connection through the proxy.
type link struct {
	client, server net.Conn
	cancel         context.CancelFunc // ends its waits
}

func (l *link) reset() {
	l.cancel()
	abort(l.client)
	abort(l.server)
}

// abort closes with a reset, without sending what is queued.
func abort(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // one that is closed already has no reset to send
	}
	_ = c.Close()
}

func closeWrite(c net.Conn) {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite() // one that is closed has nothing to end
	}
}

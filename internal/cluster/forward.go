package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"time"
)

// Times of connections between replicas.
const (
	pingTime = 5 * time.Second // at least: without a frame of the peer, and again for the answer to a ping
	idleTime = 90 * time.Second
)

// movedHeader marks the answer of a replica that does not own what was forwarded to it. Its value is not used.
const movedHeader = "Recurgent-Moved"

// Errors of Forward.
var (
	ErrMoved       = errors.New("the session belongs to another replica by now") // nothing was run
	ErrUnreachable = errors.New("the replica cannot be reached")                 // nothing was run
	ErrLost        = errors.New("the replica did not answer")                    // it may have run what was asked of it
)

// peers are the connections to other replicas.
type peers struct {
	tls       *TLS
	timeout   time.Duration // of dialing
	transport *http.Transport
}

func newPeers(t *TLS, timeout time.Duration) *peers {
	p := &peers{tls: t, timeout: timeout, transport: &http.Transport{IdleConnTimeout: idleTime,
		DisableCompression: true, Protocols: new(http.Protocols),
		HTTP2: pings(timeout)}}
	p.transport.DialTLSContext = p.dial
	p.transport.Protocols.SetHTTP2(true)
	// Go 1.26 takes a connection that is not a *tls.Conn for one without encryption
	p.transport.Protocols.SetUnencryptedHTTP2(true)
	return p
}

// pings finds out that a peer has gone. One that may take longer to answer when it is dialed may take as long afterwards.
func pings(dial time.Duration) *http.HTTP2Config {
	every := max(pingTime, dial)
	return &http.HTTP2Config{SendPingTimeout: every, PingTimeout: every}
}

// dial connects to a replica and waits for its first byte. In TLS 1.3 a client's handshake ends before the server has verified the client's
// certificate. A request that is sent then, and refused with the certificate, would count as one that may have been run.
func (p *peers) dial(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := (&net.Dialer{Timeout: p.timeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &heard{Conn: tls.Client(raw, p.tls.client()), first: make([]byte, 1)}
	if err = raw.SetDeadline(time.Now().Add(p.timeout)); err == nil {
		_, err = io.ReadFull(c.Conn, c.first)
	}
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

// heard is a connection whose peer has said something.
type heard struct {
	*tls.Conn
	first []byte // of what it said; not read again so far
}

func (c *heard) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}

func (p *peers) close() { p.transport.CloseIdleConnections() }

// A Request is forwarded to the replica at Address. Header are set in the place of what the client sent under those names; Authorization is
// not passed on, since Header says who sends the request.
type Request struct {
	Address string
	Header  http.Header
	Body    []byte // all of it
	Stream  bool   // lasts as long as its client listens
}

// Forward has another replica answer the request. It returns nil once a reply has begun: what breaks it afterwards panics with
// http.ErrAbortHandler. Otherwise nothing was written, and the error is one of the above or the context's.
func (c *Cluster) Forward(w http.ResponseWriter, r *http.Request, q Request) error {
	if q.Address == "" || c.peers == nil {
		return fmt.Errorf("%w: replicas without --advertise forward nothing to each other", ErrUnreachable)
	}
	if !q.Stream {
		c.forwarding(1)
		defer c.forwarding(-1)
	}
	var failed error
	// in the last attempt: another is made only where the one before it was not begun there, as by a peer that shuts down
	connected := false
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { connected = false },
		GotConn: func(httptrace.GotConnInfo) { connected = true }})
	out := r.WithContext(ctx)
	out.ContentLength = int64(len(q.Body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(q.Body)), nil }
	out.Body, _ = out.GetBody()
	proxy := httputil.ReverseProxy{Transport: c.peers.transport, FlushInterval: -1,
		ErrorLog: stdlog.New(io.Discard, "", 0),
		Rewrite:  func(p *httputil.ProxyRequest) { q.rewrite(p) },
		ModifyResponse: func(res *http.Response) error {
			if res.Header.Get(movedHeader) != "" {
				return ErrMoved
			}
			for name := range res.Header { // the owner's own, not both
				w.Header().Del(name)
			}
			c.out.Add(1)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err }}
	proxy.ServeHTTP(w, out)
	switch {
	case failed == nil || errors.Is(failed, ErrMoved):
		return failed
	case r.Context().Err() != nil:
		return context.Cause(r.Context())
	case !connected:
		return fmt.Errorf("%w: %w", ErrUnreachable, failed)
	}
	return fmt.Errorf("%w: %w", ErrLost, failed)
}

func (q Request) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host = "https", q.Address
	p.Out.Host = p.In.Host
	p.Out.Header.Del("Authorization")
	for name, values := range q.Header {
		p.Out.Header[name] = values
	}
}

// Find returns the address of the replica other than this one that answers HEAD of the path, as Header says, with 200; "" when none does.
func (c *Cluster) Find(ctx context.Context, path string, header http.Header) (address string, err error) {
	all, err := c.Replicas(ctx)
	if err != nil || c.peers == nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Dial)
	defer cancel()
	found := make(chan string, len(all))
	asked := 0
	for _, r := range all {
		if r.ID == c.ID() || r.Address == "" {
			continue
		}
		asked++
		go func() { found <- c.peers.has(ctx, r.Address, path, header) }()
	}
	for range asked {
		if address := <-found; address != "" {
			return address, nil
		}
	}
	return "", nil
}

// has returns the address if the replica there answers HEAD of the path with 200.
func (p *peers) has(ctx context.Context, address, path string, header http.Header) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, "https://"+address+path, http.NoBody)
	if err != nil {
		return ""
	}
	r.Header = header.Clone()
	res, err := p.transport.RoundTrip(r)
	if err != nil {
		return ""
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return ""
	}
	return address
}

type forwardedKey struct{}

// Forwarded reports whether the request of that context was forwarded by another replica.
func Forwarded(ctx context.Context) bool { return ctx.Value(forwardedKey{}) != nil }

// Moved marks a reply to the replica that forwarded a request: it belongs elsewhere.
func Moved(h http.Header) { h.Set(movedHeader, "1") }

// Listen makes the server for requests of other replicas, which is to serve TLS. Its handler answers them as Forwarded. Contexts of requests end with base.
func (c *Cluster) Listen(base context.Context, handler http.Handler) *http.Server {
	base = context.WithValue(base, forwardedKey{}, true)
	s := &http.Server{TLSConfig: c.peers.tls.server(), ReadHeaderTimeout: c.o.Dial, IdleTimeout: 2 * idleTime,
		Protocols:   new(http.Protocols),
		HTTP2:       pings(c.o.Dial),
		BaseContext: func(net.Listener) context.Context { return base },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.in.Add(1)
			handler.ServeHTTP(w, r)
		})}
	s.Protocols.SetHTTP2(true)
	return s
}

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

// Timeouts of connections between replicas.
const (
	pingTime = 5 * time.Second // minimum silence before a ping is sent, and minimum wait for its answer
	idleTime = 90 * time.Second
)

// movedHeader marks the reply of a replica that does not own the session of a forwarded request. Only its presence
// counts.
const movedHeader = "Recurgent-Moved"

// Errors of Forward.
var (
	ErrMoved       = errors.New("the session belongs to another replica by now") // nothing was run
	ErrUnreachable = errors.New("the replica cannot be reached")                 // nothing was run
	ErrLost        = errors.New("the replica did not answer")                    // it may have run the request
)

// peers holds the connections to other replicas.
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
	// Go 1.26 takes any connection that is not a *tls.Conn, such as heard, for an unencrypted one.
	p.transport.Protocols.SetUnencryptedHTTP2(true)
	return p
}

// pings configures the health checks that detect a dead peer. The times are at least the dial timeout: a peer that may
// take that long to accept a connection may take as long to answer a ping.
func pings(dial time.Duration) *http.HTTP2Config {
	every := max(pingTime, dial)
	return &http.HTTP2Config{SendPingTimeout: every, PingTimeout: every}
}

// dial connects to a replica and waits for its first byte. In TLS 1.3 a client's handshake ends before the server has
// verified the client's certificate. If the server refused the certificate after the request was sent, the request
// would count as one that may have been run.
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

// heard is a connection whose first byte has already been read.
type heard struct {
	*tls.Conn
	first []byte // the byte, until Read returns it
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

// A Request describes how to forward a request. Address is that of the replica. Header replaces the client's values of
// the same names. Authorization is dropped, because Header already identifies the principal.
type Request struct {
	Address string
	Header  http.Header
	Body    []byte // the whole body; the original one has been read
	Stream  bool   // lasts as long as its client listens; AwaitForwards ignores it
}

// Forward lets another replica answer the request. It returns nil once the reply has begun; a failure after that panics
// with http.ErrAbortHandler. Otherwise nothing was written to w, and the error is ErrMoved, ErrUnreachable, ErrLost or
// the cause of the context's end.
func (c *Cluster) Forward(w http.ResponseWriter, r *http.Request, q Request) error {
	if q.Address == "" || c.peers == nil {
		return fmt.Errorf("%w: replicas without --advertise forward nothing to each other", ErrUnreachable)
	}
	if !q.Stream {
		c.forwarding(1)
		defer c.forwarding(-1)
	}
	var failed error
	// connected refers to the last attempt. The transport retries only if the peer did not process the previous
	// attempt, for example because it was shutting down.
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
			for name := range res.Header { // the owner's values replace ours instead of being added
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

// rewrite directs a proxied request to the replica at Address.
func (q Request) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host = "https", q.Address
	p.Out.Host = p.In.Host
	p.Out.Header.Del("Authorization")
	for name, values := range q.Header {
		p.Out.Header[name] = values
	}
}

// Find returns the address of another replica that replies to a HEAD of the path with 200, and "" if none does. It
// waits at most Options.Dial.
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

// has returns the address if the replica there replies to a HEAD of the path with 200, and "" otherwise.
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

// Forwarded reports whether another replica forwarded the request of this context.
func Forwarded(ctx context.Context) bool { return ctx.Value(forwardedKey{}) != nil }

// Moved marks the reply to a forwarded request: the sender must ask the store for the owner again.
func Moved(h http.Header) { h.Set(movedHeader, "1") }

// Listen returns a server for requests of other replicas, to be started with ServeTLS. Its handler sees requests for
// which Forwarded reports true. Their contexts end with base. The Cluster must have been configured with TLS.
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

package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
)

// identity returns the TLS of a replica with the certificate signed, which trusts the given authority.
func identity(t *testing.T, signed apptest.Pair, trusts *apptest.Authority) *TLS {
	t.Helper()
	own, err := tls.X509KeyPair(signed.Cert, signed.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusts.Cert)
	return &TLS{Certificate: func() *tls.Certificate { return &own },
		Authorities: func() *x509.CertPool { return pool }}
}

// peer joins a replica and serves the handler for other replicas. Its timeouts allow for a busy machine.
func peer(t *testing.T, s *shared, id *TLS, h http.HandlerFunc) *Cluster {
	t.Helper()
	return peerThatWaits(t, time.Minute, s, id, h)
}

func peerThatWaits(t *testing.T, dial time.Duration, s *shared, id *TLS, h http.HandlerFunc) *Cluster {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Store, o.Address, o.TLS, o.Dial = s, l.Addr().String(), id, dial
	c, err := Join(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	server := c.Listen(context.Background(), h)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.ServeTLS(l, "", "")
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
		_ = c.Leave(context.Background())
	})
	return c
}

// front returns a server for clients that forwards everything to the address. errs receives the results of Forward.
func front(t *testing.T, c *Cluster, q Request) (s *httptest.Server, errs chan error) {
	t.Helper()
	errs = make(chan error, 10)
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := q
		q.Body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Request-Id", "of the first replica")
		err := c.Forward(w, r, q)
		if err != nil {
			w.WriteHeader(http.StatusTeapot)
		}
		errs <- err
	}))
	t.Cleanup(s.Close)
	return s, errs
}

// two returns two replicas of one authority; the second one answers with h.
func two(t *testing.T, h http.HandlerFunc) (first, second *Cluster) {
	t.Helper()
	ca, s := apptest.NewAuthority(t), newShared(t)
	first = peer(t, s, identity(t, ca.Pair(t, 1), ca), func(http.ResponseWriter,
		*http.Request) {
		t.Error("the first replica was asked")
	})
	return first, peer(t, s, identity(t, ca.Pair(t, 2), ca), h)
}

// A forwarded request arrives over HTTP/2 as its client sent it, without connection headers and the token. Headers of
// the forwarding replica replace those of the client. The reply comes back complete, with its trailers and with each
// header once.
func TestForward(t *testing.T) {
	t.Parallel()
	first, second := two(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := fmt.Sprintf("%s %s %s host=%s body=%s token=%q principal=%q hop=%q kept=%q proto=%d forwarded=%v",
			r.Method, r.URL.Path, r.URL.RawQuery, r.Host, body,
			r.Header.Get("Authorization"), r.Header.Values("Recurgent-Principal"), r.Header.Get("X-Hop"),
			r.Header.Get("X-Kept"), r.ProtoMajor, Forwarded(r.Context()))
		w.Header().Set("X-Request-Id", "of the owner")
		w.Header().Set("Connection", "close")
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusAccepted)
		_ = http.NewResponseController(w).Flush() // trailers require a reply of unknown length
		_, _ = io.WriteString(w, got)
		w.Header().Set("X-Sum", "42")
	})
	s, errs := front(t, first, Request{Address: second.o.Address, Header: http.Header{"Recurgent-Principal": {"real"}}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/a%2Fb?x=1",
		strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "client.example"
	for name, v := range map[string]string{"Authorization": "Bearer secret", "Recurgent-Principal": "forged",
		"Connection": "X-Hop", "X-Hop": "1", "X-Kept": "2"} {
		r.Header.Set(name, v)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, _ := io.ReadAll(res.Body)
	want := `POST /v1/a/b x=1 host=client.example body=hello token="" principal=["real"] hop="" kept="2" proto=2 forwarded=true`
	if string(got) != want || res.StatusCode != http.StatusAccepted {
		t.Errorf("got  %d %s\nwant 202 %s", res.StatusCode, got, want)
	}
	if ids := res.Header.Values("X-Request-Id"); len(ids) != 1 || ids[0] != "of the owner" ||
		res.Trailer.Get("X-Sum") != "42" {
		t.Errorf("header %q, trailer %v", ids, res.Trailer)
	}
	if err := <-errs; err != nil {
		t.Errorf("forwarded: %v", err)
	}
	if a, b := first.Stats(), second.Stats(); a.Out != 1 || a.In != 0 || b.In != 1 || b.Out != 0 {
		t.Errorf("figures: %+v, %+v", a, b)
	}
}

// Each event of a stream arrives when it is sent. The owner notices when the client disconnects.
func TestForwardStreams(t *testing.T) {
	t.Parallel()
	next, gone := make(chan struct{}), make(chan struct{})
	first, second := two(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
		<-r.Context().Done()
		close(gone)
	})
	s, errs := front(t, first, Request{Address: second.o.Address, Stream: true})
	res, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	for i := range 3 {
		if lines.Scan(); lines.Text() != fmt.Sprintf("data: %d", i) {
			t.Fatalf("event %d: %q", i, lines.Text())
		}
		lines.Scan()
		next <- struct{}{}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	res.Body.Close()
	<-gone
	select {
	case err := <-errs:
		t.Errorf("a stream whose client went returned %v", err)
	default: // net/http panics with this itself
	}
}

// Only replicas with a certificate of the authority are accepted, on both sides. A request counts as not run if the
// peer refused the certificate.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs := apptest.NewAuthority(t), apptest.NewAuthority(t)
	s := newShared(t)
	var asked atomic.Int32
	count := func(http.ResponseWriter, *http.Request) { asked.Add(1) }
	good := peer(t, s, identity(t, ours.Pair(t, 1), ours), count)
	self := apptest.NewPair(t, 9, time.Now().AddDate(1, 0, 0))
	for name, c := range map[string]struct {
		from, to *Cluster
	}{
		"a client of another authority":       {peer(t, s, identity(t, theirs.Pair(t, 2), ours), count), good},
		"a client that signed for itself":     {peer(t, s, identity(t, self, ours), count), good},
		"a server of another authority":       {good, peer(t, s, identity(t, theirs.Pair(t, 3), ours), count)},
		"a client which trusts other servers": {peer(t, s, identity(t, ours.Pair(t, 4), theirs), count), good},
		"a server of another name": {good, peer(t, s, identity(t, ours.PairFor(t, 5, "billing"), ours),
			count)},
		"a server whose DNS name is another": {good, peer(t, s,
			identity(t, ours.PairFor(t, 6, "replica", "billing.example"), ours), count)},
	} {
		server, errs := front(t, c.from, Request{Address: c.to.o.Address})
		for range 10 { // the refusal may come before, during and after sending the request
			res, err := http.Post(server.URL, "text/plain", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if err := <-errs; !errors.Is(err, ErrUnreachable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, shown := range map[string][]tls.Certificate{"no certificate": nil,
		"a certificate for another name": {*identity(t, ours.PairFor(t, 7, "billing"), ours).Certificate()}} {
		plain := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true,
			Certificates: shown}}} // it believes anybody
		if res, err := plain.Get("https://" + good.o.Address); err == nil {
			res.Body.Close()
			t.Errorf("a client with %s was answered", name)
		}
	}
	if res, err := http.Get("http://" + good.o.Address); err == nil {
		res.Body.Close()
		if res.StatusCode < 400 {
			t.Error("a client without TLS was answered")
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the handler ran %d times", n)
	}
}

// The certificate is read for each connection, so a replaced one is used from then on.
func TestCertificatesAreReplaced(t *testing.T) {
	t.Parallel()
	ca, s := apptest.NewAuthority(t), newShared(t)
	id := identity(t, ca.Pair(t, 1), ca)
	var now atomic.Pointer[tls.Certificate]
	now.Store(id.Certificate())
	id.Certificate = now.Load
	c := peer(t, s, id, func(http.ResponseWriter, *http.Request) {})
	serial := func() string {
		conn, err := tls.Dial("tcp", c.o.Address, id.client())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	if got := serial(); got != "1" {
		t.Errorf("shown: %s", got)
	}
	now.Store(identity(t, ca.Pair(t, 7), ca).Certificate())
	if got := serial(); got != "7" {
		t.Errorf("shown after the change: %s", got)
	}
}

// One common name in two certificates is enough. The common name of the subject counts only if there are no others.
func TestNamesInCommon(t *testing.T) {
	t.Parallel()
	ca, s := apptest.NewAuthority(t), newShared(t)
	first := peer(t, s, identity(t, ca.PairFor(t, 1, "one", "one.example", "replicas.example"), ca),
		func(http.ResponseWriter, *http.Request) {})
	second := peer(t, s, identity(t, ca.PairFor(t, 2, "", "replicas.example", "two.example"), ca),
		func(http.ResponseWriter, *http.Request) {})
	third := peer(t, s, identity(t, ca.PairFor(t, 3, "replicas.example"), ca),
		func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct{ from, to *Cluster }{{first, second}, {second, first}, {first, third}, {third, second}} {
		server, errs := front(t, c.from, Request{Address: c.to.o.Address})
		res, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// Errors distinguish requests that were not run from those that may have been run: there is no peer; the reply says
// that the session has moved; the connection breaks before the reply.
func TestForwardFailures(t *testing.T) {
	t.Parallel()
	first, second := two(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			Moved(w.Header())
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		panic(http.ErrAbortHandler)
	})
	ask := func(to, path string) error {
		s, errs := front(t, first, Request{Address: to})
		res, err := http.Post(s.URL+path, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusTeapot || len(body) > 0 {
			t.Errorf("%s: %d %q, want that nothing was written", path, res.StatusCode, body)
		}
		return <-errs
	}
	for _, address := range []string{apptest.Address(t), ""} {
		if err := ask(address, "/"); !errors.Is(err, ErrUnreachable) {
			t.Errorf("nobody at %q: %v", address, err)
		}
	}
	if err := ask(second.o.Address, "/moved"); !errors.Is(err, ErrMoved) {
		t.Errorf("moved: %v", err)
	}
	if err := ask(second.o.Address, "/breaks"); !errors.Is(err, ErrLost) {
		t.Errorf("broken: %v", err)
	}
	if got := first.Stats(); got.Out != 0 {
		t.Errorf("%d requests were forwarded, none was answered", got.Out)
	}
}

// A request that reaches a peer during its shutdown and is not processed counts as not run.
func TestForwardToLeavingPeer(t *testing.T) {
	t.Parallel()
	ca, s := apptest.NewAuthority(t), newShared(t)
	first := peer(t, s, identity(t, ca.Pair(t, 1), ca), func(http.ResponseWriter,
		*http.Request) {
		t.Error("the first replica was asked")
	})
	config := identity(t, ca.Pair(t, 2), ca).server()
	config.NextProtos = []string{"h2"}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() { left <- leave(l) }()
	front, errs := front(t, first, Request{Address: l.Addr().String()})
	res, err := http.Post(front.URL, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if err := <-errs; !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v, want that nothing was run", err)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
}

// leave accepts one HTTP/2 connection (RFC 9113). At its first request it stops listening and answers with GOAWAY,
// without processing the request.
func leave(l net.Listener) error {
	const headers = 1 // frame type
	settings, goAway := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(settings); err != nil {
		return err
	}
	from := bufio.NewReader(conn)
	if _, err := from.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
		return err
	}
	for {
		frame := make([]byte, 9)
		if _, err := io.ReadFull(from, frame); err != nil {
			return err
		}
		if _, err := from.Discard(int(frame[0])<<16 | int(frame[1])<<8 | int(frame[2])); err != nil {
			return err
		}
		if frame[3] == headers {
			break
		}
	}
	if err := l.Close(); err != nil {
		return err
	}
	if _, err := conn.Write(goAway); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, from) // until the client closes it
	return nil
}

// A peer that accepts connections and stays silent delays callers by at most the dial timeout.
func TestForwardToSilentPeer(t *testing.T) {
	t.Parallel()
	ca := apptest.NewAuthority(t)
	first := peerThatWaits(t, 10*time.Millisecond, newShared(t), identity(t, ca.Pair(t, 1), ca),
		func(http.ResponseWriter, *http.Request) {})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, errs := front(t, first, Request{Address: l.Addr().String()})
	res, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if err := <-errs; !errors.Is(err, ErrUnreachable) {
		t.Errorf("a silent peer: %v", err)
	}
}

// Find returns the replica that has the call, and no other.
func TestFind(t *testing.T) {
	t.Parallel()
	first, second := two(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead || r.URL.Path != "/v1/calls/call_1" ||
			r.Header.Get("Recurgent-Principal") != "ann" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	header := http.Header{"Recurgent-Principal": {"ann"}}
	for path, want := range map[string]string{"/v1/calls/call_1": second.o.Address, "/v1/calls/call_2": ""} {
		if got, err := first.Find(t.Context(), path, header); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
	if got, err := first.Find(t.Context(), "/v1/calls/call_1", http.Header{}); err != nil || got != "" {
		t.Errorf("for somebody else: %q, %v", got, err)
	}
}

package fetch

import (
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

const (
	testMax  = 2 << 20 // bound of bodies
	patience = time.Minute
)

// resolver returns a resolver that finds localhost and no other host, without asking a name server.
func resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			for answerName(server) == nil { // until the client closes it
			}
		}()
		return client, nil
	}}
}

// answerName answers one question like a name server over a stream (RFC 1035, 4.2.2).
func answerName(conn net.Conn) error {
	var size uint16
	if err := binary.Read(conn, binary.BigEndian, &size); err != nil {
		return err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(conn, data); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(data); err != nil {
		return err
	}
	m.Response, m.Additionals = true, nil
	switch q := m.Questions[0]; {
	case q.Name.String() != "localhost.":
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
			Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
	}
	data, err := m.AppendPack([]byte{0, 0})
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint16(data, uint16(len(data)-2))
	_, err = conn.Write(data)
	return err
}

// site returns a server on the loopback address with everything that can go wrong.
func site(t *testing.T) (*httptest.Server, string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s ua=%s auth=%s cookie=%s", r.Method, r.Header.Get("X-Test"), body, r.UserAgent(),
			r.Header.Get("Authorization"), r.Header.Get("Cookie"))
	})
	mux.HandleFunc("/404", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "gone", http.StatusNotFound) })
	mux.HandleFunc("/503", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "busy",
			http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/hop/{n}", func(w http.ResponseWriter, r *http.Request) {
		n := r.PathValue("n")
		if n == "0" {
			io.WriteString(w, "arrived auth="+r.Header.Get("Authorization"))
			return
		}
		http.Redirect(w, r, "/hop/"+string(n[0]-1), http.StatusFound)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, testMax+1)) })
	mux.HandleFunc("/just", func(w http.ResponseWriter,
		r *http.Request) {
		w.Write([]byte(strings.Repeat("x", testMax)))
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		zeros := make([]byte, 1<<20)
		for range 64 {
			if _, err := z.Write(zeros); err != nil {
				return
			}
		}
		z.Close()
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, "unpacked")
		z.Close()
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		for i := range 500 {
			w.Header().Set(fmt.Sprintf("X-H%03d", i), strings.Repeat("v", 100))
		}
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("a\xffb")) })
	mux.HandleFunc("/hangup", func(w http.ResponseWriter, r *http.Request) {
		c, _, _ := w.(http.Hijacker).Hijack()
		c.Close()
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	u, _ := url.Parse(s.URL)
	return s, u.Host
}

// do performs a request and releases its answer.
func do(ctx context.Context, c *Client, q recurgent.Request) (*recurgent.Response, Note, *recurgent.Failure) {
	a := c.Do(ctx, Caller{}, q)
	a.Release()
	return a.Response, a.Note, a.Failure
}

func testClient(t *testing.T, allow ...string) *Client {
	t.Helper()
	o := DefaultOptions()
	o.MaxBody, o.Timeout = testMax, patience
	return clientWith(t, o, allow...)
}

func clientWith(t *testing.T, o Options, allow ...string) *Client {
	t.Helper()
	transport, err := NewTransport(TransportOptions{Allow: allow, Timeout: o.Timeout, Resolver: resolver()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	c, err := New(transport, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A host with an asterisk, which a name server may resolve, would stand for others in records of hosts.
func TestNoHostStandsForOthers(t *testing.T) {
	transport, err := NewTransport(TransportOptions{Allow: []string{"*.example.org", Public}})
	if err != nil {
		t.Fatal(err)
	}
	for address, ok := range map[string]bool{"https://a.example.org/": true, "https://*.example.org/": false,
		"https://*.example.com/": false, "https://%2A.example.org/": false} {
		at, err := url.Parse(address)
		if err == nil {
			err = transport.Permit(at)
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestFetchPolicy checks that by default any public https address may be fetched, and no other. The address counts, not
// the name that leads there.
func TestFetchPolicy(t *testing.T) {
	s, host := site(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var mu sync.Mutex
	knocks := 0
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			knocks++
			mu.Unlock()
			c.Close()
		}
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	open := testClient(t)
	for _, address := range []string{
		s.URL + "/plain", "ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1:70/", "/etc/passwd", "", "://",
		"https://", "http:///x",
		fmt.Sprintf("https://127.0.0.1:%d/", port), fmt.Sprintf("https://localhost:%d/", port),
		fmt.Sprintf("https://localhost.:%d/", port),
		fmt.Sprintf("https://[::1]:%d/", port), fmt.Sprintf("https://[::ffff:127.0.0.1]:%d/", port),
		fmt.Sprintf("https://0.0.0.0:%d/", port), fmt.Sprintf("https://[::]:%d/", port),
		fmt.Sprintf("https://127.1:%d/", port), fmt.Sprintf("https://2130706433:%d/", port),
		fmt.Sprintf("https://0x7f000001:%d/", port), fmt.Sprintf("https://0177.0.0.1:%d/", port),
		fmt.Sprintf("https://①②⑦.⓪.⓪.①:%d/", port), fmt.Sprintf("https://127。0。0。1:%d/", port),
		fmt.Sprintf("https://u:p@127.0.0.1:%d/", port),
		"https://169.254.169.254/latest/meta-data/", "https://10.0.0.1/", "https://192.168.0.1/", "https://172.16.0.1/",
		"https://100.64.0.1/", "https://[fd00::1]/",
		"https://[fe80::1]/", "https://[64:ff9b::7f00:1]/", "https://224.0.0.1/", "https://255.255.255.255/",
		"https://192.0.2.1/", "https://198.18.0.1/",
	} {
		_, note, refused := do(t.Context(), open, recurgent.Request{URL: address})
		if refused == nil || refused.Type != "denied" && note.ErrorKind != KindDNS {
			t.Errorf("%s: %+v %+v", address, refused, note)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if knocks > 0 {
		t.Errorf("%d connections reached the loopback address", knocks)
	}

	named := testClient(t, host)
	if r, _, refused := do(t.Context(), named,
		recurgent.Request{URL: s.URL + "/plain"}); refused != nil || r.Body != "hello" {
		t.Errorf("a named host: %v %+v", refused, r)
	}
	for _, address := range []string{fmt.Sprintf("http://127.0.0.1:%d/", port), "https://example.com/",
		s.URL + "/to?u=" + url.QueryEscape(fmt.Sprintf("http://127.0.0.1:%d/", port)),
		s.URL + "/to?u=https://169.254.169.254/", s.URL + "/to?u=file:///etc/passwd"} {
		if _, _, refused := do(t.Context(), named,
			recurgent.Request{URL: address}); refused == nil || refused.Type != "denied" {
			t.Errorf("%s with only %s named: %+v", address, host, refused)
		}
	}
}

// Public permits the public internet in addition to named hosts, and does not extend what these permit.
func TestPublicBesideNamedHosts(t *testing.T) {
	t.Parallel()
	s, host := site(t)
	for _, c := range []struct {
		allow   []string
		address string
		want    bool
	}{
		{nil, "https://example.com/", true}, {nil, "http://example.com/", false},
		{[]string{host}, "https://example.com/", false}, {[]string{host}, s.URL, true},
		{[]string{Public}, "https://example.com/", true}, {[]string{Public}, "http://example.com/", false},
		{[]string{Public}, s.URL, false},
		{[]string{host, Public}, "https://example.com/", true}, {[]string{host, Public}, "http://example.com/", false},
		{[]string{host, Public}, s.URL, true},
		{[]string{host, Public}, "https://metadata.packet.net/", false},
		{[]string{"public:443"}, "https://public/", true}, {[]string{"public:443"}, "https://example.com/", false},
	} {
		transport, err := NewTransport(TransportOptions{Allow: c.allow})
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		if err := transport.Permit(at); (err == nil) != c.want {
			t.Errorf("%q allow %s: got %v, want %t", c.allow, c.address, err, c.want)
		}
	}
	both := testClient(t, host, Public)
	if r, _, refused := do(t.Context(), both,
		recurgent.Request{URL: s.URL + "/plain"}); refused != nil || r.Body != "hello" {
		t.Errorf("a named host beside the public ones: %v %+v", refused, r)
	}
	// The address counts, not the name that leads there.
	if _, note, refused := do(t.Context(), both,
		recurgent.Request{URL: "https://localhost:1/"}); refused == nil || note.ErrorKind != KindDenied {
		t.Errorf("a private host that is not named: %+v, %+v", refused, note)
	}
	_, note, refused := do(t.Context(), both, recurgent.Request{URL: s.URL + "/to?u=https://127.0.0.1:1/"})
	if refused == nil || refused.Type != "denied" || note.ErrorKind != KindRedirectDenied {
		t.Errorf("a redirect to what is denied: got %+v, %+v", refused, note)
	}
}

func TestHostRules(t *testing.T) {
	for _, c := range []struct {
		rule, address string
		want          bool
	}{
		{"api.example.com", "https://api.example.com/x", true}, {"api.example.com", "https://API.example.com./x", true},
		{"api.example.com", "https://evil-api.example.com/", false},
		{"api.example.com", "https://api.example.com:8443/", true},
		{"api.example.com:443", "https://api.example.com/", true},
		{"api.example.com:443", "http://api.example.com/", false},
		{"*.example.com", "https://a.b.example.com/", true}, {"*.example.com", "https://example.com/", false},
		{"*.example.com", "https://evilexample.com/", false},
		{"127.0.0.1", "http://127.0.0.1:99/", true}, {"[::1]:80", "http://[::1]/", true},
		{"::1", "http://[::1]:5/", true},
	} {
		r, err := parseHostRule(c.rule)
		if err != nil {
			t.Error(err)
			continue
		}
		u, err := url.Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		host, port := hostAndPort(u)
		if got := r.matches(host, port); got != c.want {
			t.Errorf("%s for %s: %t", c.rule, c.address, got)
		}
	}
	for _, bad := range []string{"", "*", "*.", "http://a", "a b", "a*b", "ü.example", "user@host"} {
		if _, err := parseHostRule(bad); err == nil {
			t.Errorf("the rule %q was taken", bad)
		}
	}
}

// TestFetchBounds covers sizes, redirects, time and headers. Failures have their kind.
func TestFetchBounds(t *testing.T) {
	s, host := site(t)
	f := testClient(t, host, "127.0.0.1:1", "nowhere.invalid")
	for _, c := range []struct {
		q            recurgent.Request
		body, kind   string
		status, over int
	}{
		{q: recurgent.Request{URL: "/plain"}, body: "hello", status: 200},
		{q: recurgent.Request{URL: "/404"}, body: "gone\n", status: 404},
		{q: recurgent.Request{URL: "/503"}, body: "busy\n", status: 503},
		{q: recurgent.Request{URL: "/gzip"}, body: "unpacked", status: 200},
		{q: recurgent.Request{URL: "/bytes"}, body: "a\uFFFDb", status: 200},
		{q: recurgent.Request{URL: "/hop/3", Header: map[string]string{"Authorization": "Bearer x"}},
			body: "arrived auth=Bearer x", status: 200},
		{q: recurgent.Request{URL: "/hop/4"}, kind: KindRedirects},
		{q: recurgent.Request{URL: "/big"}, kind: KindTooLarge},
		{q: recurgent.Request{URL: "/bomb"}, kind: KindTooLarge},
		{q: recurgent.Request{URL: "/just"}, over: testMax, status: 200},
		{q: recurgent.Request{URL: "/endless"}, kind: KindTimeout},
		{q: recurgent.Request{URL: "/hangup"}, kind: KindNetwork},
		{q: recurgent.Request{URL: "http://127.0.0.1:1/"}, kind: KindRefused},
		{q: recurgent.Request{URL: "http://nowhere.invalid/"}, kind: KindDNS},
		{q: recurgent.Request{URL: "/echo", Header: map[string]string{"X-Test": "yes"}},
			body: "GET yes  ua=recurgentd auth= cookie=", status: 200},
		{q: recurgent.Request{URL: "/echo", Method: "post", Body: "sent"}, kind: KindDenied},
		{q: recurgent.Request{URL: "/plain", Method: "CONNECT"}, kind: KindDenied},
		{q: recurgent.Request{URL: "/plain", Method: "GET / HTTP/1.1\r\nX: y"}, kind: KindDenied},
		{q: recurgent.Request{URL: "/plain", Header: map[string]string{"Host": "metadata"}}, kind: KindDenied},
		{q: recurgent.Request{URL: "/plain", Header: map[string]string{"proxy-authorization": "x"}}, kind: KindDenied},
		{q: recurgent.Request{URL: "/plain", Header: map[string]string{"X": "a\r\nHost: b"}}, kind: KindNetwork},
		{q: recurgent.Request{URL: "/plain", Body: strings.Repeat("x", maxRequestBody+1)}, kind: KindDenied},
		{q: recurgent.Request{URL: "/plain?" + strings.Repeat("x", maxURL)}, kind: KindDenied},
	} {
		if strings.HasPrefix(c.q.URL, "/") {
			c.q.URL = s.URL + c.q.URL
		}
		if c.kind == KindTimeout {
			f.opts.Timeout = 100 * time.Millisecond
		}
		r, note, refused := do(t.Context(), f, c.q)
		f.opts.Timeout = patience
		if note.ErrorKind != c.kind || note.Status != c.status || (refused == nil) != (c.kind == "") {
			t.Errorf("%s %.80s: kind %q status %d %+v, want %q %d", c.q.Method, c.q.URL, note.ErrorKind, note.Status,
				refused, c.kind, c.status)
			continue
		}
		if c.body != "" && r.Body != c.body || c.over > 0 && len(r.Body) != c.over {
			t.Errorf("%.80s: body %.100q, want %q", c.q.URL, r.Body, c.body)
		}
	}
	r, _, refused := do(t.Context(), f, recurgent.Request{URL: s.URL + "/headers"})
	if refused != nil || len(r.Header) > maxFetchHeaders {
		t.Errorf("%v, %d headers", refused, len(r.Header))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, refused := do(ctx, f, recurgent.Request{URL: s.URL + "/plain"}); refused == nil {
		t.Error("a fetch for a call that is over went out")
	}
}

// A redirect to another host drops the program's headers, and one to the same host keeps them. The note has the final
// address.
func TestFetchRedirectDropsTheProgramsHeaders(t *testing.T) {
	a, hostA := site(t)
	b, hostB := site(t)
	f := testClient(t, hostA, hostB)
	r, note, refused := do(t.Context(), f, recurgent.Request{URL: a.URL + "/to?u=" + b.URL + "/echo",
		Header: map[string]string{"Authorization": "Bearer secret", "Cookie": "a=b", "X-Test": "key",
			"User-Agent": "mine"}})
	if refused != nil || r.Body != "GET   ua=recurgentd auth= cookie=" || note.URL != b.URL+"/echo" {
		t.Errorf("%v %+v %+v", refused, r, note)
	}
	r, _, refused = do(t.Context(), f, recurgent.Request{URL: a.URL + "/to?u=" + a.URL + "/echo",
		Header: map[string]string{"Authorization": "Bearer secret", "X-Test": "key"}})
	if refused != nil || r.Body != "GET key  ua=recurgentd auth=Bearer secret cookie=" {
		t.Errorf("%v %+v", refused, r)
	}
}

// Addresses inside a cloud are not public, in whatever form they are written.
func TestCloudAddressesAreNotPublic(t *testing.T) {
	guard := publicOnly()
	for _, address := range []string{
		"168.63.129.16", "161.26.0.10", "166.9.250.218", "199.36.153.10", "34.126.1.1", "34.118.224.10",
		"169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192",
		"::ffff:168.63.129.16", "64:ff9b::a83f:8110", "2002:a83f:8110::1", "fd00:ec2::254", "fd20:ce::254",
		"fe80::a9fe:a9fe", "2600:2d00:2:1000::1", "2001:4860:8040::1",
	} {
		if err := guard.Safe("tcp4", net.JoinHostPort(address, "443"), nil); err == nil {
			t.Errorf("%s passes for public", address)
		}
	}
	for _, address := range []string{"168.63.129.17", "8.8.8.8", "199.36.153.12", "2606:4700::1111"} {
		if err := guard.Safe("tcp4", net.JoinHostPort(address, "443"), nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	f := testClient(t)
	for _, url := range []string{"https://168.63.129.16/machine", "https://metadata.platformequinix.com/metadata",
		"https://METADATA.packet.net./metadata"} {
		if _, note, refused := do(t.Context(), f,
			recurgent.Request{URL: url}); refused == nil || refused.Type != "denied" || note.ErrorKind != "denied" {
			t.Errorf("%s: %+v, %+v, want denied", url, refused, note)
		}
	}
}

// A proxy of the environment is not used, because it would bypass the address check.
func TestFetchIgnoresProxies(t *testing.T) {
	s, host := site(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	if _, _, refused := do(t.Context(), testClient(t, host), recurgent.Request{URL: s.URL + "/plain"}); refused != nil {
		t.Error(refused)
	}
}

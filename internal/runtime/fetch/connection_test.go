package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// fakeConnection signs with a secret that changes when it is renewed.
type fakeConnection struct {
	host    string
	address string // the credential, if it is an address
	methods []string
	secret  atomic.Int64
	refused error // what Sign returns
	renews  atomic.Int64
}

func (f *fakeConnection) Connect(_ Caller, _ string, at *url.URL) Connection {
	if at.Host != f.host {
		return nil
	}
	return f
}
func (f *fakeConnection) Named(_ Caller, method, name string) (Connection, *url.URL, error) {
	at, err := url.Parse(f.address)
	if name != "fake" || !f.Grants(method) {
		err = deny("no such connection")
	}
	return f, at, err
}
func (f *fakeConnection) Name() string              { return "fake" }
func (f *fakeConnection) Grants(method string) bool { return slices.Contains(f.methods, method) }
func (f *fakeConnection) token() string             { return fmt.Sprintf("secret-%d", f.secret.Load()) }
func (f *fakeConnection) Sign(_ context.Context, r *http.Request) error {
	r.Header.Set("Authorization", "Bearer "+f.token())
	return f.refused
}
func (f *fakeConnection) Renew(context.Context) bool {
	return f.secret.Add(1) > 0 && f.renews.Add(1) > 0
}
func (f *fakeConnection) Mask(_ context.Context, text []byte) []byte {
	for _, secret := range []string{f.token(), f.address} {
		if secret != "" {
			text = []byte(strings.ReplaceAll(string(text), secret, "[masked]"))
		}
	}
	return text
}
func (f *fakeConnection) IdempotencyHeader() string { return "" }

// connected returns a server that requires the credential, a second server, and a client with a connection for the
// first.
func connected(t *testing.T) (*httptest.Server, *httptest.Server, *fakeConnection, *Client) {
	t.Helper()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("lead"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprintf(w, "other auth=%q url=%s", r.Header.Get("Authorization"), r.URL)
	}))
	t.Cleanup(other.Close)
	f := &fakeConnection{methods: []string{"GET"}}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case r.URL.Path == "/never" || r.URL.Path == "/expired" && got == "secret-0":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/away":
			http.Redirect(w, r, other.URL+r.URL.Query().Get("to"), http.StatusFound)
		case r.URL.Path == "/leak":
			http.Redirect(w, r, other.URL+"/?key="+got, http.StatusFound)
		case r.URL.Path == "/self":
			http.Redirect(w, r, "/echo?key="+got, http.StatusFound)
		default:
			w.Header().Set("X-Echo", got)
			fmt.Fprintf(w, "key=%s url=%s", got, r.URL)
		}
	}))
	t.Cleanup(api.Close)
	f.host = strings.TrimPrefix(api.URL, "http://")
	o := DefaultOptions()
	o.Connector = f
	return api, other, f, clientWith(t, o, f.host, strings.TrimPrefix(other.URL, "http://"))
}

// The credential goes to its host only, and no echo of it reaches the program or the note.
func TestConnectionSignsAndMasks(t *testing.T) {
	t.Parallel()
	api, other, _, c := connected(t)
	for path, want := range map[string]struct{ body, at, connection string }{
		"/echo":       {"key=[masked] url=/echo", api.URL + "/echo", "fake"},
		"/self":       {"key=[masked] url=/echo?key=[masked]", api.URL + "/echo?key=[masked]", "fake"},
		"/away?to=/x": {`other auth="" url=/x`, other.URL + "/x", ""},
	} {
		r, note, failure := do(t.Context(), c, recurgent.Request{URL: api.URL + path})
		if failure != nil || r.Body != want.body || note.URL != want.at || note.Connection != want.connection {
			t.Errorf("%s: got %+v, %+v, %+v, want %+v", path, failure, r, note, want)
			continue
		}
		if all := fmt.Sprint(r, note); strings.Contains(all, "secret-") {
			t.Errorf("%s: the secret came back: %s", path, all)
		}
	}
	_, note, failure := do(t.Context(), c, recurgent.Request{URL: api.URL + "/leak"})
	if failure == nil || failure.Type != "denied" || strings.Contains(fmt.Sprint(note, failure), "secret-") {
		t.Errorf("a redirect that carries the credential away: got %+v, %+v, want denied", failure, note)
	}
}

// A host that no connection names cannot make the daemon send signed requests: neither by a redirect to a host that has
// a connection, nor by a redirect back.
func TestRedirectsAreNotSigned(t *testing.T) {
	t.Parallel()
	api, other, _, c := connected(t)
	lead := other.URL + "/?lead=" + url.QueryEscape(api.URL+"/echo")
	for name, at := range map[string]string{"to the connection's host": lead,
		"away and back": api.URL + "/away?to=" + url.QueryEscape("/?lead="+url.QueryEscape(api.URL+"/echo"))} {
		r, note, failure := do(t.Context(), c, recurgent.Request{URL: at})
		if failure != nil || r.Body != "key= url=/echo" || note.Connection != "" {
			t.Errorf("%s: got %+v, %+v, %+v, want an answer without a credential", name, failure, r, note)
		}
	}
}

// everywhere is a Connector with one connection for all hosts.
type everywhere struct{ Connection }

func (e everywhere) Connect(Caller, string, *url.URL) Connection { return e.Connection }

func (e everywhere) Named(Caller, string, string) (Connection, *url.URL, error) {
	return nil, nil, deny("no connection is an address")
}

// A credential that was sent over https is not sent in clear after a host's redirect, even if the connection and the
// policy allow plain http.
func TestNoDowngradeIsSigned(t *testing.T) {
	t.Parallel()
	var last atomic.Value // the credential that the last server received
	plain := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		last.Store(r.Header.Get("Authorization"))
	}))
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			t.Error("the first request was not signed")
		}
		http.Redirect(w, r, plain.URL, http.StatusFound)
	}))
	t.Cleanup(secure.Close)
	o := DefaultOptions()
	o.Connector = everywhere{&fakeConnection{methods: []string{"GET"}}}
	c := clientWith(t, o, "127.0.0.1")
	c.transport.base.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	if _, _, failure := do(t.Context(), c, recurgent.Request{URL: secure.URL}); failure != nil || last.Load() != "" {
		t.Errorf("got %+v; sent in clear: %v", failure, last.Load())
	}
	if _, _, failure := do(t.Context(), c, recurgent.Request{URL: plain.URL}); failure != nil || last.Load() == "" {
		t.Errorf("got %+v; a plain address that the program names is signed, got %v", failure, last.Load())
	}
}

// An expired credential is renewed once, whatever the host answers then. The program gets the error of Sign.
func TestConnectionRenewsOnce(t *testing.T) {
	t.Parallel()
	api, _, f, c := connected(t)
	r, _, failure := do(t.Context(), c, recurgent.Request{URL: api.URL + "/expired"})
	if failure != nil || r.Status != http.StatusOK || f.renews.Load() != 1 {
		t.Errorf("got %+v, %+v after %d renewals, want an answer after one", failure, r, f.renews.Load())
	}
	_, note, failure := do(t.Context(), c, recurgent.Request{URL: api.URL + "/never"})
	if failure == nil || !strings.Contains(failure.Message, `the connection "fake"`) ||
		note.ErrorKind != KindConnection || note.Connection != "fake" || f.renews.Load() != 2 {
		t.Errorf("got %+v, %+v after %d renewals, want a refusal that names the connection after one more", failure,
			note, f.renews.Load())
	}
	f.refused = deny("revoked")
	if _, note, failure := do(t.Context(), c,
		recurgent.Request{URL: api.URL + "/echo"}); failure == nil || failure.Type != "denied" ||
		note.ErrorKind != KindDenied {
		t.Errorf("got %+v, %+v, want what Sign refused", failure, note)
	}
	f.refused = errors.New("the token server hung up on " + f.token())
	if _, note, failure := do(t.Context(), c,
		recurgent.Request{URL: api.URL + "/echo"}); failure == nil || failure.Type != "fetch_failed" ||
		note.ErrorKind != KindNetwork || strings.Contains(failure.Message, "secret-") {
		t.Errorf("got %+v, %+v, want a fault of the network without the secret", failure, note)
	}
}

// A connection whose credential is an address is named in place of the address. The request goes there. The program,
// the note and the guard see only the name, even if the host echoes the address, redirects or cannot be reached.
func TestAddressOfAConnection(t *testing.T) {
	t.Parallel()
	api, other, f, c := connected(t)
	f.address = api.URL + "/hook/T0123456789abcdef?v=1"
	r, note, failure := do(t.Context(), c, recurgent.Request{URL: "connection:fake"})
	if failure != nil || r.Body != "key=secret-0 url=/hook/T0123456789abcdef?v=1" &&
		r.Body != "key=[masked] url=/hook/T0123456789abcdef?v=1" || note.URL != "connection:fake" ||
		note.Asked != "connection:fake" || note.Connection != "fake" {
		t.Errorf("got %+v, %+v, %+v", r, note, failure)
	}
	if want := []Reached{{"GET", "connection:fake"}}; !slices.Equal(note.Reached, want) {
		t.Errorf("reached %v, want %v", note.Reached, want)
	}
	f.address = api.URL + "/away?to=/x"
	if r, note, failure = do(t.Context(), c,
		recurgent.Request{URL: "connection:fake"}); failure != nil || r.Body != `other auth="" url=/x` ||
		note.URL != other.URL+"/x" || note.Connection != "" {
		t.Errorf("away: %+v, %+v, %+v", r, note, failure)
	}
	f.address = "http://127.0.0.1:1/hook/T0123456789abcdef"
	for url, want := range map[string]string{
		"connection:fake": "127.0.0.1:1 is not among the hosts", "connection:other": "no such connection",
		"connection:fake/more": "no such connection",
		"connection://fake":    "connection:NAME, with nothing after it",
		"connection:fake?x=1":  "connection:NAME, with nothing after it",
		"connection:":          "connection:NAME, with nothing after it",
	} {
		_, note, failure := do(t.Context(), c, recurgent.Request{URL: url})
		if failure == nil || failure.Type != "denied" || !strings.Contains(failure.Message, want) ||
			strings.Contains(fmt.Sprint(failure, note), "T0123456789abcdef") {
			t.Errorf("%s: %+v, %+v, want %q", url, failure, note, want)
		}
	}
}

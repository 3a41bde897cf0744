package connections

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

const canary = "canary/7Xq+w==s3cret"

// memory is a Store.
type memory struct {
	mu  sync.Mutex
	all []agent.Connection
}

func (m *memory) ListConnections(context.Context) ([]agent.Connection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]agent.Connection{}, m.all...), nil
}

// bench is a service, a client that uses it, and an API that requires what want describes.
type bench struct {
	*testing.T
	s      *Service
	store  *memory
	client *fetch.Client
	api    *httptest.Server
	other  *httptest.Server
	env    map[string]string
	dir    string // of secrets

	want func(r *http.Request) bool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, store: &memory{}, env: map[string]string{}, dir: t.TempDir(),
		want: func(*http.Request) bool { return true }}
	b.other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprint(w, "other ", r.Header, r.URL)
	}))
	b.api = httptest.NewServer(http.HandlerFunc(b.answer))
	t.Cleanup(b.api.Close)
	t.Cleanup(b.other.Close)
	transport, err := fetch.NewTransport(fetch.TransportOptions{Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	b.s, err = New(Options{Namespace: agent.DefaultNamespace, Transport: transport,
		KeyFile: filepath.Join(t.TempDir(), "secrets.key"), SecretsDir: b.dir,
		Env: func(name string) (string, bool) { v, ok := b.env[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	b.s.Use(b.store)
	fo := fetch.DefaultOptions()
	fo.Connector = b.s
	if b.client, err = fetch.New(transport, fo); err != nil {
		t.Fatal(err)
	}
	return b
}

// answer echoes the whole request in many ways.
func (b *bench) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/away" {
		http.Redirect(w, r, b.other.URL+"/there", http.StatusFound)
		return
	}
	if !b.want(r) {
		http.Error(w, "no: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	all := fmt.Sprint(r.Header, r.URL.RawQuery)
	_, password, _ := r.BasicAuth()
	for _, v := range []string{all, password, r.Header.Get("X-Api-Key"), r.URL.Query().Get("key"),
		strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")} {
		w.Header().Add("X-Echo", v)
		quoted, _ := json.Marshal(v)
		fmt.Fprintln(w, v, string(quoted), url.QueryEscape(v), url.PathEscape(v), hex.EncodeToString([]byte(v)),
			base64.StdEncoding.EncodeToString([]byte(v)),
			base64.URLEncoding.EncodeToString([]byte("x"+v)), base64.RawStdEncoding.EncodeToString([]byte("xy"+v)))
	}
}

func (b *bench) host() string { return strings.TrimPrefix(b.api.URL, "http://") }

// put stores a connection to the API with a sealed secret, unless the connection says where its secret is found.
func (b *bench) put(c agent.Connection, secret string) {
	b.Helper()
	if c.Hosts == nil {
		c.Hosts = []string{b.host()}
	}
	if c.Methods == nil {
		c.Methods = []string{"GET"}
	}
	if c.Roles == nil {
		c.Roles = []string{"*"}
	}
	if err := Normalise(&c); err != nil {
		b.Fatal(err)
	}
	if secret != "" {
		var err error
		if c.Auth.Sealed, err = b.s.Seal(c.Name, secret); err != nil {
			b.Fatal(err)
		}
	}
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	c.Revision = 1
	for i := range b.store.all {
		if b.store.all[i].Name == c.Name {
			c.Revision = b.store.all[i].Revision + 1
			b.store.all[i] = c
			return
		}
	}
	b.store.all = append(b.store.all, c)
}

func (b *bench) get(path string) (*recurgent.Response, fetch.Note, *recurgent.Failure) {
	a := b.client.Do(b.Context(), fetch.Caller{Role: "reporter"}, recurgent.Request{URL: b.api.URL + path})
	return a.Response, a.Note, a.Failure
}

// holds returns the spelling of the secret that the text contains, or "".
func holds(text, secret string) string {
	for name, v := range map[string]string{"plain": secret, "query": url.QueryEscape(secret),
		"path": url.PathEscape(secret), "hex": hex.EncodeToString([]byte(secret)),
		"base64":   base64.StdEncoding.EncodeToString([]byte(secret))[:len(secret)],
		"base64 1": base64.RawStdEncoding.EncodeToString([]byte("x" + secret))[2:len(secret)],
		"base64 2": base64.RawStdEncoding.EncodeToString([]byte("xy" + secret))[3:len(secret)]} {
		if strings.Contains(text, v) {
			return name
		}
	}
	return ""
}

func kinds() map[string]struct {
	auth agent.ConnectionAuth
	want func(r *http.Request) bool
} {
	return map[string]struct {
		auth agent.ConnectionAuth
		want func(r *http.Request) bool
	}{
		"bearer": {agent.ConnectionAuth{Type: "bearer"},
			func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+canary }},
		"header": {agent.ConnectionAuth{Type: "header", Name: "X-Api-Key"},
			func(r *http.Request) bool { return r.Header.Get("X-Api-Key") == canary }},
		"query": {agent.ConnectionAuth{Type: "query", Name: "key"},
			func(r *http.Request) bool { return r.URL.Query().Get("key") == canary && r.URL.Query().Get("q") == "1" }},
		"basic": {agent.ConnectionAuth{Type: "basic", Username: "ann"}, func(r *http.Request) bool {
			user, password, _ := r.BasicAuth()
			return user == "ann" && password == canary
		}},
	}
}

// Each kind of credential reaches the API, and no part of it comes back.
func TestKinds(t *testing.T) {
	t.Parallel()
	for name, k := range kinds() {
		b := newBench(t)
		b.want = k.want
		b.put(agent.Connection{Name: "api", Auth: k.auth}, canary)
		for _, path := range []string{"/?q=1", "/?q=1&key=mine"} {
			r, note, failure := b.get(path)
			if failure != nil || r.Status != 200 || note.Connection != "api" {
				t.Errorf("%s %s: %+v, %+v, %+v", name, path, failure, r, note)
				continue
			}
			if all := fmt.Sprint(r, note); holds(all, canary) != "" || !strings.Contains(all, "[masked]") {
				t.Errorf("%s %s: the secret came back %s: %s", name, path, holds(all, canary), all)
			}
		}
		if r, note, failure := b.get("/away"); failure != nil || holds(fmt.Sprint(r, note), canary) != "" ||
			!strings.HasPrefix(r.Body, "other") || note.Connection != "" {
			t.Errorf("%s: away: %+v, %+v, %+v", name, failure, r, note)
		}
	}
}

// A secret that the API rejects, or that is missing or cannot be opened, is reported plainly as a fault of the
// connection.
func TestUnusable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(b *bench, c *agent.Connection) (secret string)
		want string
	}{
		"revoked": {func(b *bench, _ *agent.Connection) string {
			b.want = func(*http.Request) bool { return false }
			return canary
		}, `answered 401: it does not accept the secret of the connection "api"`},
		"none": {func(*bench, *agent.Connection) string { return "" }, "it has no secret"},
		"a variable of the daemon": {func(b *bench, c *agent.Connection) string {
			b.env["RECURGENT_OPENAI_API_KEY"], c.Auth.Env = "of the daemon", "RECURGENT_OPENAI_API_KEY"
			return ""
		}, "cannot name a secret"},
		"no variable": {func(_ *bench, c *agent.Connection) string { c.Auth.Env = "RECURGENT_SECRET_X"; return "" },
			"no RECURGENT_SECRET_X"},
		"no file": {func(_ *bench, c *agent.Connection) string { c.Auth.File = "x"; return "" }, "no file x"},
		"short": {func(b *bench, c *agent.Connection) string {
			c.Auth.Env = "RECURGENT_SECRET_X"
			b.env["RECURGENT_SECRET_X"] = "short"
			return ""
		}, "fewer than 8"},
		"two lines": {func(b *bench, c *agent.Connection) string {
			c.Auth.Env = "RECURGENT_SECRET_X"
			b.env["RECURGENT_SECRET_X"] = canary + "\nX: y"
			return ""
		}, "control characters"},
		"another's": {func(b *bench, c *agent.Connection) string {
			c.Auth.Sealed,
				_ = b.s.Seal("other", canary)
			return ""
		}, "another connection"},
		"a link": {func(b *bench, c *agent.Connection) string {
			c.Auth.File = "x"
			b.must(os.WriteFile(filepath.Join(b.dir, "real"), []byte(canary), 0o600))
			b.must(os.Symlink("real", filepath.Join(b.dir, "x")))
			return ""
		}, "not a regular file"},
		"a directory": {func(b *bench, c *agent.Connection) string {
			c.Auth.File = "x"
			b.must(os.Mkdir(filepath.Join(b.dir, "x"), 0o700))
			return ""
		}, "not a regular file"},
		"no directory": {func(b *bench,
			c *agent.Connection) string {
			c.Auth.File = "x"
			b.s.o.SecretsDir = ""
			return ""
		}, "no --secrets-dir"},
	} {
		b := newBench(t)
		conn := agent.Connection{Name: "api", Auth: agent.ConnectionAuth{Type: agent.AuthBearer}}
		b.put(conn, c.do(b, &conn))
		_, note, failure := b.get("/")
		if failure == nil || failure.Type != "fetch_failed" || note.ErrorKind != fetch.KindConnection ||
			!strings.Contains(failure.Message, c.want) || !strings.Contains(failure.Message, `"api"`) ||
			holds(failure.Message, canary) != "" {
			t.Errorf("%s: %+v, %+v", name, failure, note)
		}
	}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// A secret in the environment or in a file is read at each use. A new stored one applies at once.
func TestRotation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := ""
	b.want = func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+now }
	file := filepath.Join(b.dir, "key.txt")
	for name, put := range map[string]func(secret string){
		"stored": func(secret string) {
			b.put(agent.Connection{Name: "api", Auth: agent.ConnectionAuth{Type: "bearer"}}, secret)
		},
		"file": func(secret string) {
			b.must(os.WriteFile(file, []byte(secret+"\n"), 0o600))
			b.put(agent.Connection{Name: "api", Auth: agent.ConnectionAuth{Type: "bearer", File: "key.txt"}}, "")
		},
		"environment": func(secret string) {
			b.env["RECURGENT_SECRET_API"] = secret
			b.put(agent.Connection{Name: "api", Auth: agent.ConnectionAuth{Type: "bearer",
				Env: "RECURGENT_SECRET_API"}}, "")
		},
	} {
		for _, secret := range []string{"first-secret", "second-secret"} {
			put(secret)
			now = secret
			if r, _, failure := b.get("/"); failure != nil || r.Status != 200 {
				t.Errorf("%s, %s: %+v, %+v", name, secret, failure, r)
			}
		}
	}
	b.must(os.WriteFile(file, []byte("third-secret"), 0o600))
	b.put(agent.Connection{Name: "api", Auth: agent.ConnectionAuth{Type: "bearer", File: "key.txt"}}, "")
	b.must(os.WriteFile(file, []byte("fourth-secret"), 0o600)) // without a PUT
	now = "fourth-secret"
	if r, _, failure := b.get("/"); failure != nil || r.Status != 200 {
		t.Errorf("a file that changed: %+v, %+v", failure, r)
	}
}

// The key file is created for the first secret, readable only by its owner. Without it, or with another, nothing opens;
// with the original, everything does again.
func TestVault(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(agent.Connection{Name: "api", Auth: agent.ConnectionAuth{Type: "bearer"}}, canary)
	key := b.s.o.KeyFile
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(key), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if strings.Contains(string(b.store.all[0].Auth.Sealed), "canary") {
		t.Error("the sealed secret can be read")
	}
	problem := func() string { return b.s.Problem(&b.store.all[0]) }
	b.must(os.Rename(key, key+".away"))
	if p := problem(); !strings.Contains(p, "missing") {
		t.Errorf("without the key: %q", p)
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("opening made a key")
	}
	b.put(agent.Connection{Name: "second", Hosts: []string{"b.example.org"},
		Auth: agent.ConnectionAuth{Type: "bearer"}}, canary)
	if p := problem(); !strings.Contains(p, "does not match") {
		t.Errorf("with another key: %q", p)
	}
	if p := b.s.Problem(&b.store.all[1]); p != "" {
		t.Errorf("sealed with the new key: %q", p)
	}
	b.must(os.WriteFile(key, []byte("nonsense"), 0o600))
	if p := problem(); !strings.Contains(p, "cannot be used") {
		t.Errorf("with a damaged key: %q", p)
	}
	if _, err := b.s.Seal("api", canary); err == nil {
		t.Error("sealed with a damaged key")
	}
	b.must(os.Rename(key+".away", key))
	if p := problem(); p != "" {
		t.Errorf("with the first key again: %q", p)
	}
}

// The key file in a data directory must not be a link; one named by a setting may be. The daemon does not block on
// special files and seals nothing with them.
func TestKeyFileIsAFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.s.Seal("api", canary); err != nil {
		t.Fatal(err)
	}
	key := b.s.o.KeyFile
	for name, c := range map[string]struct {
		put  func() error
		own  bool // refused only in a data directory
		kind string
	}{
		"a link":      {func() error { return os.Symlink(key+".away", key) }, true, "a symbolic link"},
		"a pipe":      {func() error { return unix.Mkfifo(key, 0o600) }, false, "a named pipe"},
		"a directory": {func() error { return os.Mkdir(key, 0o700) }, false, "a directory"},
	} {
		b.must(os.Rename(key, key+".away"))
		b.must(c.put())
		for _, own := range []bool{true, false} {
			b.s.vault.strict = own
			_, err := b.s.Seal("api", canary)
			if refused := own || !c.own; (err != nil) != refused || own && !strings.Contains(err.Error(), c.kind) {
				t.Errorf("%s, in a data directory %v: got %v", name, own, err)
			}
		}
		b.must(os.Remove(key))
		b.must(os.Rename(key+".away", key))
	}
}

// Concurrent first sealings create one key.
func TestOneKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var group sync.WaitGroup
	sealed := make([][]byte, 8)
	for i := range sealed {
		group.Go(func() { sealed[i], _ = b.s.Seal("api", canary) })
	}
	group.Wait()
	for i, data := range sealed {
		if secret, err := b.s.vault.open(data, agent.DefaultNamespace, "api"); err != nil || secret != canary {
			t.Errorf("%d: %q, %v", i, secret, err)
		}
	}
}

// Of several connections the one with the most specific host is used, then the first by name. Role, method and port
// must match.
func TestChoice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]agent.Connection{
		"wide":    {Hosts: []string{"*.example.org"}},
		"narrow":  {Hosts: []string{"*.eu.example.org"}},
		"b-exact": {Hosts: []string{"*.other.org", "api.eu.example.org"}},
		"a-exact": {Hosts: []string{"api.eu.example.org"}},
		"port":    {Hosts: []string{"api.eu.example.org:8443"}},
		"posts":   {Hosts: []string{"api.eu.example.org"}, Methods: []string{"POST"}},
		"private": {Hosts: []string{"private.example.org"}, Roles: []string{"boss"}},
	} {
		c.Name, c.Auth.Type = name, agent.AuthBearer
		b.put(c, canary)
	}
	all := b.store.all
	b.store.all = nil
	// Sorted, as a store lists them.
	for _, name := range []string{"a-exact", "b-exact", "narrow", "port", "posts", "private", "wide"} {
		for _, c := range all {
			if c.Name == name {
				b.store.all = append(b.store.all, c)
			}
		}
	}
	for _, tt := range []struct{ role, method, url, want string }{
		{"r", "GET", "https://x.example.org/", "wide"}, {"r", "GET", "https://x.eu.example.org", "narrow"},
		{"r", "GET", "https://API.eu.example.org./", "a-exact"},
		{"r", "GET", "https://api.eu.example.org:8443/", "port"},
		{"r", "HEAD", "https://api.eu.example.org/", "a-exact"}, {"r", "POST", "https://api.eu.example.org/", "posts"},
		{"r", "PUT", "https://api.eu.example.org/", ""}, {"r", "GET", "https://example.org/", ""},
		{"r", "GET", "https://private.example.org/", "wide"},
		{"boss", "GET", "https://private.example.org/", "private"}, {"r", "GET", "https://evil-example.org/", ""},
		{"r", "GET", "https://example.org.evil.net/", ""},
		{"r", "GET", "https://api.eu.example.org:443/", "a-exact"},
		{"r", "GET", "https://api.eu.example.org:9443/", ""}, {"r", "GET", "http://api.eu.example.org:8080/", ""},
		{"r", "GET", "http://api.eu.example.org/", "a-exact"}, {"r", "GET", "https://x.example.org:9443/", ""},
	} {
		u, err := url.Parse(tt.url)
		b.must(err)
		got := ""
		if c := b.s.Connect(fetch.Caller{Role: tt.role}, tt.method, u); c != nil {
			got = c.Name()
		}
		if got != tt.want {
			t.Errorf("%s %s %s: got %q, want %q", tt.role, tt.method, tt.url, got, tt.want)
		}
	}
}

// tokens is a token server (RFC 6749, client credentials).
type tokens struct {
	secret  atomic.Pointer[string]
	given   atomic.Int64
	expires atomic.Int64 // seconds
	broken  atomic.Pointer[string]
}

func (s *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if body := s.broken.Load(); body != nil {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, *body)
		return
	}
	id, secret, ok := r.BasicAuth()
	if id, _ = url.QueryUnescape(id); ok {
		secret, _ = url.QueryUnescape(secret)
	}
	w.Header().Set("Content-Type", "application/json")
	if r.FormValue("grant_type") != "client_credentials" || id != "client-1" || secret != *s.secret.Load() ||
		r.FormValue("scope") != "read write" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":"invalid_client","error_description":"not %s"}`, secret)
		return
	}
	fmt.Fprintf(w, `{"access_token":"access-token-%d","token_type":"bearer","expires_in":%d}`, s.given.Add(1),
		s.expires.Load())
}

func newTokens(b *bench) (*tokens, agent.ConnectionAuth) {
	s := &tokens{}
	secret := canary
	s.secret.Store(&secret)
	s.expires.Store(3600)
	server := httptest.NewServer(s)
	b.Cleanup(server.Close)
	return s, agent.ConnectionAuth{Type: agent.AuthOAuth2, TokenURL: server.URL + "/token", ClientID: "client-1",
		Scopes: []string{"read", "write"}}
}

// Tokens are cached until they expire. After a 401, one new token is obtained. A new secret drops them at once.
func TestOAuth2(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, auth := newTokens(b)
	b.put(agent.Connection{Name: "api", Auth: auth}, canary)
	accepted := int64(1)
	b.want = func(r *http.Request) bool {
		return r.Header.Get("Authorization") == fmt.Sprintf("Bearer access-token-%d", accepted)
	}
	get := func(what string, given int64) {
		t.Helper()
		r, note, failure := b.get("/")
		if failure != nil || r.Status != 200 || s.given.Load() != given {
			t.Fatalf("%s: %+v, %+v after %d tokens, want %d", what, failure, r, s.given.Load(), given)
		}
		if all := fmt.Sprint(r, note); holds(all, fmt.Sprintf("access-token-%d", accepted)) != "" ||
			holds(all, canary) != "" {
			t.Errorf("%s: the token came back: %s", what, all)
		}
	}
	get("first", 1)
	get("kept", 1)
	accepted = 2
	get("answered 401", 2)
	s.expires.Store(1) // within the margin that counts as expired
	b.put(agent.Connection{Name: "api", Auth: auth}, canary)
	accepted = 3
	get("another revision", 3)
	accepted = 4
	get("ended", 4)
	s.expires.Store(3600)
	secret := "another-secret"
	s.secret.Store(&secret)
	if accepted = 5; true {
		_, note, failure := b.get("/")
		if failure == nil || note.ErrorKind != fetch.KindConnection ||
			!strings.Contains(failure.Message, "401 (invalid_client)") || holds(failure.Message, canary) != "" {
			t.Errorf("a revoked secret: %+v, %+v", failure, note)
		}
	}
	b.put(agent.Connection{Name: "api", Auth: auth}, secret)
	get("rotated", 5)
}

// Whatever the token endpoint answers, the failure is clear and contains none of the answer.
func TestOAuth2Fails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, auth := newTokens(b)
	b.put(agent.Connection{Name: "api", Auth: auth}, canary)
	b.want = func(*http.Request) bool { return false }
	if _, note, failure := b.get("/"); failure == nil || note.ErrorKind != fetch.KindConnection ||
		s.given.Load() != 2 || !strings.Contains(failure.Message, "does not accept") {
		t.Errorf("a token that is never accepted: %+v, %+v, %d tokens", failure, note, s.given.Load())
	}
	echo := "your secret is " + canary
	s.broken.Store(&echo)
	b.put(agent.Connection{Name: "api", Auth: auth}, canary)
	if _, _, failure := b.get("/"); failure == nil || holds(failure.Message, canary) != "" ||
		!strings.Contains(failure.Message, "answered 500") {
		t.Errorf("a broken endpoint: %+v", failure)
	}
	for address, want := range map[string]string{"https://10.0.0.1/token": "not among the hosts",
		"http://localhost:1/token": "not among the hosts", "http://127.0.0.1:1/token": "cannot be reached",
		b.api.URL + "/away": "answered 302"} {
		auth.TokenURL = address
		b.put(agent.Connection{Name: "api", Auth: auth}, canary)
		if _, note, failure := b.get("/"); failure == nil || note.ErrorKind != fetch.KindConnection ||
			!strings.Contains(failure.Message, want) {
			t.Errorf("%s: %+v, %+v", address, failure, note)
		}
	}
}

// An invalid connection is refused with a pointer to the fault.
func TestNormalise(t *testing.T) {
	t.Parallel()
	good := func() agent.Connection {
		return agent.Connection{Name: "api", Hosts: []string{"API.example.org"}, Methods: []string{"get"},
			Roles: []string{"*"}, Auth: agent.ConnectionAuth{Type: "bearer"}}
	}
	c := good()
	if err := Normalise(&c); err != nil || c.Hosts[0] != "api.example.org" || c.Methods[0] != "GET" {
		t.Errorf("got %+v, %v", c, err)
	}
	for pointer, spoil := range map[string]func(c *agent.Connection){
		"":               func(c *agent.Connection) { c.Name = "No Name" },
		"/description":   func(c *agent.Connection) { c.Description = "two\nlines" },
		"/hosts":         func(c *agent.Connection) { c.Hosts = nil },
		"/hosts/0":       func(c *agent.Connection) { c.Hosts = []string{"https://api.example.org"} },
		"/hosts/1":       func(c *agent.Connection) { c.Hosts = []string{"a.example.org", "*.org"} },
		"/methods":       func(c *agent.Connection) { c.Methods = nil },
		"/methods/0":     func(c *agent.Connection) { c.Methods = []string{"TRACE"} },
		"/roles":         func(c *agent.Connection) { c.Roles = nil },
		"/roles/0":       func(c *agent.Connection) { c.Roles = []string{"a/b"} },
		"/auth/type":     func(c *agent.Connection) { c.Auth.Type = "digest" },
		"/auth/name":     func(c *agent.Connection) { c.Auth.Type, c.Auth.Name = "header", "Host" },
		"/auth/username": func(c *agent.Connection) { c.Auth.Type, c.Auth.Username = "basic", "a:b" },
		"/auth/token_url": func(c *agent.Connection) {
			c.Auth.Type, c.Auth.ClientID, c.Auth.TokenURL = "oauth2",
				"x", "ftp://x"
		},
		"/auth/client_id": func(c *agent.Connection) {
			c.Auth.Type, c.Auth.TokenURL = "oauth2",
				"https://x.example.org"
		},
		"/auth/scopes":        func(c *agent.Connection) { c.Auth.Scopes = []string{"x"} },
		"/idempotency_header": func(c *agent.Connection) { c.IdempotencyHeader = "Con nection" },
	} {
		c := good()
		spoil(&c)
		if err, _ := Normalise(&c).(*agent.InputError); err == nil ||
			err.Pointer != pointer { // it is returned bare
			t.Errorf("%s: got %v", pointer, err)
		}
	}
	for _, secret := range []string{"", "1234567", "with\nline", " blank", strings.Repeat("x", maxSecret+1)} {
		if CheckSecret(secret) == nil {
			t.Errorf("%.20q is accepted", secret)
		}
	}
	for _, source := range [][2]string{{"HOME", ""}, {"", "../x"}, {"", "a/b"}, {"", ".hidden"}} {
		if CheckSource(source[0], source[1]) == nil {
			t.Errorf("%q is accepted", source)
		}
	}
}

// A connection of the type url is found only by its name, for the roles and methods that it grants. Requests to its
// host are not signed.
func TestAddress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	secret := "https://hooks.example.org/services/T00000000/B00000000/xxxxxxxxxxxxxxxxxxxxxxxx"
	b.put(agent.Connection{Name: "alerts", Hosts: []string{"hooks.example.org"}, Methods: []string{"POST"},
		Roles: []string{"reporter"}, Auth: agent.ConnectionAuth{Type: agent.AuthURL}}, secret)
	b.put(agent.Connection{Name: "plain", Hosts: []string{"api.example.org"},
		Auth: agent.ConnectionAuth{Type: agent.AuthBearer}}, canary)
	b.put(agent.Connection{Name: "strayed", Hosts: []string{"hooks.example.org"},
		Auth: agent.ConnectionAuth{Type: agent.AuthURL}}, "https://evil.example.net/services/xxxxxxxxxxxxxxxxxxxxxxxx")
	c, at, err := b.s.Named(fetch.Caller{Role: "reporter"}, "POST", "alerts")
	if err != nil || at.String() != secret || c.Name() != "alerts" {
		t.Fatalf("got %v, %v, %v", c, at, err)
	}
	for _, echo := range []string{secret, "/services/T00000000/B00000000/xxxxxxxxxxxxxxxxxxxxxxxx",
		"token xxxxxxxxxxxxxxxxxxxxxxxx", url.QueryEscape(secret)} {
		if got := string(c.Mask(t.Context(),
			[]byte("it was "+echo))); strings.Contains(got, "xxxxxxxx") || !strings.Contains(got, "[masked]") {
			t.Errorf("%s is shown as %s", echo, got)
		}
	}
	for _, tt := range []struct{ role, method, name, want string }{
		{"stranger", "POST", "alerts", `no connection "alerts" for the role stranger`},
		{"reporter", "POST", "nothing", "no connection"},
		{"reporter", "GET", "alerts", "does not grant GET"}, {"reporter", "GET", "plain",
			"request an address of api.example.org"},
		{"reporter", "GET", "strayed", "is an address of a host that is not among the connection's hosts"},
	} {
		if _, _, err := b.s.Named(fetch.Caller{Role: tt.role}, tt.method,
			tt.name); err == nil || !strings.Contains(err.Error(), tt.want) ||
			strings.Contains(err.Error(), "xxxxxxxx") {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if found := b.s.Connect(fetch.Caller{Role: "reporter"}, "POST", at); found != nil {
		t.Errorf("a request to the host goes through %s", found.Name())
	}
	for _, bad := range []string{"hooks.example.org/services/x", "ftp://hooks.example.org/x",
		"https://ann:secret@hooks.example.org/x", "https://hooks.example.org/x#y", "https://example.org/services/x",
		"https://hooks.example.org:8443/x"} {
		if err := CheckAddress(&agent.Connection{Hosts: []string{"hooks.example.org"}},
			bad); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

package app_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
)

const (
	secretA = "aaaa-secret-of-alice"
	secretB = "bbbb-secret-of-bob"
)

// write replaces a file atomically.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// logged is a log that can be read while it is written.
type logged struct {
	mu    sync.Mutex
	b     bytes.Buffer
	lines chan string // receives each line; nil: no one does
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines != nil {
		l.lines <- string(p)
	}
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// await reads lines until one contains the text.
func (l *logged) await(t *testing.T, text string) {
	t.Helper()
	for {
		select {
		case line := <-l.lines:
			if strings.Contains(line, text) {
				return
			}
		case <-time.After(time.Minute): // generous: slow machines
			t.Fatalf("nobody logged %q", text)
		}
	}
}

// status requests /v1/version with the token.
func status(t *testing.T, a *app.App, token string) int {
	t.Helper()
	code, _ := get(t, http.DefaultClient, a, "/v1/version", token)
	return code
}

func get(t *testing.T, c *http.Client, a *app.App, path, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// The token file is reread when it changes. If it is invalid, the old tokens stay in use, and the log names the line
// without a secret.
func TestTokenFileIsReadAgain(t *testing.T) {
	t.Parallel()
	o, log := options(t), &logged{}
	o.AuthTokensFile, o.Logger = filepath.Join(t.TempDir(), "tokens"), zerolog.New(log)
	write(t, o.AuthTokensFile, "alice "+secretA+"\n")
	a := start(t, o)
	for _, step := range []struct {
		name, file string
		alice, bob int
	}{
		{"as it began", "", 200, 401},
		{"bob came", "alice " + secretA + "\nbob " + secretB + "\n", 200, 200},
		{"a bad line", "bob " + secretB + "\nalice short\n", 200, 200},
		{"nothing", "\n", 200, 200},
		{"too much", strings.Repeat("# more\n", 200_000), 200, 200},
		{"alice went", "bob " + secretB + "\n", 401, 200},
		{"alice came back", "alice " + secretA + "\n", 200, 401},
	} {
		if step.file != "" {
			write(t, o.AuthTokensFile, step.file)
			a.Reload()
		}
		if alice, bob := status(t, a, secretA), status(t, a, secretB); alice != step.alice || bob != step.bob {
			t.Errorf("%s: alice %d, bob %d", step.name, alice, bob)
		}
	}
	if err := os.Remove(o.AuthTokensFile); err != nil {
		t.Fatal(err)
	}
	a.Reload()
	if got := status(t, a, secretA); got != 200 {
		t.Errorf("without the file: %d", got)
	}
	if text := log.String(); !strings.Contains(text, "line 2: ") || strings.Contains(text, "secret-of") ||
		strings.Contains(text, "short\n") {
		t.Errorf("the log: %s", text)
	}
	_, metrics := get(t, http.DefaultClient, a, "/metrics", secretA)
	for _, want := range []string{`recurgent_reloads_total{result="ok",what="tokens"} 3`,
		`recurgent_reloads_total{result="failed",what="tokens"} 4`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
}

// Kubernetes mounts a directory whose files are links to a link that is replaced. The daemon notices the change without
// a signal.
func TestMountedTokenFileIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount := func(name, text string) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "tokens"), text)
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	mount("..1", "alice "+secretA+"\n")
	o, log := options(t), &logged{lines: make(chan string, 1000)}
	o.Logger = zerolog.New(log)
	o.AuthTokensFile = filepath.Join(dir, "tokens")
	if err := os.Symlink(filepath.Join("..data", "tokens"), o.AuthTokensFile); err != nil {
		t.Fatal(err)
	}
	a := start(t, o)
	if got := status(t, a, secretA); got != 200 {
		t.Fatalf("alice: %d", got)
	}
	mount("..2", "bob "+secretB+"\n")
	for !strings.Contains(<-log.lines, "the changed file is in use") {
	}
	if alice, bob := status(t, a, secretA), status(t, a, secretB); alice != 401 || bob != 200 {
		t.Errorf("alice %d, bob %d", alice, bob)
	}
}

// A pipe is read only once, at the start.
func TestTokensOfAPipe(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.AuthTokensFile = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(o.AuthTokensFile, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(o.AuthTokensFile, []byte("alice "+secretA+"\n"), 0o600) }()
	if err := o.Resolve(); err != nil { // as the command line does before New
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	a := start(t, o)
	a.Reload()
	if got := status(t, a, secretA); got != 200 {
		t.Errorf("alice: %d", got)
	}
}

// The next connection gets the new certificate without a restart. An invalid pair leaves the old one in use.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	soon := time.Now().Add(24 * time.Hour)
	first, second := apptest.NewPair(t, 1, soon), apptest.NewPair(t, 2, soon.Add(365*24*time.Hour))
	o, log := options(t), &logged{}
	o.TLSCert, o.TLSKey = first.Write(t, dir)
	o.Logger = zerolog.New(log)
	a := start(t, o)
	if !strings.HasPrefix(a.URL(), "https://127.0.0.1:") {
		t.Fatalf("the URL is %s", a.URL())
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first.Cert)
	roots.AppendCertsFromPEM(second.Cert)
	// serial is the serial number of the certificate that a new connection gets.
	serial := func(c *tls.Config, http2 bool) (string, error) {
		c.RootCAs = roots
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: http2}}
		defer client.CloseIdleConnections()
		resp, err := client.Get(a.URL() + "/v1/version")
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 || (resp.ProtoMajor == 2) != http2 {
			return "", fmt.Errorf("%s %s", resp.Proto, resp.Status)
		}
		return resp.TLS.PeerCertificates[0].SerialNumber.String(), nil
	}
	expect := func(when, want string) {
		t.Helper()
		for _, http2 := range []bool{false, true} {
			if got, err := serial(&tls.Config{}, http2); err != nil ||
				got != want {
				t.Errorf("%s: serial %s, %v, want %s", when, got, err, want)
			}
		}
	}
	expect("at the start", "1")
	if !strings.Contains(log.String(), "the certificate ends soon") {
		t.Errorf("no warning of its end: %s", log)
	}
	if _, err := serial(&tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10},
		false); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	write(t, o.TLSKey, string(second.Key))
	a.Reload()
	expect("with the key of another", "1")
	write(t, o.TLSCert, "nonsense")
	a.Reload()
	expect("with a broken certificate", "1")
	write(t, o.TLSCert, string(second.Cert))
	a.Reload()
	expect("with the new pair", "2")
	resp, err := http.Get("http://" + a.Addr() + "/healthz")
	if err == nil {
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP: %d %s", resp.StatusCode, body)
		}
	}
	if text := log.String(); strings.Contains(text, "PRIVATE") {
		t.Errorf("the log holds a key: %s", text)
	}
}

// Event streams that were opened with a certificate survive its replacement.
func TestStreamsOutlastACertificate(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(90 * 24 * time.Hour)
	first, second := apptest.NewPair(t, 1, soon), apptest.NewPair(t, 2, soon)
	o := options(t)
	o.TLSCert, o.TLSKey = first.Write(t, t.TempDir())
	a := start(t, o)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first.Cert)
	roots.AppendCertsFromPEM(second.Cert)
	// ask sends a request over a new connection; serial is that of the certificate it got.
	ask := func(http2 bool, method, path, body string) (resp *http.Response, serial string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
			ForceAttemptHTTP2: http2}}
		r, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if resp, err = client.Do(r); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close(); client.CloseIdleConnections() })
		if resp.StatusCode > 299 || (resp.ProtoMajor == 2) != http2 {
			t.Fatalf("%s %s: %s %s", method, path, resp.Proto, resp.Status)
		}
		return resp, resp.TLS.PeerCertificates[0].SerialNumber.String()
	}
	streams := map[bool]*bufio.Scanner{}
	for _, http2 := range []bool{false, true} {
		resp, serial := ask(http2, http.MethodGet, "/v1/events", "")
		if serial != "1" {
			t.Errorf("a stream with the certificate %s", serial)
		}
		streams[http2] = bufio.NewScanner(resp.Body)
	}
	write(t, o.TLSKey, string(second.Key))
	write(t, o.TLSCert, string(second.Cert))
	a.Reload()
	resp, serial := ask(false, http.MethodPost, "/v1/sessions", `{"role": "clerk"}`)
	var made struct{ ID string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || serial != "2" {
		t.Fatalf("a session: %v, over the certificate %s", err, serial)
	}
	ask(true, http.MethodPost, "/v1/sessions/"+made.ID+"/calls", `{"method": "name=", "args": ["x"]}`)
	for http2, lines := range streams {
		seen := false
		for !seen && lines.Scan() {
			seen = strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), made.ID)
		}
		if !seen {
			t.Errorf("the stream over HTTP/2 %v ended: %v", http2, lines.Err())
		}
	}
}

// Tokens of the issuer and of the file are accepted side by side. The issuer's alice and the file's are different
// owners.
func TestIssuerAndFile(t *testing.T) {
	t.Parallel()
	id, o := oidctest.New(t), options(t)
	o.AuthTokensFile, o.OIDCIssuer, o.OIDCAudience, o.OIDCNamespaceClaim = filepath.Join(t.TempDir(), "tokens"), id.URL,
		"recurgentd", "namespace"
	write(t, o.AuthTokensFile, "alice "+secretA+" scopes=read,call\n")
	a := start(t, o)
	theirs := id.Token(t, time.Now(), map[string]any{"namespace": "default"})
	if file, issuer := status(t, a, secretA), status(t, a, theirs); file != 200 || issuer != 200 {
		t.Fatalf("file %d, issuer %d", file, issuer)
	}
	session := func(token string) string {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL()+"/v1/sessions",
			strings.NewReader(`{"role": "calculator"}`))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 201 {
			t.Fatalf("a session: %s", resp.Status)
		}
		return resp.Header.Get("Location")
	}
	mine := session(theirs)
	if code, body := get(t, http.DefaultClient, a, mine,
		theirs); code != 200 || !strings.Contains(body, `"owner":"`+id.URL+`#alice"`) {
		t.Errorf("the session of the issuer's alice: %d %s", code, body)
	}
	for name, c := range map[string]struct {
		more   map[string]any
		status int
		text   string
	}{
		"no namespace": {map[string]any{"namespace": nil}, 403, "names no namespace"},
		"expired":      {map[string]any{"exp": 1}, 401, "expired at 1970"},
		"another's":    {map[string]any{"aud": "other"}, 401, "audience"},
	} {
		if code, body := get(t, http.DefaultClient, a, "/v1/version",
			id.Token(t, time.Now(), c.more)); code != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

// The daemon starts while the issuer is away. Only the issuer's tokens have to wait.
func TestStartWithoutTheIssuer(t *testing.T) {
	t.Parallel()
	id, o := oidctest.New(t), options(t)
	token := id.Token(t, time.Now(), nil)
	id.Replace(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	o.AuthTokensFile, o.OIDCIssuer, o.OIDCAudience, o.OIDCNamespaceClaim = filepath.Join(t.TempDir(), "tokens"), id.URL,
		"recurgentd", "namespace"
	write(t, o.AuthTokensFile, "alice "+secretA+"\n")
	a := start(t, o)
	code, body := get(t, http.DefaultClient, a, "/v1/version", token)
	if code != 503 || !strings.Contains(body, "issuer_unavailable") || !strings.Contains(body, id.URL) {
		t.Errorf("a token of the issuer: %d %s", code, body)
	}
	if got := status(t, a, secretA); got != 200 {
		t.Errorf("a token of the file: %d", got)
	}
}

func TestAccessOptionsAreChecked(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "tokens")
	write(t, bad, "alice "+secretA+"\nbob\n")
	for name, c := range map[string]struct {
		change func(*app.Options)
		option string
	}{
		"reachable without tokens": {func(o *app.Options) { o.Listen = ":0" }, "listen"},
		"a broken file":            {func(o *app.Options) { o.AuthTokensFile = bad }, "auth-tokens-file"},
		"a directory":              {func(o *app.Options) { o.AuthTokensFile = filepath.Dir(bad) }, "auth-tokens-file"},
		"plain http": {func(o *app.Options) { o.OIDCIssuer, o.OIDCAudience = "http://id.example", "a" },
			"oidc-issuer"},
	} {
		o := options(t)
		c.change(&o)
		a, err := app.New(t.Context(), o)
		var refused *app.OptionError
		if a != nil || !errors.As(err, &refused) || refused.Name != c.option ||
			strings.Contains(err.Error(), "secret-of") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

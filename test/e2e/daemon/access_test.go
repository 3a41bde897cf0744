package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// replace replaces a file at once.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// A daemon without a terminal reads its tokens again on SIGHUP, and goes on. A token that is gone is refused, and the
// stream that it opened ends.
func TestSighupReadsTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	replace(t, tokens, "alice aaaa-secret-of-alice\nbob bbbb-secret-of-bob\n")
	d := &rig.Daemon{T: t, Dir: dir, Output: rig.NewOutput(t), HTTP: &http.Client{Timeout: rig.Patience},
		Env: rig.Environment(dir), Alone: true,
		Args: []string{"--auth-tokens-file", tokens}}
	d.Start()
	t.Cleanup(func() { d.Stop(syscall.SIGKILL) })
	alice, bob := d.As("aaaa-secret-of-alice"), d.As("bbbb-secret-of-bob")
	streams := map[*rig.Daemon]*http.Response{}
	for _, who := range []*rig.Daemon{alice, bob} {
		if streams[who] = who.Stream(t.Context(), "/v1/events", nil); streams[who].StatusCode != 200 {
			t.Fatalf("a stream: %s", streams[who].Status)
		}
		defer streams[who].Body.Close()
	}
	replace(t, tokens, "bob bbbb-secret-of-bob\n")
	if err := d.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, "the end of the token",
		func() bool { return alice.Send(http.MethodGet, "/v1/version", nil, nil).Status == 401 })
	if _, err := io.ReadAll(streams[alice].Body); err != nil { // its end
		t.Errorf("the stream of a token that is gone: %v", err)
	}
	bob.Get("/v1/version")
	if text := d.Output.String(); strings.Contains(text, "secret-of") {
		t.Errorf("a token is in the log:\n%s", text)
	}
}

// With TLS the commands of the client work by https, with a token of an issuer, and trust nobody they do not know.
func TestCommandsOverTLS(t *testing.T) {
	t.Parallel()
	id, dir := oidctest.New(t), t.TempDir()
	cert, key := apptest.NewPair(t, 1, time.Now().Add(48*time.Hour)).Write(t, dir)
	data, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data)
	d := &rig.Daemon{T: t, Dir: dir, Output: rig.NewOutput(t), Env: rig.Environment(dir),
		HTTP: &http.Client{Timeout: rig.Patience,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
		Args: []string{"--tls-cert", cert, "--tls-key", key, "--oidc-issuer", id.URL, "--oidc-audience", "recurgentd",
			"--oidc-namespace-claim", "namespace"}}
	d.Start()
	t.Cleanup(func() { d.Stop(syscall.SIGKILL) })
	if !strings.HasPrefix(d.URL, "https://127.0.0.1:") {
		t.Fatalf("the URL is %s", d.URL)
	}
	token := id.Token(t, time.Now(), map[string]any{"namespace": "default"})
	env := append(rig.Environment(dir), "RECURGENT_URL="+d.URL, "RECURGENT_TOKEN="+token)
	trusting := append(env, "RECURGENT_CA_FILE="+cert)
	if out, errs, code := rig.Run(t, trusting, "healthcheck"); code != 0 {
		t.Errorf("healthcheck: %d, %s%s", code, out, errs)
	}
	if out, errs, code := rig.Run(t, trusting, "call", "calculator", "add", "2",
		"3"); code != 0 || strings.TrimSpace(out) != "5" {
		t.Errorf("call: %d, %s%s", code, out, errs)
	}
	if out, errs, code := rig.Run(t, env, "call", "calculator", "add", "2",
		"3"); code != 3 || !strings.Contains(errs, "--ca-file") {
		t.Errorf("without the certificate: %d, %s%s", code, out, errs)
	}
	expired := append(trusting, "RECURGENT_TOKEN="+id.Token(t, time.Now(), map[string]any{"exp": 1}))
	if out, errs, code := rig.Run(t, expired, "call", "calculator", "add", "2",
		"3"); code == 0 || !strings.Contains(errs, "the token expired at 1970-01-01") {
		t.Errorf("an expired token: %d, %s%s", code, out, errs)
	}
}

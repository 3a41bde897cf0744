package cli

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// For people, each check is one line, followed by the layers of the confinement with reasons, and the remedy.
func TestDoctorForPeople(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	out := &output{sh: Shell{Stdout: &b, Env: noEnvironment}, form: formTable}
	status := &sandbox.Status{Level: sandbox.LevelReduced, Layers: map[string]string{"seccomp": "on",
		"landlock": "off (this kernel has none)", "netns": "off (user namespaces are forbidden)"},
		Probes: map[string]string{"connect": "ALLOWED", "open": "denied (EPERM)"}}
	err := printFindings(out, []finding{{Check: "settings", Result: checkOK, Detail: "valid; all at their defaults"},
		{Check: "sandbox", Result: checkWarn, Detail: "level reduced; missing: " + missingLayers(*status),
			Fix: "docs/security.md says", Status: status},
		{Check: "model", Result: checkFail, Detail: "dial\x1b[31m refused\n", Fix: "check OPENAI_BASE_URL"}})
	if err == nil || err.Error() != "1 of 3 checks failed" {
		t.Errorf("got %v", err)
	}
	want := `ok    settings   valid; all at their defaults
warn  sandbox    level reduced; missing: landlock, netns
                 off  landlock (this kernel has none)
                 off  netns (user namespaces are forbidden)
                 on   seccomp
                 open a runner may connect: ALLOWED
                 → docs/security.md says
fail  model      dial�[31m refused
                 → check OPENAI_BASE_URL
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDoctorOnAccess(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	tokens := writeFile(t, "tokens", "alice 0123456789abcdef\n")
	pair := func(left time.Duration) []string {
		cert, key := apptest.NewPair(t, 1, now.Add(left)).Write(t, t.TempDir())
		return []string{"--tls-cert", cert, "--tls-key", key, "--listen", ":1", "--auth-tokens-file", tokens}
	}
	replica := func(left time.Duration) []string {
		cert, key := apptest.NewPair(t, 1, now.Add(left)).Write(t, t.TempDir())
		return []string{"--store", "postgres://u@db/name", "--advertise", "127.0.0.1:1", "--cluster-ca", cert,
			"--cluster-cert", cert, "--cluster-key", key}
	}
	id, broken := oidctest.New(t), oidctest.New(t)
	broken.Replace(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	issuer := func(url string, more ...string) []string {
		return append([]string{"--oidc-issuer", url, "--oidc-audience", "recurgentd"}, more...)
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		args           []string
		result, detail string
	}{
		"nothing":            {nil, checkOK, "everybody on this machine"},
		"tokens on this one": {[]string{"--auth-tokens-file", tokens}, checkOK, tokens},
		"tokens without TLS": {[]string{"--auth-tokens-file", tokens, "--listen", "0.0.0.0:1"}, checkWarn,
			"without TLS"},
		"TLS":                 {pair(15 * day), checkOK, "ends at 2026-12-07T12:00:00Z"},
		"a certificate's end": {pair(14*day - time.Second), checkWarn, "ends at 2026-12-06T11:59:59Z"},
		"an old certificate":  {pair(-time.Second), checkFail, "ended at"},
		"a replica":           {replica(15 * day), checkOK, "among replicas ends at 2026-12-07T12:00:00Z"},
		"a replica's end": {replica(14*day - time.Second), checkWarn,
			"among replicas ends at 2026-12-06T11:59:59Z"},
		"an old replica": {replica(-time.Second), checkFail, "among replicas ended at"},
		"an issuer":      {issuer(id.URL, "--oidc-namespace-claim", "ns"), checkOK, "the issuer has 1 key"},
		"an issuer and a file": {issuer(id.URL, "--oidc-namespace-claim", "ns", "--auth-tokens-file", tokens), checkOK,
			tokens + " and of " + id.URL},
		"no claim":              {issuer(id.URL), checkWarn, "may do nothing"},
		"an issuer that is out": {issuer(broken.URL, "--oidc-namespace-claim", "ns"), checkWarn, "502"},
	} {
		o, err := load(t, ServeScope, c.args, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f := checkAccess(t.Context(), o, now)
		if f.Result != c.result || !strings.Contains(f.Detail, c.detail) || (f.Fix == "") != (f.Result == checkOK) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Without a database there is no finding. An unreachable one is a failure that names its host but no password.
func TestDoctorDatabase(t *testing.T) {
	t.Parallel()
	none := Shell{Env: func(string) (string, bool) { return "", false }}
	flags := pflag.NewFlagSet("doctor", pflag.ContinueOnError)
	if f, found := checkDatabase(t.Context(), none, flags); found {
		t.Errorf("without a database: got %+v", f)
	}
	address := map[string]string{"RECURGENT_STORE": "postgres://u:s3cret@127.0.0.1:1/name"}
	away := Shell{Env: func(name string) (string, bool) { v, ok := address[name]; return v, ok }}
	f, found := checkDatabase(t.Context(), away, flags)
	if !found || f.Result != checkFail || !strings.Contains(f.Detail, "postgres://127.0.0.1:1/name") ||
		strings.Contains(f.Detail+f.Fix, "s3cret") {
		t.Errorf("of no server: got %+v, %v", f, found)
	}
}

package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
)

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

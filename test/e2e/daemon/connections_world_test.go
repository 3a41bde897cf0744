package daemon

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// canary is the secret of a kind of authentication: with the characters that encoders change.
func kindCanary(kind string) string { return "cAnAry-" + kind + "-9f/Q+x=zz" }

// kinds are the kinds of authentication, with what a connection says of each and how its API sees the secret.
var kinds = map[string]struct {
	auth map[string]any
	seen func(r *http.Request) string
}{
	"bearer": {map[string]any{"type": "bearer"},
		func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }},
	"header": {map[string]any{"type": "header", "name": "X-Api-Key"},
		func(r *http.Request) string { return r.Header.Get("X-Api-Key") }},
	"query": {map[string]any{"type": "query", "name": "key"},
		func(r *http.Request) string { return r.URL.Query().Get("key") }},
	"basic": {map[string]any{"type": "basic", "username": "ann"},
		func(r *http.Request) string { _, p, _ := r.BasicAuth(); return p }},
	"oauth2": {map[string]any{"type": "oauth2", "client_id": "client-1"}, func(r *http.Request) string {
		return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}},
}

// needles are the secrets, and the access token, in the ways in which they are looked for.
func needles() map[string][]byte {
	out := map[string][]byte{}
	for _, kind := range []string{"bearer", "header", "query", "basic", "oauth2", "token"} {
		s := kindCanary(kind)
		out[kind], out[kind+" query"], out[kind+" path"] = []byte(s), []byte(url.QueryEscape(s)),
			[]byte(url.PathEscape(s))
		out[kind+" hex"], out[kind+" HEX"] = []byte(hex.EncodeToString([]byte(s))),
			[]byte(strings.ToUpper(hex.EncodeToString([]byte(s))))
		for offset := range 3 {
			for name, e := range map[string]*base64.Encoding{"std": base64.RawStdEncoding,
				"url": base64.RawURLEncoding} {
				text := e.EncodeToString([]byte(strings.Repeat("x", offset) + s))
				out[fmt.Sprint(kind, " base64 ", name, offset)] = []byte(text[offset*8/6+1 : len(text)-2])
			}
		}
		for name, written := range oddly(s) {
			out[kind+" "+name] = []byte(written)
		}
	}
	return out
}

// oddly are ways in which servers repeat what they were sent, beside the usual ones.
func oddly(s string) map[string]string {
	each := func(format string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, format, c)
		}
		return b.String()
	}
	code := base64.StdEncoding.EncodeToString([]byte(s))
	half := len(code) / 2
	return map[string]string{"lower": strings.ToLower(s), "upper": strings.ToUpper(s), "percent": each("%%%02x"),
		"entities": each("&#%d;"), "hex entities": each("&#x%x;"),
		"JSON": each(`\u%04X`), "string": each(`\x%02x`), "JSON in a URL": url.QueryEscape(each(`\u%04x`)),
		"base64 in lines": code[:half] + "\r\n" + code[half:]}
}

// control is in every answer of an API: who finds no secret has to find this.
const control = "cOnTrOl-of-the-search"

// An api wants the secret of its kind and echoes it in every way.
type guardedAPI struct {
	*httptest.Server
	want     string
	seen     func(r *http.Request) string
	other    string // where /away redirects to
	accepted atomic.Int64
	revoked  atomic.Bool
}

func newGuardedAPI(t *testing.T, kind, other string) *guardedAPI {
	t.Helper()
	a := &guardedAPI{want: kindCanary(kind), seen: kinds[kind].seen, other: other}
	if kind == "oauth2" {
		a.want = kindCanary("token")
	}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *guardedAPI) host() string { return strings.TrimPrefix(a.URL, "http://") }

func (a *guardedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	got := a.seen(r)
	if got == a.want {
		a.accepted.Add(1)
	}
	quoted, _ := json.Marshal(map[string]any{"secret": got, "header": r.Header, "query": r.URL.RawQuery})
	echo := fmt.Sprintln(control, got, url.QueryEscape(got), url.PathEscape(got), hex.EncodeToString([]byte(got)),
		base64.StdEncoding.EncodeToString([]byte(got)),
		base64.URLEncoding.EncodeToString([]byte("a"+got)), base64.StdEncoding.EncodeToString([]byte("ab"+got)),
		string(quoted))
	for _, written := range oddly(got) {
		echo += written + "\n"
	}
	w.Header().Set("X-Echo", got)
	w.Header().Set("X-"+hex.EncodeToString([]byte(got)), "x")
	status := http.StatusOK
	switch {
	case r.URL.Path == "/fail":
		status = http.StatusInternalServerError
	case r.URL.Path == "/away":
		http.Redirect(w, r, a.other+"/there", http.StatusFound)
		return
	case r.URL.Path == "/leak":
		http.Redirect(w, r, a.other+"/there?key="+url.QueryEscape(got), http.StatusFound)
		return
	case r.URL.Path == "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, echo)
		_ = z.Close()
		return
	case r.URL.Path == "/coding":
		w.Header().Set("Content-Encoding", got)
	case r.URL.Path == "/cut":
		w.Header().Set("Content-Length", fmt.Sprint(len(echo)+100))
	case got != a.want || a.revoked.Load():
		status = http.StatusUnauthorized
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, echo)
}

// newTokens is a token server (RFC 6749, client credentials). It echoes the secret, too.
func newTokens(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		secret, _ = url.QueryUnescape(secret)
		w.Header().Set("Content-Type", "application/json")
		if id != "client-1" || secret != kindCanary("oauth2") || r.FormValue("grant_type") != "client_credentials" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":%q}`, secret)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"bearer","expires_in":3600,"note":%q}`, kindCanary("token"),
			secret)
	}))
	t.Cleanup(s.Close)
	return s
}

// pipe runs a client command with that standard input.
func pipe(t *testing.T, d *rig.Daemon, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env, cmd.Stdin = append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL), strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
	return string(out)
}

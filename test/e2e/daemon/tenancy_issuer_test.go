package daemon

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/access/oidc/oidctest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// ofIssuer are the settings for an issuer's tokens.
func ofIssuer(id *oidctest.Issuer, more ...string) []string {
	return append([]string{"--oidc-issuer", id.URL, "--oidc-audience", "recurgentd", "--oidc-namespace-claim",
		"namespace"}, more...)
}

// An issuer's tokens, good and refused, stand nowhere in what the daemon writes, sends or answers: log, traces, data
// directory, metrics, replies and prompts. Nor do their payloads and signatures.
func TestTokensOfAnIssuerStayUnseen(t *testing.T) {
	t.Parallel()
	id := oidctest.New(t)
	spans := &kept{}
	traces := httptest.NewServer(spans)
	t.Cleanup(traces.Close)
	m := rig.NewModel(t, rig.Script{"clerk.greet": {greeter("issuer")}})
	d := rig.StartIn(t, m, []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + traces.URL + "/v1/traces",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"},
		ofIssuer(id, "--log-level", "debug", "--model-prices", rig.WriteFile(t, "prices.yaml",
			"currency: EUR\nmodels: {}\n"))...)
	now := time.Now()
	all := map[string]any{"scope": "read call operate admin"}
	good := id.Token(t, now, all)
	unknown := oidctest.RSA(t, "of-nobody")
	tokens := map[string]string{
		"good": good, "expired": id.Token(t, now.Add(-48*time.Hour), all),
		"for others":     id.Token(t, now, map[string]any{"aud": "other"}),
		"no namespace":   id.Token(t, now, map[string]any{"namespace": nil}),
		"no right":       id.Token(t, now, map[string]any{"scope": ""}),
		"an unknown key": oidctest.Sign(t, unknown, nil, id.Claims(now, all)),
		"tampered":       good[:len(good)-6] + "AAAAAA", "a word": "eyJ-not-a-token-at-all.of.anybody",
		"two namespaces": id.Token(t, now, map[string]any{"namespace": []string{"a", "b"}}),
	}
	seen := &bytes.Buffer{}
	for name, token := range tokens {
		p := person(d, token, "")
		for _, o := range [][3]string{{http.MethodGet, "/v1/sessions"}, {http.MethodGet, "/v1/none"},
			{http.MethodPost, "/v1/sessions", `{"role": "clerk"}`}, {http.MethodGet, "/v1/usage"},
			{http.MethodPost, "/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`},
			{http.MethodGet, "/v1/calls/call_none/why"}} {
			var body []byte
			if o[2] != "" {
				body = []byte(o[2])
			}
			r := p.Send(o[0], o[1], body, map[string]string{"Accept": "application/json, text/event-stream",
				"X-Request-Id": "asked-" + strings.ReplaceAll(name, " ", "-")})
			if name == "good" && r.Status == http.StatusUnauthorized || name != "good" && r.Status < 400 {
				t.Errorf("%s: %s %s: %d %s", name, o[0], o[1], r.Status, r.Body)
			}
			_ = r.Header.Write(seen)
			seen.Write(r.Body)
		}
	}
	p := person(d, good, "")
	in := p.Session("clerk", map[string]any{"debug": true})
	called := p.Call(in, "greet", "you")
	p.WantValue(called, "hello from issuer to you", "generated")
	for _, path := range []string{"/metrics", "/v1/calls/" + called.CallID, "/v1/calls/" + called.CallID + "/why",
		"/v1/sessions/" + in + "/history", "/v1/maintenance/audit", "/v1/maintenance/export"} {
		seen.Write(p.Do(http.StatusOK, http.MethodGet, path, nil).Body)
	}
	id.SetKeys(oidctest.EC(t, "ec-2")) // what is logged of keys that change, too
	p.Send(http.MethodGet, "/v1/sessions", nil, nil)
	d.Stop(syscall.SIGTERM)

	places := map[string][]byte{"replies": seen.Bytes(), "log": []byte(d.Output.String()), "traces": spans.all()}
	for name, data := range d.Everything() {
		places["data directory: "+name] = data
	}
	for _, r := range m.Requests() {
		places["prompts"] = append(places["prompts"], rig.MustJSON(r.Body)...)
	}
	for place, data := range places {
		for name, token := range tokens {
			parts := strings.Split(token, ".")
			for _, part := range []string{token, parts[1], parts[2]} {
				if len(part) > 8 && bytes.Contains(data, []byte(part)) {
					t.Errorf("%s: a token (%s) or a part of it stands there", place, name)
				}
			}
		}
	}
	if !bytes.Contains(places["log"], []byte("asked-tampered")) ||
		!bytes.Contains(places["traces"], []byte(called.CallID)) || len(places) < 10 {
		t.Errorf("too little was searched: %d places, a log of %d and traces of %d bytes", len(places),
			len(places["log"]), len(places["traces"]))
	}
}

// People of an issuer are held to the rate and the concurrency of the settings, each of them by name whichever token
// they use, and others are not.
func TestRateOfAnIssuersPeople(t *testing.T) {
	t.Parallel()
	id := oidctest.New(t)
	m := rig.NewModel(t, rig.Script{"clerk.slow": {rig.Held(rig.ProgGiven)}, "clerk.other": {rig.Held(rig.ProgGiven)}})
	// each replica has its own rates
	d := rig.Start(t, m, ofIssuer(id, "--oidc-rate", "0.001/s", "--oidc-concurrency", "1", "--auth-tokens-file",
		rig.WriteFile(t, "tokens", "alice token-of-alice-0001 namespace=acme\n"))...).One()
	now := time.Now()
	first, second, bob := person(d, id.Token(t, now, nil), ""),
		person(d, id.Token(t, now, map[string]any{"jti": "another"}), ""),
		person(d, id.Token(t, now, map[string]any{"sub": "bob"}), "")
	ok := first.Send(http.MethodGet, "/v1/sessions", nil, nil)
	if ok.Status != http.StatusOK || ok.Header.Get("RateLimit-Policy") != `"requests";q=1;w=1000` ||
		!strings.HasPrefix(ok.Header.Get("RateLimit"), `"requests";r=0;t=`) {
		t.Errorf("%d %v", ok.Status, ok.Header)
	}
	for name, p := range map[string]*rig.Daemon{"the same token": first, "another token": second} {
		r := p.Send(http.MethodGet, "/v1/sessions", nil, nil)
		rig.CheckProblem(t, name, r)
		if r.Status != http.StatusTooManyRequests || r.Object(t)["code"] != "rate_limited" ||
			r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
	file := person(d, "token-of-alice-0001", "")
	for range 3 {
		file.Do(http.StatusOK, http.MethodGet, "/v1/sessions", nil)
	}
	bob.Do(http.StatusOK, http.MethodGet, "/v1/sessions", nil)
}

// Of an issuer's people each may have so many calls at once; more wait, and those of others do not.
func TestConcurrencyOfAnIssuersPeople(t *testing.T) {
	t.Parallel()
	id := oidctest.New(t)
	m := rig.NewModel(t, rig.Script{"clerk.slow": {rig.Held(rig.ProgGiven)}, "clerk.more": {rig.ProgGiven}})
	d := rig.Start(t, m, ofIssuer(id, "--oidc-concurrency", "1")...).One()
	now := time.Now()
	alice, again, bob := person(d, id.Token(t, now, nil), ""),
		person(d, id.Token(t, now, map[string]any{"jti": "another"}), ""),
		person(d, id.Token(t, now, map[string]any{"sub": "bob"}), "")
	root := person(d, id.Token(t, now, map[string]any{"sub": "root", "scope": "admin"}), "")
	begin := func(p *rig.Daemon, method string) chan error {
		in, ended := p.Session("clerk"), make(chan error, 1)
		go func() {
			_, err := p.Try(context.Background(), http.MethodPost, "/v1/sessions/"+in+"/calls",
				[]byte(`{"method": "`+method+`", "args": ["x"]}`), nil)
			ended <- err
		}()
		return ended
	}
	one := begin(alice, "slow")
	m.Arrived(1)
	two := begin(again, "more")
	rig.Until(t, "call waits", func() bool { return root.Metric(`recurgent_waiting{cause="concurrency"}`) == 1 })
	if err := <-begin(bob, "more"); err != nil {
		t.Error(err)
	}
	if n := root.Metric(`recurgent_waiting{cause="concurrency"}`); n != 1 {
		t.Errorf("%v calls wait after another's, want that of alice", n)
	}
	m.Release()
	for _, ended := range []chan error{one, two} {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// kept takes traces, and keeps their bytes.
type kept struct {
	mu   sync.Mutex
	data []byte
}

func (k *kept) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data = append(k.data, data...)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (k *kept) all() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.data
}

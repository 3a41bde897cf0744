package fetch

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// errNoAddress is the error of connectors whose connections all have hosts.
var errNoAddress = deny("no connection is an address")

// grants is a Connector whose only connection grants methods on hosts and signs nothing.
type grants struct {
	hosts, methods []string
	header         string // the header for idempotency keys
}

func (*grants) Named(Caller, string, string) (Connection, *url.URL, error) {
	return nil, nil, errNoAddress
}

func (g *grants) Connect(_ Caller, _ string, at *url.URL) Connection {
	if !slices.Contains(g.hosts, at.Host) {
		return nil
	}
	return g
}
func (g *grants) Name() string                               { return "grants" }
func (g *grants) Grants(method string) bool                  { return slices.Contains(g.methods, method) }
func (g *grants) Sign(context.Context, *http.Request) error  { return nil }
func (g *grants) Renew(context.Context) bool                 { return false }
func (g *grants) Mask(_ context.Context, text []byte) []byte { return text }
func (g *grants) IdempotencyHeader() string                  { return g.header }

// An upstream records what it receives.
type upstream struct {
	*httptest.Server
	host string

	mu   sync.Mutex
	got  []string // guarded by mu; method, path and body of each request
	keys []string // guarded by mu; Idempotency-Key of each request
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.got = append(u.got, fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body))
		u.keys = append(u.keys, r.Header.Get("Idempotency-Key"))
		n := len(u.got)
		u.mu.Unlock()
		switch {
		case r.URL.Path == "/hangup":
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Close()
		case r.URL.Path == "/to":
			status := http.StatusTemporaryRedirect
			if r.URL.Query().Get("as") == "get" {
				status = http.StatusSeeOther
			}
			http.Redirect(w, r, r.URL.Query().Get("u"), status)
		default:
			fmt.Fprintf(w, "%d", n)
		}
	}))
	t.Cleanup(u.Close)
	u.host = strings.TrimPrefix(u.URL, "http://")
	return u
}

func (u *upstream) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.got)
}

// writer returns a client that writes through the connector, and a function that sends a POST.
func writer(t *testing.T, c Connector, hosts ...string) func(who Caller, q recurgent.Request) (string, Note) {
	t.Helper()
	o := DefaultOptions()
	o.Connector = c
	client := clientWith(t, o, hosts...)
	return func(who Caller, q recurgent.Request) (string, Note) {
		a := client.Do(t.Context(), who, q)
		a.Release()
		if a.Failure != nil {
			return a.Failure.Type + ": " + a.Failure.Message, a.Note
		}
		return a.Response.Body, a.Note
	}
}

// Nothing is written without a grant, nor by a run that may not write. The message explains what a person can do.
func TestWritesNeedAGrant(t *testing.T) {
	up, other := newUpstream(t), newUpstream(t)
	send := writer(t, &grants{hosts: []string{up.host}, methods: []string{"GET", "POST"}}, up.host, other.host)
	who := func() Caller { return Caller{Role: "shop", Writes: &Ledger{Call: "call_1"}} }
	for _, c := range []struct {
		name, method, address, want string
		who                         Caller
	}{
		{"granted", "POST", up.URL + "/a", "1", who()},
		{"lower case", "post", up.URL + "/a", "2", who()},
		{"another method", "PUT", up.URL + "/a", "denied", who()},
		{"another method", "DELETE", up.URL + "/a", "denied", who()},
		{"a question about methods", "OPTIONS", up.URL + "/a", "denied", who()},
		{"another host", "POST", other.URL + "/a", "denied", who()},
		{"a dry run", "POST", up.URL + "/a", "denied", Caller{Role: "shop"}},
		{"a redirect to another host", "POST", up.URL + "/to?u=" + url.QueryEscape(other.URL+"/a"), "denied", who()},
	} {
		got, note := send(c.who, recurgent.Request{URL: c.address, Method: c.method, Body: "x"})
		if got != c.want && !strings.HasPrefix(got, c.want+": ") {
			t.Errorf("%s: %s %s: %s", c.name, c.method, c.address, got)
		}
		if c.want == "denied" && c.who.Writes != nil && (note.ErrorKind != KindDenied &&
			note.ErrorKind != KindRedirectDenied || note.Missing == nil ||
			note.Missing.Request != "PUT /v1/connections/{name}" || !strings.Contains(got, "the role shop")) {
			t.Errorf("%s: %s: %+v", c.name, got, note)
		}
	}
	if got := up.requests(); !slices.Equal(got, []string{"POST /a x", "POST /a x", "POST /to x"}) ||
		len(other.requests()) > 0 {
		t.Errorf("the hosts got %q and %q", got, other.requests())
	}
	if got, _ := send(Caller{}, recurgent.Request{URL: other.URL + "/a"}); got != "1" {
		t.Errorf("a GET without a connection: %s", got)
	}
}

// A program that runs again in its call gets the earlier answers. Two equal writes of one run are both sent, and each
// has its own key, which is the same if the client repeats the call.
func TestARepeatedRunWritesOnce(t *testing.T) {
	up := newUpstream(t)
	send := writer(t, &grants{hosts: []string{up.host}, methods: []string{"POST"}, header: "Idempotency-Key"}, up.host)
	pay := recurgent.Request{URL: up.URL + "/pay", Method: "POST", Body: "7",
		Header: map[string]string{"Idempotency-Key": "the program's own"}}
	ledger := &Ledger{Call: "call_1"}
	run := func(l *Ledger) (answers []string, modes []string) {
		for range 2 {
			a, note := send(Caller{Writes: l}, pay)
			answers, modes = append(answers, a), append(modes, note.Mode)
			if !slices.Equal(note.Reached, []Reached{{"POST", up.host}}) {
				t.Errorf("reached %v", note.Reached)
			}
		}
		return answers, modes
	}
	first, modes := run(ledger)
	if !slices.Equal(first, []string{"1", "2"}) || !slices.Equal(modes, []string{ModeLive, ModeLive}) {
		t.Fatalf("the first run: %v %v", first, modes)
	}
	ledger.Return(nil)
	again, modes := run(ledger)
	if !slices.Equal(again, first) || !slices.Equal(modes, []string{ModeRecorded, ModeRecorded}) ||
		len(up.requests()) != 2 {
		t.Errorf("the second run: %v %v, %d requests", again, modes, len(up.requests()))
	}
	if a, _ := send(Caller{Writes: ledger}, pay); a != "3" {
		t.Errorf("a third one of the second run: %s", a)
	}
	run(&Ledger{Call: "call_1"})
	run(&Ledger{Call: "call_2"})
	k := up.keys
	if k[0] == k[1] || k[0] == "" || k[0] == "the program's own" || k[3] != k[0] || k[4] != k[1] || k[5] == k[0] ||
		k[6] == k[1] {
		t.Errorf("keys %q", k)
	}
}

// A write whose answer was lost is not sent again. A write that never left is.
func TestAWriteWithoutAnAnswer(t *testing.T) {
	up := newUpstream(t)
	send := writer(t, &grants{hosts: []string{up.host, "127.0.0.1:1"}, methods: []string{"POST"}}, up.host,
		"127.0.0.1:1")
	ledger := &Ledger{Call: "call_1"}
	for range 3 {
		got, note := send(Caller{Writes: ledger}, recurgent.Request{URL: up.URL + "/hangup?token=secret",
			Method: "POST"})
		if !strings.HasPrefix(got, "unknown_outcome: ") || !strings.Contains(got, "not sent again") ||
			strings.Contains(got, "secret") || note.ErrorKind != KindNetwork {
			t.Errorf("%s %+v", got, note)
		}
		ledger.Return(nil)
	}
	if got := up.requests(); len(got) != 1 {
		t.Errorf("the host got %q", got)
	}
	got, note := send(Caller{Writes: ledger}, recurgent.Request{URL: "http://127.0.0.1:1/", Method: "POST"})
	if !strings.HasPrefix(got, "fetch_failed: ") || note.Sent || len(ledger.made) > 0 {
		t.Errorf("%s %+v %v", got, note, ledger.made)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := DefaultOptions()
	o.Connector = &grants{hosts: []string{up.host}, methods: []string{"POST"}}
	if a := clientWith(t, o, up.host).Do(ctx, Caller{Writes: ledger},
		recurgent.Request{URL: up.URL, Method: "POST"}); a.Failure == nil || a.Note.Sent || len(ledger.made) > 0 {
		t.Errorf("a call that is over: %+v", a)
	}
}

// A program that retries in its own loop does not repeat a write whose outcome is unknown, and neither does a later
// run.
func TestALoopDoesNotRepeatALostWrite(t *testing.T) {
	up := newUpstream(t)
	send := writer(t, &grants{hosts: []string{up.host}, methods: []string{"POST"}}, up.host)
	ledger := &Ledger{Call: "call_1"}
	for range 2 {
		for range 3 {
			if got, _ := send(Caller{Writes: ledger}, recurgent.Request{URL: up.URL + "/hangup", Method: "POST",
				Body: "7"}); !strings.HasPrefix(got, "unknown_outcome: ") {
				t.Error(got)
			}
		}
		if got, _ := send(Caller{Writes: ledger}, recurgent.Request{URL: up.URL + "/other",
			Method: "POST"}); got != "2" {
			t.Errorf("another write: %s", got)
		}
		ledger.Return(nil)
	}
	if got := up.requests(); !slices.Equal(got, []string{"POST /hangup 7", "POST /other "}) {
		t.Errorf("the host got %q", got)
	}
}

// A header that makes a server treat a GET as a write would bypass the grant, and runs that may not write.
func TestNoHeaderMakesAGetAWrite(t *testing.T) {
	up := newUpstream(t)
	send := writer(t, &grants{hosts: []string{up.host}, methods: []string{"GET"}}, up.host)
	for _, name := range []string{"X-HTTP-Method-Override", "x-http-method", "X-METHOD-OVERRIDE",
		"x_http_method_override"} {
		if got, _ := send(Caller{}, recurgent.Request{URL: up.URL + "/a",
			Header: map[string]string{name: "DELETE"}}); !strings.HasPrefix(got, "denied: ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := up.requests(); len(got) > 0 {
		t.Errorf("the host got %q", got)
	}
}

// byRole is a Connector with a connection for each role in it.
type byRole map[string]Connection

func (byRole) Named(Caller, string, string) (Connection, *url.URL, error) {
	return nil, nil, errNoAddress
}

func (b byRole) Connect(who Caller, _ string, _ *url.URL) Connection { return b[who.Role] }

// named is a connection with another name.
type named struct{ *grants }

func (named) Name() string { return "named" }

// The answer that a failed nested call got through its connection is not available to a role without it.
func TestALostAnswerStaysWithItsConnection(t *testing.T) {
	up := newUpstream(t)
	g := &grants{methods: []string{"POST"}}
	send := writer(t, byRole{"bank": g, "till": g, "shop": named{g}}, up.host)
	ledger := &Ledger{Call: "call_1"}
	for _, c := range []struct{ role, want string }{{"bank", "1"}, {"thief", "denied: "}, {"till", "1"}, {"shop", "2"},
		{"bank", "1"}} {
		got, _ := send(Caller{Role: c.role, Writes: ledger}, recurgent.Request{URL: up.URL + "/tokens", Method: "post",
			Body: "{}"})
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s got %s, want %s", c.role, got, c.want)
		}
		ledger.Return(nil) // as after a failed nested call
	}
	if got := up.requests(); len(got) != 2 {
		t.Errorf("the host got %q", got)
	}
}

// only is a Guard that permits one host and method.
type only struct{ host, method string }

func (o only) Permit(method, host string) *Approval {
	if method == o.method && host == o.host {
		return nil
	}
	return &Approval{Message: "not " + method + " " + host, Request: "PUT somewhere"}
}

// The guard is asked before each hop, and answered hops are recorded.
func TestEveryHopIsGuarded(t *testing.T) {
	up, other := newUpstream(t), newUpstream(t)
	send := writer(t, &grants{hosts: []string{up.host}, methods: []string{"POST"}}, up.host, other.host)
	away := up.URL + "/to?as=get&u=" + url.QueryEscape(other.URL+"/a")
	got, note := send(Caller{Writes: &Ledger{}}, recurgent.Request{URL: away, Method: "POST"})
	if got != "1" || !slices.Equal(note.Reached, []Reached{{"POST", up.host}, {"GET", other.host}}) {
		t.Errorf("%s %v", got, note.Reached)
	}
	for _, c := range []struct {
		guard only
		want  []Reached
		says  string
	}{
		{only{up.host, "POST"}, []Reached{{"POST", up.host}}, "not GET " + other.host},
		{only{up.host, "GET"}, nil, "not POST " + up.host},
		{only{other.host, "POST"}, nil, "not POST " + up.host},
	} {
		got, note := send(Caller{Guard: c.guard, Writes: &Ledger{}}, recurgent.Request{URL: away, Method: "POST"})
		if !strings.HasPrefix(got, "denied: fetch: ") || !strings.HasSuffix(got, c.says) ||
			!slices.Equal(note.Reached, c.want) || note.Missing == nil || note.Missing.Request != "PUT somewhere" {
			t.Errorf("%+v: %s %+v", c.guard, got, note)
		}
	}
	if n := len(other.requests()); n != 1 {
		t.Errorf("the other host got %d requests", n)
	}
}

// However a call's programs fail and run again, no write of a run is sent twice, and each gets its original answer.
func TestNoHistoryOfRunsWritesTwice(t *testing.T) {
	random := rand.New(rand.NewPCG(18, 3))
	for round := range 500 {
		l := &Ledger{Call: "call"}
		sent := map[string]int{} // by body and number
		program := make([]string, 1+random.IntN(6))
		for i := range program {
			program[i] = string('a' + rune(random.IntN(3)))
		}
		answers := map[int]string{}
		for run := range 1 + random.IntN(5) {
			l.Return(nil)
			stop := random.IntN(len(program) + 1) // where this run fails
			number := map[string]int{}
			for i, body := range program[:stop] {
				number[body]++
				w := fmt.Sprintf("%s%d", body, number[body])
				a := l.do(&recurgent.Request{Method: "POST", URL: "https://x/", Body: body}, "", func(string) Answer {
					sent[w]++
					if random.IntN(4) == 0 {
						return Answer{Note: Note{Sent: true, ErrorKind: KindTimeout},
							Failure: &recurgent.Failure{Type: "fetch_failed", Message: "no answer in time"}}
					}
					return Answer{Note: Note{Sent: true}, Response: &recurgent.Response{Body: w}}
				})
				got := "unknown"
				if a.Failure == nil {
					got = a.Response.Body
				}
				if was, before := answers[i]; before && was != got {
					t.Fatalf("round %d, run %d: write %d was answered %q, now %q", round, run, i, was, got)
				}
				answers[i] = got
			}
		}
		for w, n := range sent {
			if n > 1 {
				t.Fatalf("round %d: %s of %v was sent %d times", round, w, program, n)
			}
		}
	}
}

package app_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A session's calls over MCP run at its owner, too, whichever replica the agent uses. Mixed with calls over REST, each
// sees the effects of the one before.
func TestReplicasKeepOrderOverMCP(t *testing.T) {
	t.Parallel()
	c := replicas(t, 2, nil)
	id := c.all[0].session()
	const n = 20
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			r := c.all[i%2]
			if i%4 < 2 {
				if a := r.send("POST", calls(id), call("next"), nil); a.status != 200 {
					t.Errorf("by REST: %d %s", a.status, a.body)
				}
				return
			}
			a := r.send("POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": i, "method": "tools/call",
				"params": map[string]any{
					"name": "counter__next", "arguments": map[string]any{},
					"_meta": map[string]any{"recurgent/session_id": id}}},
				map[string]string{"Accept": "application/json, text/event-stream",
					"MCP-Protocol-Version": "2025-06-18"})
			if a.status != 200 || strings.Contains(string(a.body), `"error"`) || !strings.Contains(string(a.body), id) {
				t.Errorf("by MCP: %d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	for i, r := range c.all {
		if got := string(r.want(200, "GET", "/v1/sessions/"+id+"/context", nil,
			nil).body); !strings.Contains(got, fmt.Sprintf(`"n":%d`, n)) {
			t.Errorf("replica %d has the context %s, want %d", i, got, n)
		}
	}
}

// A subscriber over MCP hears of tools that a policy hides as soon as the policy is in force at its replica, however
// late the replica reads another one's change.
func TestReplicaHearsLateOfAPolicy(t *testing.T) {
	t.Parallel()
	c := replicas(t, 1, nil)
	b := c.all[0]
	b.want(200, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
		map[string]string{"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"})
	a := c.add() // takes longer than the first list is news: no subscriber must hear of it below
	readable := make(chan struct{})
	b.store.late.Store(&readable)
	a.want(200, "PATCH", "/v1/policy", map[string]any{"mcp": map[string]any{"expose": "durable"}}, nil)
	changed, listens := make(chan struct{}, 64), make(chan struct{}, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				listens <- struct{}{}
			}
			return next(ctx, method, r)
		}
	})
	// after the store has announced the change
	listener, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: b.URL() + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	<-listens // earlier changes are announced to no one
	close(readable)
	select {
	case <-changed:
	case <-time.After(time.Minute): // generous: slow machines
		t.Error("who listens did not hear of the tools that the policy hides")
	}
}

// When another replica erases a namespace, this one drops its state: running calls end and store nothing, streams end,
// and sessions are gone. A new namespace of the same name is empty at both.
func TestReplicaErasesNamespace(t *testing.T) {
	t.Parallel()
	c := replicas(t, 2, nil)
	a, b := c.all[0], c.all[1]
	in := map[string]string{"Recurgent-Namespace": "acme"}
	a.want(201, "PUT", "/v1/namespaces/acme", nil, nil)
	program := map[string]any{"code": strings.ReplaceAll(waitProgram, "GATE", c.gate.Host)}
	a.want(200, "PUT", "/v1/tools/counter/methods/wait", program, in)
	id := b.want(201, "POST", "/v1/sessions", map[string]any{"role": "counter"}, in).object(t)["id"].(string)
	ended, stream := make(chan answer, 1), make(chan answer, 1)
	go func() { ended <- b.send("POST", calls(id), call("wait"), in) }()
	<-c.gate.Entered
	running := b.want(200, "GET", "/v1/calls?status=running", nil, in).object(t)["data"].([]any)
	if len(running) != 1 {
		t.Fatalf("running: %v", running)
	}
	go func() {
		stream <- b.send("GET", "/v1/calls/"+running[0].(map[string]any)["call_id"].(string)+"/events", nil, in)
	}()
	a.want(204, "DELETE", "/v1/namespaces/acme", nil, nil)
	if r := <-ended; r.err == nil && r.status == 200 {
		t.Errorf("the call under way at the other replica: %d %s", r.status, r.body)
	}
	<-stream
	c.gate.Open()
	for _, r := range c.all {
		if got := r.send("GET", "/v1/sessions/"+id, nil, in); got.status == 200 {
			t.Errorf("a session of an erased namespace: %d %s", got.status, got.body)
		}
	}
	a.want(201, "PUT", "/v1/namespaces/acme", nil, nil)
	for _, r := range c.all {
		if got := r.want(200, "GET", "/v1/sessions", nil, in).object(t)["data"].([]any); len(got) != 0 {
			t.Errorf("sessions of the new namespace: %v", got)
		}
		if got := r.want(200, "GET", "/v1/tools", nil, in).object(t)["data"].([]any); len(got) != 0 {
			t.Errorf("tools of the new namespace: %v", got)
		}
	}
}

// heardLate is logged once a replica has dropped its state of a namespace that another one erased.
const heardLate = "another process deleted a namespace"

// A replica that hears late of an erasure does not answer for the old namespace, and then serves the new one of that
// name.
func TestReplicaHearsLateOfErasedNamespace(t *testing.T) {
	t.Parallel()
	log := &logged{lines: make(chan string, 1000)}
	c := replicas(t, 2, func(o *app.Options) { o.Logger = zerolog.New(log) })
	a, b := c.all[0], c.all[1]
	in := map[string]string{"Recurgent-Namespace": "acme"}
	put := func(r *replica, method string) {
		r.want(200, "PUT", "/v1/tools/counter/methods/"+method, map[string]any{"code": countProgram}, in)
	}
	a.want(201, "PUT", "/v1/namespaces/acme", nil, nil)
	put(b, "old")
	id := b.want(201, "POST", "/v1/sessions", map[string]any{"role": "counter"}, in).object(t)["id"].(string)
	hear := b.store.deafen()
	a.want(204, "DELETE", "/v1/namespaces/acme", nil, nil)
	a.want(201, "PUT", "/v1/namespaces/acme", nil, nil)
	put(a, "new")
	for _, path := range []string{"/v1/tools/counter/methods/old", "/v1/sessions/" + id,
		"/v1/sessions/" + id + "/history"} {
		if got := b.send("GET", path, nil, in); got.status == 200 {
			t.Errorf("GET %s of the erased namespace: %d %s", path, got.status, got.body)
		}
	}
	if got := b.send("POST", calls(id), call("old"), in); got.status == 200 {
		t.Errorf("a call in the erased namespace: %s", got.body)
	}
	hear()
	log.await(t, heardLate)
	b.want(200, "GET", "/v1/tools/counter/methods/new", nil, in)
	if got := b.send("GET", "/v1/tools/counter/methods/old", nil, in); got.status != 404 {
		t.Errorf("what the erased namespace held: %d %s", got.status, got.body)
	}
}

// A replica that hears late of an erasure, and already uses the new namespace of that name, ends nothing in it.
func TestReplicaKeepsNamespaceMadeAgain(t *testing.T) {
	t.Parallel()
	log := &logged{lines: make(chan string, 1000)}
	c := replicas(t, 2, func(o *app.Options) { o.Logger = zerolog.New(log) })
	a, b := c.all[0], c.all[1]
	in := map[string]string{"Recurgent-Namespace": "acme"}
	hear := b.store.deafen()
	a.want(201, "PUT", "/v1/namespaces/acme", nil, nil)
	a.want(204, "DELETE", "/v1/namespaces/acme", nil, nil)
	a.want(201, "PUT", "/v1/namespaces/acme", nil, nil)
	a.want(200, "PUT", "/v1/tools/counter/methods/wait",
		map[string]any{"code": strings.ReplaceAll(waitProgram, "GATE", c.gate.Host)}, in)
	id := b.want(201, "POST", "/v1/sessions", map[string]any{"role": "counter"}, in).object(t)["id"].(string)
	ended := make(chan answer, 1)
	go func() { ended <- b.send("POST", calls(id), call("wait"), in) }()
	<-c.gate.Entered
	hear()
	log.await(t, heardLate)
	c.gate.Open()
	if r := <-ended; r.status != 200 || r.value() != 200.0 {
		t.Errorf("the call under way in the new namespace: %d %s, %v", r.status, r.body, r.err)
	}
}

// CA and certificates of replicas can be replaced while they serve: running requests end well, new ones are forwarded
// at each step, and at the end the old ones are rejected. No replica restarts.
func TestClusterCertificatesAreReplaced(t *testing.T) {
	t.Parallel()
	var files []app.ClusterOptions
	c := replicas(t, 2, func(o *app.Options) { files = append(files, o.ClusterOptions) })
	a, b := c.all[0], c.all[1]
	under, id := a.session(), a.session()
	ended := make(chan answer, 1)
	go func() { ended <- b.send("POST", calls(under), call("wait"), nil) }()
	<-c.gate.Entered
	old, next, count := c.ca, apptest.NewAuthority(t), 0.0
	step := func(name string, authorities []byte, pair func(serial int64) apptest.Pair) {
		t.Helper()
		for i, o := range files {
			write(t, o.ClusterCA, string(authorities))
			if pair != nil {
				p := pair(int64(100 + i))
				write(t, o.ClusterCert, string(p.Cert))
				write(t, o.ClusterKey, string(p.Key))
			}
		}
		for _, r := range c.all {
			r.Reload()
			count++
			if got := b.want(200, "POST", calls(id), call("next"), nil); got.value() != count {
				t.Errorf("%s: forwarded to the owner: %v, want %v", name, got.value(), count)
			}
		}
	}
	step("both authorities", append(bytes.Clone(old.Cert), next.Cert...), nil)
	step("certificates of the new one", append(bytes.Clone(old.Cert), next.Cert...),
		func(serial int64) apptest.Pair { return next.Pair(t, serial) })
	step("the new one alone", next.Cert, nil)
	c.gate.Open()
	if r := <-ended; r.status != 200 || r.value() != 200.0 {
		t.Errorf("the call that was under way: %d %s, %v", r.status, r.body, r.err)
	}
	list, err := c.of.ListReplicas(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, r := range list {
		if got := shown(t, r.Address, next.Pair(t, 7)); got < 100 {
			t.Errorf("%s shows the certificate %d", r.Address, got)
		}
		if got := shown(t, r.Address, old.Pair(t, 7)); got != 0 {
			t.Errorf("%s speaks to one of the old authority", r.Address)
		}
	}
	c.ca = next
	if got := c.add().want(200, "POST", calls(id), call("next"), nil); got.value() != count+1 {
		t.Errorf("forwarded by one that is new: %v, want %v", got.value(), count+1)
	}
}

// The coming expiry of a replica's certificate is reported until another one replaces it.
func TestClusterCertificateEnds(t *testing.T) {
	t.Parallel()
	log := &logged{}
	soon := time.Now().Add(24 * time.Hour)
	var dir string
	c := replicas(t, 1, func(o *app.Options) {
		o.Logger, dir = zerolog.New(log), filepath.Dir(o.ClusterCert)
		apptest.NewPair(t, 1, soon).Write(t, dir)
	})
	a := c.all[0]
	ends := func() string {
		t.Helper()
		_, value, _ := strings.Cut(string(a.want(200, "GET", "/metrics", nil, nil).body),
			"\nrecurgent_certificate_expires_timestamp_seconds ")
		value, _, _ = strings.Cut(value, "\n")
		return value
	}
	seconds := func(at time.Time) string { return strconv.FormatFloat(float64(at.Unix()), 'g', -1, 64) }
	if got := ends(); got != seconds(soon) {
		t.Errorf("the metric says %s, want %s", got, seconds(soon))
	}
	if text := log.String(); !strings.Contains(text, `"setting":"cluster-cert"`) ||
		!strings.Contains(text, "the certificate ends soon") {
		t.Errorf("no warning of its end: %s", text)
	}
	later := soon.AddDate(1, 0, 0)
	apptest.NewPair(t, 2, later).Write(t, dir)
	a.Reload()
	if got := ends(); got != seconds(later) {
		t.Errorf("with another certificate the metric says %s, want %s", got, seconds(later))
	}
}

// shown returns the serial number of the certificate that the replica presents to a client with the given one, or 0 if
// it refuses.
func shown(t *testing.T, address string, pair apptest.Pair) int64 {
	t.Helper()
	own, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{own},
		InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("https://" + address + "/v1/version")
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	return res.TLS.PeerCertificates[0].SerialNumber.Int64()
}

// Two replicas that each take the other for the owner do not bounce a request: it gets 503 with Retry-After, and
// nothing was run.
func TestReplicasDoNotForwardInCircles(t *testing.T) {
	t.Parallel()
	c := replicas(t, 2, func(o *app.Options) { o.ReplicaMove = time.Millisecond })
	a, b := c.all[0], c.all[1]
	id := a.session()
	list, err := c.of.ListReplicas(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, r := range c.all { // each takes the other for the owner
		self := r.want(200, "GET", "/v1/me", nil, nil).header.Get("Recurgent-Replica")
		for _, other := range list {
			if other.ID != self {
				r.store.owner.Store(&store.Ownership{Replica: other.ID, Address: other.Address, Epoch: 1})
			}
		}
	}
	before := a.store.asked.Load()
	for _, r := range c.all {
		if got := r.send("POST", calls(id), call("next"),
			nil); got.status != 503 || got.header.Get("Retry-After") == "" ||
			!strings.Contains(string(got.body), "session_moved") {
			t.Errorf("%d %s, want 503 session_moved", got.status, got.body)
		}
	}
	if asked := a.store.asked.Load() - before; asked > 200 {
		t.Errorf("the store was asked %d times for two requests", asked)
	}
	a.store.owner.Store(nil)
	b.store.owner.Store(nil)
	if got := b.until(200, "POST", calls(id), call("next")); got.value() != 1.0 {
		t.Errorf("afterwards: %s, want the first call", got.body)
	}
}

// A page of an allowed origin gets each header once, whether its replica answers or forwards.
func TestReplicasAnswerPages(t *testing.T) {
	t.Parallel()
	const site = "https://app.example.com"
	c := replicas(t, 2, func(o *app.Options) { o.CORSOrigins = []string{site} })
	id := c.all[0].session()
	for i, r := range c.all {
		a := r.want(200, "POST", calls(id), call("next"), map[string]string{"Origin": site,
			"Sec-Fetch-Site": "cross-site"})
		if got := a.header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != site {
			t.Errorf("replica %d allows %q, want %q once", i, got, site)
		}
		if got := a.header.Values(
			"Access-Control-Expose-Headers"); len(got) != 1 || !strings.Contains(got[0], "Recurgent-Replica") {
			t.Errorf("replica %d exposes %q", i, got)
		}
	}
	c.all[0].want(403, "POST", calls(id), call("next"), map[string]string{"Origin": "https://evil.example",
		"Sec-Fetch-Site": "cross-site"})
}

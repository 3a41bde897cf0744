package app_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// errAway is the error of a store that is cut off.
var errAway = fmt.Errorf("%w: the database cannot be reached", store.ErrReadOnly)

// A handle is one replica's access to the shared store. It can be cut, and counts requests.
type handle struct {
	*storetest.Memory
	cut   atomic.Bool
	asked atomic.Int64
	owner atomic.Pointer[store.Ownership] // owner that it reports for sessions; nil: the real one
	stop  atomic.Pointer[stopped]         // where the next change of a context stops
	late  atomic.Pointer[chan struct{}]   // closed when the policy can be read; nil: it can be

	mu      sync.Mutex
	deaf    bool // to namespaces that others erase; guarded by mu
	unheard []func()
}

// Watch is the store's, but while the handle is deaf it reports erased namespaces later.
func (h *handle) Watch(from store.Cursor, changed func(store.Change)) (stop func(), err error) {
	return h.Memory.Watch(from, func(c store.Change) {
		h.mu.Lock()
		deaf := h.deaf && c.Kind == store.ChangedNamespace
		if deaf {
			h.unheard = append(h.unheard, func() { changed(c) })
		}
		h.mu.Unlock()
		if !deaf {
			changed(c)
		}
	})
}

// deafen makes the handle delay reports of erased namespaces until the returned function is called.
func (h *handle) deafen() (hear func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf = true
	return func() {
		h.mu.Lock()
		late := h.unheard
		h.deaf, h.unheard = false, nil
		h.mu.Unlock()
		for _, report := range late {
			report()
		}
	}
}

// stopped is a point at which a replica pauses, as if its process was stopped.
type stopped struct{ there, goOn chan struct{} }

func (h *handle) reach() error {
	h.asked.Add(1)
	if h.cut.Load() {
		return errAway
	}
	return nil
}

func (h *handle) Ready() error {
	if h.cut.Load() {
		return errAway
	}
	return h.Memory.Ready()
}

func (h *handle) Join(ctx context.Context, r store.Replica, ttl time.Duration) error {
	if err := h.reach(); err != nil {
		return err
	}
	return h.Memory.Join(ctx, r, ttl)
}

func (h *handle) Renew(ctx context.Context, r store.Replica, ttl time.Duration) error {
	if h.cut.Load() {
		return errAway
	}
	return h.Memory.Renew(ctx, r, ttl)
}

func (h *handle) Leave(ctx context.Context, id string) error {
	if err := h.reach(); err != nil {
		return err
	}
	return h.Memory.Leave(ctx, id)
}

func (h *handle) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := h.Memory.Namespace(name)
	return &heldNamespace{n, h}, err
}

// heldNamespace counts and cuts the operations of calls on a namespace.
type heldNamespace struct {
	store.Namespace
	h *handle
}

func (n *heldNamespace) Own(ctx context.Context, session, replica string) (store.Ownership, error) {
	if err := n.h.reach(); err != nil {
		return store.Ownership{}, err
	}
	if o := n.h.owner.Load(); o != nil {
		return *o, nil
	}
	return n.Namespace.Own(ctx, session, replica)
}

func (n *heldNamespace) Disown(ctx context.Context, owned map[string]store.Ownership) error {
	if err := n.h.reach(); err != nil {
		return err
	}
	return n.Namespace.Disown(ctx, owned)
}

func (n *heldNamespace) CreateOwned(ctx context.Context, s agent.Session, memory map[string]json.RawMessage,
	replica string) (store.Ownership, error) {
	if err := n.h.reach(); err != nil {
		return store.Ownership{}, err
	}
	return n.Namespace.CreateOwned(ctx, s, memory, replica)
}

func (n *heldNamespace) Session(ctx context.Context, id string) (agent.Session, error) {
	if err := n.h.reach(); err != nil {
		return agent.Session{}, err
	}
	return n.Namespace.Session(ctx, id)
}

func (n *heldNamespace) CommitCall(ctx context.Context, c *store.CallCommit) error {
	if err := n.h.reach(); err != nil {
		return err
	}
	return n.Namespace.CommitCall(ctx, c)
}

func (n *heldNamespace) Policy(ctx context.Context) (agent.Policy, int64, error) {
	if late := n.h.late.Load(); late != nil {
		<-*late
	}
	return n.Namespace.Policy(ctx)
}

func (n *heldNamespace) ChangeContext(ctx context.Context, session string, fence int64, c agent.ContextChange,
	audit *agent.AuditEntry) (map[string]json.RawMessage, error) {
	if s := n.h.stop.Swap(nil); s != nil {
		close(s.there)
		<-s.goOn
	}
	if err := n.h.reach(); err != nil {
		return nil, err
	}
	return n.Namespace.ChangeContext(ctx, session, fence, c, audit)
}

// A replica is an App with its handle.
type replica struct {
	*app.App
	store *handle
	t     *testing.T
}

// together are the replicas of one store, with helpers for their tests.
type together struct {
	t    *testing.T
	all  []*replica
	gate *apptest.Gate
	of   *storetest.Memory
	ca   *apptest.Authority
	opts func(*app.Options)
	as   map[string]string // headers of a principal with all scopes
}

// programs that the tests call.
const (
	countProgram = "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tn, _ := call.Context[\"n\"].(float64)\n\tcall.Context[\"n\"] = n + 1\n\treturn n + 1, nil\n}\n"
	waitProgram  = "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tr, err := call.Fetch(\"http://GATE/\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tn, _ := call.Context[\"n\"].(float64)\n\tcall.Context[\"n\"] = n + 1\n\treturn r.Status, nil\n}\n"
)

// replicas starts n daemons on one store, with the programs counter.next, which counts in the context, and
// counter.wait, which waits for the gate.
func replicas(t *testing.T, n int, opts func(*app.Options)) *together {
	t.Helper()
	return replicasAs(t, n, nil, opts)
}

// replicasAs is replicas for daemons that require those headers.
func replicasAs(t *testing.T, n int, as map[string]string, opts func(*app.Options)) *together {
	t.Helper()
	c := &together{as: as, t: t, gate: apptest.NewGate(t), of: storetest.NewMemory(time.Now),
		ca: apptest.NewAuthority(t), opts: opts}
	for range n {
		c.add()
	}
	for method, code := range map[string]string{"next": countProgram,
		"wait": strings.ReplaceAll(waitProgram, "GATE", c.gate.Host)} {
		c.all[0].want(200, "PUT", "/v1/tools/counter/methods/"+method, map[string]any{"code": code}, c.as)
	}
	return c
}

// add starts another replica.
func (c *together) add() *replica {
	c.t.Helper()
	o, dir := options(c.t), c.t.TempDir()
	h := &handle{Memory: c.of}
	o.Shared, o.Advertise = h, "127.0.0.1:0"
	// on a busy machine no replica may count as dead or silent
	o.ReplicaTTL, o.ReplicaDial, o.ReplicaMove = 5*time.Minute, time.Minute, time.Minute
	o.FetchAllow = []string{c.gate.Host}
	o.ClusterCert, o.ClusterKey = c.ca.Pair(c.t, int64(len(c.all)+2)).Write(c.t, dir)
	o.ClusterCA = c.ca.Write(c.t, dir)
	if c.opts != nil {
		c.opts(&o)
	}
	r := &replica{start(c.t, o), h, c.t}
	c.all = append(c.all, r)
	return r
}

// mortal makes the first replica count as dead soon after it is cut off. The others live.
func mortal() func(*app.Options) {
	ttl := 3 * time.Second
	return func(o *app.Options) { o.ReplicaTTL, ttl = cmp.Or(ttl, o.ReplicaTTL), 0 }
}

// reply is a reply with its body.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	return v
}

func (a answer) value() any {
	var v struct {
		Outcome struct {
			Value any `json:"value"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(a.body, &v)
	return v.Outcome.Value
}

func (r *replica) send(method, path string, v any, header map[string]string) answer {
	body := []byte(nil)
	if v != nil {
		body, _ = json.Marshal(v)
	}
	q, err := http.NewRequest(method, r.URL()+path, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if v != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		q.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, data, err}
}

// want sends a request and requires the status.
func (r *replica) want(status int, method, path string, v any, header map[string]string) answer {
	r.t.Helper()
	a := r.send(method, path, v, header)
	if a.err != nil || a.status != status {
		r.t.Fatalf("%s %s: %d %.500s, %v; want %d", method, path, a.status, a.body, a.err, status)
	}
	return a
}

func (r *replica) session() string {
	r.t.Helper()
	return r.want(201, "POST", "/v1/sessions", map[string]any{"role": "counter"}, nil).object(r.t)["id"].(string)
}

func calls(session string) string { return "/v1/sessions/" + session + "/calls" }

func call(method string) map[string]any { return map[string]any{"method": method} }

// Concurrent calls of one session through all replicas run one after another: each sees the effects of the one before.
// Replies name the replica that answered, always the same one, and the history has no gap.
func TestReplicasKeepOrder(t *testing.T) {
	t.Parallel()
	c := replicas(t, 3, nil)
	id := c.all[0].session()
	const n = 60
	var all sync.WaitGroup
	var mu sync.Mutex
	seen, by := map[any]bool{}, map[string]bool{}
	for i := range n {
		all.Go(func() {
			a := c.all[i%3].send("POST", calls(id), call("next"), nil)
			mu.Lock()
			defer mu.Unlock()
			if a.status != 200 || seen[a.value()] {
				t.Errorf("call %d: %d %s", i, a.status, a.body)
			}
			seen[a.value()], by[a.header.Get("Recurgent-Replica")] = true, true
		})
	}
	all.Wait()
	if len(seen) != n || !seen[float64(n)] || len(by) != 1 {
		t.Errorf("%d different values by %d replicas, want %d by one", len(seen), len(by), n)
	}
	for i, r := range c.all {
		if got := string(r.want(200, "GET", "/v1/sessions/"+id+"/context", nil,
			nil).body); !strings.Contains(got, fmt.Sprintf(`"n":%d`, n)) {
			t.Errorf("replica %d has the context %s", i, got)
		}
		if size := r.want(200, "GET", "/v1/sessions/"+id+"/history", nil, nil).object(t)["size"]; size != float64(n) {
			t.Errorf("replica %d has %v records", i, size)
		}
	}
	list := c.all[1].want(200, "GET", "/v1/replicas", nil, nil).object(t)["data"].([]any)
	if len(list) != 3 {
		t.Errorf("replicas: %v", list)
	}
}

// A change of a session through another replica takes its turn among the calls: a patch waits for the running call, and
// a deletion cancels it.
func TestReplicasChangeSessions(t *testing.T) {
	t.Parallel()
	c := replicas(t, 2, nil)
	a, b := c.all[0], c.all[1]
	id := a.session()
	done, patched := make(chan answer), make(chan answer)
	go func() { done <- a.send("POST", calls(id), call("wait"), nil) }()
	<-c.gate.Entered
	go func() {
		patched <- b.send("PATCH", "/v1/sessions/"+id+"/context", map[string]any{"m": 1}, nil)
	}()
	c.gate.Open()
	if r := <-done; r.status != 200 || r.value() != 200.0 {
		t.Errorf("the call: %d %s", r.status, r.body)
	}
	if r := <-patched; r.status != 200 || !strings.Contains(string(r.body), `"n":1`) ||
		!strings.Contains(string(r.body), `"m":1`) {
		t.Errorf("the patch: %d %s, want both changes", r.status, r.body)
	}
	b.want(204, "DELETE", "/v1/sessions/"+id, nil, nil)
	a.want(404, "GET", "/v1/sessions/"+id, nil, nil)
	a.want(404, "POST", calls(id), call("next"), nil)
	b.want(404, "POST", calls(id), call("next"), nil)
}

// An idempotency key makes one call, whichever replicas receive it: of concurrent requests one gets 409, later ones get
// the same bytes. That holds in a session, and for functions, whose sessions begin with the call.
func TestReplicasShareIdempotencyKeys(t *testing.T) {
	t.Parallel()
	c := replicas(t, 2, nil)
	a, b := c.all[0], c.all[1]
	id := a.session()
	functions := a.want(200, "GET", "/v1/tools?format=openai", nil, nil)
	if !strings.Contains(string(functions.body), `"counter__wait"`) {
		t.Fatalf("functions: %s", functions.body)
	}
	for name, q := range map[string]struct {
		path string
		body map[string]any
	}{"in a session": {calls(id), call("wait")}, "a function": {"/v1/functions/counter__wait",
		map[string]any{"arguments": map[string]any{}}}} {
		key := map[string]string{"Idempotency-Key": strings.ReplaceAll(name, " ", "-")}
		first := make(chan answer)
		go func() { first <- a.send("POST", q.path, q.body, key) }()
		<-c.gate.Entered
		if r := b.send("POST", q.path, q.body, key); r.status != 409 ||
			!strings.Contains(string(r.body), "idempotency_key_in_use") {
			t.Errorf("%s, while it runs: %d %s", name, r.status, r.body)
		}
		c.gate.Pass()
		one := <-first
		again := b.want(200, "POST", q.path, q.body, key)
		if one.status != 200 || !bytes.Equal(one.body, again.body) ||
			again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %d %s\nthen %s", name, one.status, one.body, again.body)
		}
		other := b.send("POST", q.path, map[string]any{"method": "wait", "args": []int{1}}, key)
		if other.status != 422 {
			t.Errorf("%s, with another body: %d %s", name, other.status, other.body)
		}
	}
}

// A call that runs at one replica can be found through another: by its id, by its events from any point, and to cancel
// it.
func TestReplicasFindCalls(t *testing.T) {
	t.Parallel()
	c := replicas(t, 3, nil)
	a, b := c.all[0], c.all[1]
	id := a.session()
	made := a.want(202, "POST", calls(id), call("wait"), map[string]string{"Prefer": "respond-async"}).object(t)
	<-c.gate.Entered
	path := "/v1/calls/" + made["call_id"].(string)
	if got := b.want(200, "GET", path, nil, nil).object(t)["outcome_status"]; got != "running" {
		t.Errorf("status at another replica: %v", got)
	}
	b.want(404, "GET", "/v1/calls/call_06gzqwq081srb0e6zx42fm96t5", nil, nil)
	events := make(chan answer, 2)
	for _, r := range c.all[1:] {
		go func() { events <- r.send("GET", path+"/events", nil, map[string]string{"Last-Event-ID": "1"}) }()
	}
	b.want(204, "POST", path+"/cancel", nil, nil)
	for range 2 {
		if e := <-events; e.status != 200 || !strings.Contains(string(e.body), "event: call.finished") ||
			!strings.Contains(string(e.body), "canceled") || strings.Contains(string(e.body), "id: 1\n") {
			t.Errorf("events at another replica: %d %s", e.status, e.body)
		}
	}
	got := b.want(200, "GET", path, nil, nil).object(t)
	if got["outcome_status"] != "error" || got["outcome_error_type"] != "canceled" {
		t.Errorf("afterwards: %v", got)
	}
	if e := b.want(200, "GET", path+"/events", nil, nil); !strings.Contains(string(e.body), "call.finished") {
		t.Errorf("events of an ended call: %s", e.body)
	}
}

// The list of running calls covers all replicas, as far as the client may see the calls, page by page. A replica that
// does not answer is named.
func TestReplicasListRunningCalls(t *testing.T) {
	t.Parallel()
	c := replicas(t, 3, nil)
	want := map[string]bool{}
	for _, r := range c.all {
		made := r.want(202, "POST", calls(r.session()), call("wait"),
			map[string]string{"Prefer": "respond-async"}).object(t)
		<-c.gate.Entered
		want[made["call_id"].(string)] = true
	}
	for i, r := range c.all {
		got, next := map[string]bool{}, ""
		for pages := 0; pages < 5; pages++ {
			a := r.want(200, "GET", "/v1/calls?status=running&limit=1"+next, nil, nil)
			if v := a.header.Get("Recurgent-Unanswered"); v != "" {
				t.Errorf("replica %d: %s did not answer", i, v)
			}
			page := a.object(t)
			for _, e := range page["data"].([]any) {
				got[e.(map[string]any)["call_id"].(string)] = true
			}
			if page["next_cursor"] == nil {
				break
			}
			next = "&after=" + page["next_cursor"].(string)
		}
		if !maps.Equal(got, want) {
			t.Errorf("replica %d lists %v, want %v", i, got, want)
		}
	}
	dead := store.Replica{ID: "rep_silent", Address: "127.0.0.1:1"}
	if err := c.of.Join(t.Context(), dead, time.Minute); err != nil {
		t.Fatal(err)
	}
	a := c.all[0].want(200, "GET", "/v1/calls?status=running", nil, nil)
	if n := len(a.object(t)["data"].([]any)); n != 3 || a.header.Get("Recurgent-Unanswered") != dead.ID {
		t.Errorf("%d calls; %q did not answer, want 3 and %s", n, a.header.Get("Recurgent-Unanswered"), dead.ID)
	}
	c.gate.Open()
}

// The sessions of a dead replica move, and its running calls change nothing: commits are refused once another replica
// owns the session. When it is back, it takes no session that others own.
func TestReplicaDies(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the time after which a replica counts as dead")
	}
	t.Parallel()
	c := replicas(t, 2, mortal())
	a, b := c.all[0], c.all[1]
	id := a.session()
	a.want(200, "POST", calls(id), call("next"), nil)
	under := make(chan answer)
	go func() { under <- a.send("POST", calls(id), call("wait"), nil) }()
	<-c.gate.Entered
	a.store.cut.Store(true)
	if r := a.send("GET", "/readyz", nil, nil); r.status != 503 {
		t.Errorf("/readyz without a database: %d", r.status)
	}
	if r := a.send("POST", calls(id), call("next"), nil); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("a call without a database: %d %s", r.status, r.body)
	}
	moved := b.until(200, "POST", calls(id), call("next"))
	if moved.value() != 2.0 || moved.header.Get("Recurgent-Replica") == "" {
		t.Errorf("the next call: %s", moved.body)
	}
	a.store.cut.Store(false) // it was only stopped, and continues
	c.gate.Open()
	if r := <-under; r.status != 503 || !strings.Contains(string(r.body), "session_moved") {
		t.Errorf("the call of the replica that was counted as dead: %d %s", r.status, r.body)
	}
	after := a.until(200, "POST", calls(id), call("next"))
	if after.value() != 3.0 || after.header.Get("Recurgent-Replica") != moved.header.Get("Recurgent-Replica") {
		t.Errorf("back again: %s by %s, want 3 by %s", after.body, after.header.Get("Recurgent-Replica"),
			moved.header.Get("Recurgent-Replica"))
	}
	if size := a.want(200, "GET", "/v1/sessions/"+id+"/history", nil, nil).object(t)["size"]; size != 3.0 {
		t.Errorf("%v records, want 3", size)
	}
}

// A replica that is stopped while it changes a context, and continues when another one owns the session, changes
// nothing. The owner makes the change, once, and no other change is lost.
func TestStoppedReplicaChangesNoContext(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the time after which a replica counts as dead")
	}
	t.Parallel()
	c := replicas(t, 2, mortal())
	a, b := c.all[0], c.all[1]
	id := a.session()
	a.want(200, "POST", calls(id), call("next"), nil)
	s := &stopped{make(chan struct{}), make(chan struct{})}
	a.store.stop.Store(s)
	patched := make(chan answer)
	go func() { patched <- a.send("PATCH", "/v1/sessions/"+id+"/context", map[string]any{"m": 1}, nil) }()
	<-s.there
	a.store.cut.Store(true)
	moved := b.until(200, "POST", calls(id), call("next"))
	a.store.cut.Store(false)
	for a.send("GET", "/readyz", nil, nil).status != 200 { // until it has joined again
	}
	close(s.goOn)
	if r := <-patched; r.status != 200 || !strings.Contains(string(r.body), `"m":1`) ||
		!strings.Contains(string(r.body), `"n":2`) ||
		r.header.Get("Recurgent-Replica") != moved.header.Get("Recurgent-Replica") {
		t.Errorf("the patch: %d %s by %s, want both changes by %s", r.status, r.body, r.header.Get("Recurgent-Replica"),
			moved.header.Get("Recurgent-Replica"))
	}
	if trail := string(b.want(200, "GET", "/v1/maintenance/audit", nil,
		nil).body); strings.Count(trail, `"context.patch"`) != 1 {
		t.Errorf("want one patch on record: %s", trail)
	}
}

// A session that begins with its first call belongs to the replica that runs it. A change through another replica waits
// its turn.
func TestReplicasOwnNewSessions(t *testing.T) {
	t.Parallel()
	c := replicas(t, 2, nil)
	a, b := c.all[0], c.all[1]
	done, patched := make(chan answer), make(chan answer)
	go func() {
		done <- a.send("POST", "/v1/functions/counter__wait", map[string]any{"arguments": map[string]any{}}, nil)
	}()
	<-c.gate.Entered
	list := b.want(200, "GET", "/v1/sessions", nil, nil).object(t)["data"].([]any)
	if len(list) != 1 {
		t.Fatalf("sessions: %v", list)
	}
	id := list[0].(map[string]any)["id"].(string)
	go func() {
		patched <- b.send("PATCH", "/v1/sessions/"+id+"/context", map[string]any{"n": 10}, nil)
	}()
	next := make(chan answer)
	go func() { next <- b.send("POST", calls(id), call("next"), nil) }()
	c.gate.Open()
	first := <-done
	if first.status != 200 {
		t.Errorf("the first call: %d %s", first.status, first.body)
	}
	for _, r := range []answer{<-patched, <-next} {
		if r.status != 200 || r.header.Get("Recurgent-Replica") != first.header.Get("Recurgent-Replica") {
			t.Errorf("what came meanwhile: %d %s by %s, want it by %s", r.status, r.body,
				r.header.Get("Recurgent-Replica"), first.header.Get("Recurgent-Replica"))
		}
	}
	if n := string(b.want(200, "GET", "/v1/sessions/"+id+"/context", nil,
		nil).body); !strings.Contains(n, `"n":10`) && !strings.Contains(n, `"n":11`) {
		t.Errorf("the context has lost an update: %s", n)
	}
}

// until repeats a request until it gets the status. Before, it must get 503 with Retry-After.
func (r *replica) until(status int, method, path string, v any) answer {
	r.t.Helper()
	pause := time.NewTicker(10 * time.Millisecond) // processes running alongside need CPU time, too
	defer pause.Stop()
	for ; ; <-pause.C {
		a := r.send(method, path, v, nil)
		if a.status == status || a.status != 503 || a.header.Get("Retry-After") == "" {
			if a.status != status {
				r.t.Fatalf("%s %s: %d %s, want 503 with Retry-After until %d", method, path, a.status, a.body, status)
			}
			return a
		}
	}
}

// A stopping replica hands its sessions over: clients of other replicas see no error, and running calls end well.
func TestReplicaLeaves(t *testing.T) {
	t.Parallel()
	c := replicas(t, 2, nil)
	a, b := c.all[0], c.all[1]
	ids := []string{a.session(), a.session()}
	for _, id := range ids {
		a.want(200, "POST", calls(id), call("next"), nil)
	}
	under := make(chan answer)
	go func() { under <- b.send("POST", calls(ids[0]), call("wait"), nil) }() // forwarded to a
	<-c.gate.Entered
	stopped := make(chan error)
	go func() { stopped <- a.Stop(context.Background()) }()
	for a.send("GET", "/readyz", nil, nil).status == 200 { // until it is leaving
	}
	if r := b.want(200, "POST", calls(ids[1]), call("next"), nil); r.value() != 2.0 {
		t.Errorf("a session that nobody uses, at the other replica: %s", r.body)
	}
	next := make(chan answer)
	go func() { next <- b.send("POST", calls(ids[0]), call("next"), nil) }()
	c.gate.Open()
	if r := <-under; r.status != 200 || r.value() != 200.0 {
		t.Errorf("the call under way: %d %s", r.status, r.body)
	}
	if r := <-next; r.status != 200 || r.value() != 3.0 {
		t.Errorf("the call that waited behind it: %d %s", r.status, r.body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	if list := b.want(200, "GET", "/v1/replicas", nil, nil).object(t)["data"].([]any); len(list) != 1 {
		t.Errorf("replicas: %v", list)
	}
}

// The principal is the one that the first replica has authenticated, whatever the client claims. A missing scope is
// missing at every replica.
func TestReplicasPassPrincipalsOn(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens,
		[]byte("alice 0123456789abcdef scopes=read,call\nmallory fedcba9876543210 scopes=read,call\nroot 00112233445566778899\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(token string, more ...string) map[string]string {
		h := map[string]string{"Authorization": "Bearer " + token}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	c := replicasAs(t, 2, as("00112233445566778899"), func(o *app.Options) { o.AuthTokensFile = tokens })
	a, b := c.all[0], c.all[1]
	id := a.want(201, "POST", "/v1/sessions", map[string]any{"role": "counter"},
		as("0123456789abcdef")).object(t)["id"].(string)
	a.want(200, "POST", calls(id), call("next"), as("0123456789abcdef"))
	b.want(200, "POST", calls(id), call("next"), as("0123456789abcdef"))
	forged := `eyJOYW1lIjoiYWxpY2UiLCJOYW1lc3BhY2UiOiJkZWZhdWx0IiwiU2NvcGVzIjoxNX0` // alice with all scopes
	for _, h := range []map[string]string{as("fedcba9876543210"),
		as("fedcba9876543210", "Recurgent-Principal", forged)} {
		for _, r := range c.all {
			r.want(404, "POST", calls(id), call("next"), h)
			r.want(404, "DELETE", "/v1/sessions/"+id, nil, h)
		}
	}
	for _, r := range c.all {
		r.want(401, "POST", calls(id), call("next"), map[string]string{"Recurgent-Principal": forged})
		r.want(403, "GET", "/v1/replicas", nil, as("0123456789abcdef", "Recurgent-Principal", forged))
	}
	entries := b.want(200, "GET", "/v1/calls?session_id="+id, nil, as("00112233445566778899")).object(t)["data"].([]any)
	if len(entries) != 2 {
		t.Errorf("%d calls, want 2", len(entries))
	}
}

// A warm call at its owner makes as many requests to the store as with a single daemon.
func TestOwnersCallsCostNothingMore(t *testing.T) {
	t.Parallel()
	c := replicas(t, 2, nil)
	a := c.all[0]
	id := a.session()
	for range 3 {
		a.want(200, "POST", calls(id), call("next"), nil)
	}
	before := a.store.asked.Load()
	const n = 20
	for range n {
		a.want(200, "POST", calls(id), call("next"), nil)
	}
	if got := a.store.asked.Load() - before; got != 2*n {
		t.Errorf("%d requests to the store for %d calls, want 2 each: the session and the commit", got, n)
	}
}

// Replicas need a shared store, and report what else they lack.
func TestClusterOptions(t *testing.T) {
	t.Parallel()
	ca, dir := apptest.NewAuthority(t), t.TempDir()
	cert, key := ca.Pair(t, 2).Write(t, dir)
	good := options(t)
	nobody, nobodysKey := ca.PairFor(t, 3, "").Write(t, t.TempDir())
	good.Advertise, good.ClusterCert, good.ClusterKey, good.ClusterCA = "127.0.0.1:0", cert, key, ca.Write(t, dir)
	for name, change := range map[string]func(*app.Options){
		"advertise":      func(*app.Options) {}, // a data directory is not shared
		"cluster-ca":     func(o *app.Options) { o.ClusterCA = "" },
		"cluster-cert":   func(o *app.Options) { o.ClusterCert = key },
		"cluster-cert ":  func(o *app.Options) { o.ClusterCert, o.ClusterKey = nobody, nobodysKey },
		"cluster-key":    func(o *app.Options) { o.Advertise = "" },
		"cluster-listen": func(o *app.Options) { o.ClusterListen = "here" },
	} {
		o := good
		change(&o)
		if name == "cluster-key" {
			o.ClusterCert, o.ClusterCA = "", ""
		}
		_, err := app.New(t.Context(), o)
		var refused *app.OptionError
		if !errors.As(err, &refused) || refused.Name != strings.TrimSpace(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	document "github.com/recurgentd/recurgentd/api"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// people are principals by token. They can be changed while the interface serves.
type people struct {
	mu  sync.Mutex
	all map[string]access.Principal // guarded by mu
}

func (p *people) Authenticate(_ context.Context, bearer string) (access.Principal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, ok := p.all[bearer]
	if !ok {
		return who, access.ErrUnknown
	}
	return who, nil
}

func (p *people) set(who access.Principal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who.Scopes, who.Namespace = access.All, "default"
	p.all[who.Name] = who
}

// held is a runtime whose calls last until the test ends them.
type heldCalls struct {
	*fake
	mu    sync.Mutex
	begun []string                           // methods, in order; guarded by mu
	ends  map[string]chan struct{}           // guarded by mu
	done  map[string]chan runtime.CallResult // guarded by mu
	deaf  chan struct{}                      // closed when streams may listen; nil: they may at once
	stays bool                               // whether calls go on without their clients
}

func (h *heldCalls) begin(method string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = append(h.begun, method)
	if h.ends[method] == nil {
		h.ends[method] = make(chan struct{})
	}
	return h.ends[method]
}

func (h *heldCalls) Call(ctx context.Context, q runtime.CallRequest) (runtime.CallResult, error) {
	if h.stays {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-h.begin(q.Method):
		return runtime.CallResult{Body: []byte(`{}`), CallID: knownCall, OK: true}, nil
	case <-ctx.Done():
		return runtime.CallResult{}, context.Cause(ctx)
	}
}

func (h *heldCalls) Start(q runtime.CallRequest) (string, <-chan runtime.CallResult, error) {
	end, done := h.begin(q.Method), make(chan runtime.CallResult, 1)
	go func() {
		<-end
		done <- runtime.CallResult{Body: []byte(`{}`), OK: true}
		close(done)
	}()
	return knownCall, done, nil
}

func (h *heldCalls) Events(ctx context.Context, q operator.EventQuery, _ func(progress.Event) error) error {
	if h.deaf != nil {
		<-h.deaf
	}
	q.Listens()
	<-ctx.Done()
	return context.Cause(ctx)
}

func (h *heldCalls) end(method string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.ends[method])
}

func (h *heldCalls) order() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.begun)
}

// crowd is an interface with several principals, in a bubble.
type crowd struct {
	t       *testing.T
	calls   *heldCalls
	people  *people
	handler http.Handler
	server  *server
}

func newCrowd(t *testing.T, change func(*Options)) *crowd {
	t.Helper()
	c := &crowd{t: t, people: &people{all: map[string]access.Principal{}},
		calls: &heldCalls{fake: &fake{}, ends: map[string]chan struct{}{}, done: map[string]chan runtime.CallResult{}}}
	o, reg := DefaultOptions(), telemetry.NewRegistry()
	o.Namespaces, o.Registry, o.Metrics, o.OpenAPI, o.Auth = only(t, c.calls), reg,
		telemetry.New(reg, telemetry.Build{}), document.OpenAPI, c.people
	if change != nil {
		change(&o)
	}
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	c.server, c.handler = s, s.table.router
	return c
}

func (c *crowd) wantWaiting(cause string, want float64) {
	c.t.Helper()
	if got := testutil.ToFloat64(c.server.shares.waiting[cause]); got != want {
		c.t.Errorf("%v requests wait for %s, want %v", got, cause, want)
	}
}

// unreadable is a body that must not be read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body of a refused request was read before it was refused")
	return 0, io.EOF
}

const callsPath = "/v1/sessions/" + knownSession + "/calls"

// send sends a request and waits for its reply.
func (c *crowd) send(ctx context.Context, who, method, path string, body io.Reader,
	header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, body)
	r.Header.Set("Authorization", "Bearer "+who)
	r.Header.Set("Content-Type", "application/json")
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w
}

// call makes a call in a goroutine, and returns a channel for its reply.
func (c *crowd) call(ctx context.Context, who, method string, header ...string) <-chan *httptest.ResponseRecorder {
	got := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		got <- c.send(ctx, who, "POST", callsPath, strings.NewReader(`{"method":"`+method+`"}`), header...)
	}()
	synctest.Wait()
	return got
}

func (c *crowd) wantBegun(what string, methods ...string) {
	c.t.Helper()
	synctest.Wait()
	if got := c.calls.order(); !slices.Equal(got, methods) {
		c.t.Errorf("%s: %v have begun, want %v", what, got, methods)
	}
}

// Beyond its rate a principal gets 429 with a Retry-After, before its body is read. All operations with a token count.
// Others, and principals without a rate, are not affected. A changed rate applies from the next request on.
func TestRate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	c := newCrowd(t, func(o *Options) { o.Now = func() time.Time { return now } })
	c.people.set(access.Principal{Name: "slow", Rate: 2})
	c.people.set(access.Principal{Name: "other", Rate: 2})
	c.people.set(access.Principal{Name: "free"})
	get := func(who string) *httptest.ResponseRecorder {
		return c.send(t.Context(), who, "GET", "/v1/policy", http.NoBody)
	}
	want := func(what string, w *httptest.ResponseRecorder, status int, policy, limit, retry string) {
		t.Helper()
		h := w.Header()
		if w.Code != status || h.Get("RateLimit-Policy") != policy || h.Get("RateLimit") != limit ||
			h.Get("Retry-After") != retry {
			t.Errorf("%s: %d, %q, %q, Retry-After %q; want %d, %q, %q, %q", what, w.Code, h.Get("RateLimit-Policy"),
				h.Get("RateLimit"), h.Get("Retry-After"), status, policy, limit, retry)
		}
	}
	const policy = `"requests";q=2;w=1`
	want("the first", get("slow"), 200, policy, `"requests";r=1;t=1`, "")
	want("the second", get("slow"), 200, policy, `"requests";r=0;t=1`, "")
	refused := c.send(t.Context(), "slow", "POST", callsPath, unreadable{t}, "Expect: 100-continue")
	want("the third, a call", refused, 429, policy, `"requests";r=0;t=1`, "1")
	if !strings.Contains(refused.Body.String(), `"code":"rate_limited"`) {
		t.Errorf("got %s", refused.Body)
	}
	want("another one's", get("other"), 200, policy, `"requests";r=1;t=1`, "")
	for range 10 {
		want("without a rate", get("free"), 200, "", "", "")
	}
	now = now.Add(500 * time.Millisecond)
	want("half a second later", get("slow"), 200, policy, `"requests";r=0;t=1`, "")
	want("and one more", get("slow"), 429, policy, `"requests";r=0;t=1`, "1")
	c.people.set(access.Principal{Name: "slow", Rate: 0.1})
	want("with a lower rate", get("slow"), 429, `"requests";q=1;w=10`, `"requests";r=0;t=10`, "10")
	c.people.set(access.Principal{Name: "slow"})
	want("without any", get("slow"), 200, "", "", "")
	want("the health", c.send(t.Context(), "other", "GET", "/healthz", http.NoBody), 200, "", "", "")
}

// Beyond its concurrency a principal's calls wait, in order. Asynchronous calls count until their end, reads do not
// count, and others do not wait. A client that leaves gives its place up. A changed concurrency applies to waiting
// calls, too.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, nil)
		c.people.set(access.Principal{Name: "two", Concurrency: 2})
		c.people.set(access.Principal{Name: "one", Concurrency: 1})
		c.people.set(access.Principal{Name: "free"})
		var replies []<-chan *httptest.ResponseRecorder
		first := c.call(t.Context(), "two", "a1", "Prefer: respond-async")
		if w := <-first; w.Code != http.StatusAccepted {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		for i := 2; i <= 6; i++ {
			replies = append(replies, c.call(t.Context(), "two", fmt.Sprintf("a%d", i)))
		}
		c.wantBegun("two of six", "a1", "a2")
		c.wantWaiting(causeConcurrency, 4)
		if w := c.send(t.Context(), "two", "GET", "/v1/policy", http.NoBody); w.Code != 200 {
			t.Errorf("a read while calls wait: %d", w.Code)
		}
		replies = append(replies, c.call(t.Context(), "free", "f1"), c.call(t.Context(), "one", "o1"))
		c.wantBegun("others", "a1", "a2", "f1", "o1")
		gone, cancel := context.WithCancelCause(t.Context())
		left := c.call(gone, "two", "gone")
		cancel(errors.New("gone"))
		<-left
		c.calls.end("a1")
		c.wantBegun("the asynchronous one has ended", "a1", "a2", "f1", "o1", "a3")
		c.calls.end("a3")
		c.wantBegun("another one has", "a1", "a2", "f1", "o1", "a3", "a4")
		c.people.set(access.Principal{Name: "two", Concurrency: 4})
		replies = append(replies, c.call(t.Context(), "two", "a7"))
		begun := c.calls.order()
		if len(begun) != 8 || !slices.Contains(begun, "a5") || !slices.Contains(begun, "a6") {
			t.Errorf("with four at once: %v", begun)
		}
		for _, method := range []string{"a2", "a4", "a5", "a6", "f1", "o1"} {
			c.calls.end(method)
			synctest.Wait()
		}
		c.calls.end("a7")
		for _, r := range replies {
			if w := <-r; w.Code != http.StatusOK {
				t.Errorf("a call that waited: %d %s", w.Code, w.Body)
			}
		}
		synctest.Wait()
		c.wantWaiting(causeConcurrency, 0)
		if n, _ := c.server.shares.calls.Used(); n != 0 {
			t.Errorf("%d calls are still counted", n)
		}
	})
}

// However many calls of one owner run or wait: further ones are refused before their bodies are read, and another
// owner's calls begin at once.
func TestQueueOfOneOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, func(o *Options) { o.MaxCalls = 100 })
		c.people.set(access.Principal{Name: "flood", Concurrency: 3})
		c.people.set(access.Principal{Name: "other"})
		var all sync.WaitGroup
		var mu sync.Mutex
		status, after := map[int]int{}, map[string]int{}
		flood, stop := context.WithCancel(t.Context())
		for i := range 10_000 {
			all.Go(func() {
				w := c.send(flood, "flood", "POST", callsPath, strings.NewReader(fmt.Sprintf(`{"method":"f%d"}`, i)))
				mu.Lock()
				status[w.Code]++
				after[w.Header().Get("Retry-After")]++
				mu.Unlock()
			})
		}
		synctest.Wait()
		if begun := len(c.calls.order()); begun != 3 || status[429] != 9900 || len(status) != 1 {
			t.Errorf("%d have begun, the others got %v", begun, status)
		}
		for _, seconds := range []string{"1", "2", "3", "4"} { // a quarter of 9,900 each
			if n := after[seconds]; n < 1000 || len(after) != 4 {
				t.Errorf("the refused come again after these seconds: %v", after)
			}
		}
		w := c.send(t.Context(), "flood", "POST", callsPath, unreadable{t}, "Expect: 100-continue")
		if w.Code != 429 || w.Header().Get("Retry-After") == "" ||
			!strings.Contains(w.Body.String(), `"code":"queue_full"`) {
			t.Errorf("one more: %d %s", w.Code, w.Body)
		}
		got := c.call(t.Context(), "other", "mine")
		if begun := c.calls.order(); len(begun) != 4 || begun[3] != "mine" {
			t.Errorf("another one's call has not begun: %v", begun)
		}
		c.calls.end("mine")
		if w := <-got; w.Code != 200 {
			t.Errorf("another one's call: %d %s", w.Code, w.Body)
		}
		stop()
		all.Wait()
		if n, waiting := c.server.shares.calls.Used(); n != 0 || waiting != 0 {
			t.Errorf("%d calls are still counted", n)
		}
	})
}

// A call that goes on without its client keeps its place among the calls until its end.
func TestLeftCallsKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, func(o *Options) { o.MaxCalls = 2 })
		c.calls.stays = true
		c.people.set(access.Principal{Name: "ann"})
		ctx, hangUp := context.WithCancel(t.Context())
		first, second := c.call(ctx, "ann", "a"), c.call(ctx, "ann", "b")
		hangUp()
		synctest.Wait()
		refused := <-c.call(t.Context(), "ann", "c")
		if refused.Code != 429 || !strings.Contains(refused.Body.String(), `"code":"queue_full"`) {
			t.Errorf("one too many: %d %s", refused.Code, refused.Body)
		}
		c.calls.end("a")
		<-first
		third := c.call(t.Context(), "ann", "d")
		c.wantBegun("after the end of one that was left", "a", "b", "d")
		c.calls.end("b")
		c.calls.end("d")
		<-second
		<-third
		if n, _ := c.server.shares.calls.Used(); n != 0 {
			t.Errorf("%d calls still count", n)
		}
	})
}

// Streams are limited per owner. A subscription over MCP counts as a stream, not as a call.
func TestStreamsOfOneOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, func(o *Options) {
			o.MaxStreams = 3
			o.Namespaces.(*one).mcp = http.HandlerFunc(func(_ http.ResponseWriter,
				r *http.Request) {
				<-r.Context().Done()
			})
		})
		c.people.set(access.Principal{Name: "flood", Concurrency: 1})
		c.people.set(access.Principal{Name: "other"})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		open := func(who string) {
			all.Go(func() { c.send(ctx, who, "GET", "/v1/events", http.NoBody) })
			synctest.Wait()
		}
		open("flood")
		open("flood")
		const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`
		all.Go(func() { c.send(ctx, "flood", "POST", "/mcp", strings.NewReader(listen)) })
		synctest.Wait()
		for _, refused := range []*httptest.ResponseRecorder{c.send(ctx, "flood", "GET", "/v1/events", http.NoBody),
			c.send(ctx, "flood", "POST", "/mcp", strings.NewReader(listen))} {
			if refused.Code != 429 || !strings.Contains(refused.Body.String(), `"code":"streams_full"`) {
				t.Errorf("one too many: %d %s", refused.Code, refused.Body)
			}
		}
		open("other")
		if n, _ := c.server.shares.streams.Used(); n != 4 {
			t.Errorf("%d streams are open, want 4", n)
		}
		got := c.call(t.Context(), "flood", "a") // the subscription is not a call
		c.wantBegun("a call beside a subscription", "a")
		c.calls.end("a")
		<-got
		stop()
		all.Wait()
		if n, _ := c.server.shares.streams.Used(); n != 0 {
			t.Errorf("%d streams are still counted", n)
		}
	})
}

// An owner whose clients do not read, or whose bodies fill its share, does not block the replies of others.
func TestSharesOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newReplies(64<<20, replyTurn)
		flood, other := agent.Owner{Namespace: "default", Name: "flood"},
			agent.Owner{Namespace: "default", Name: "other"}
		var taken, refused int
		var mu sync.Mutex
		for range 10_000 {
			go func() {
				_, ok := q.enter(flood, 4<<20)
				mu.Lock()
				defer mu.Unlock()
				if ok {
					taken++
				} else {
					refused++
				}
			}()
		}
		synctest.Wait()
		if taken != 16 || refused != 10_000-16-16 {
			t.Errorf("%d are written, %d refused", taken, refused)
		}
		done, ok := q.enter(other, 4<<20)
		if !ok {
			t.Fatal("another owner's reply is not written")
		}
		done()
		time.Sleep(replyTurn)
		synctest.Wait()
		if refused != 10_000-16 {
			t.Errorf("%d are refused in the end", refused)
		}
		if _, ok = q.enter(other, 1<<30); ok {
			t.Error("a reply of everything is written beside sixteen others")
		}
		if done, ok = newReplies(64<<20, replyTurn).enter(other, 1<<30); !ok {
			t.Error("a reply of everything is not written alone")
		}
		done()
	})
}

package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Forty forges at once, where the cap has room for three, are three requests to the model.
func TestConcurrentForgesKeepTheCap(t *testing.T) {
	t.Parallel()
	const calls, room = 40, 3
	m := rig.NewModel(t, rig.Script{".": {rig.Held(rig.ProgGiven)}}) // "." is every method of every role
	d, resets := start(t, m)
	needed := most(d)
	limitOf := room*needed + needed/2
	capped(d, limitOf)

	type result struct {
		reply rig.Reply
		err   error
	}
	results := make(chan result, calls)
	for i := range calls {
		session := d.Session("worker") // calls of one session would follow each other
		go func() {
			var got result
			var r rig.Response
			body := fmt.Sprintf(`{"method":"m%02d","args":["x"]}`, i)
			if r, got.err = d.Try(context.Background(), http.MethodPost, "/v1/sessions/"+session+"/calls", []byte(body),
				nil); got.err == nil {
				got.err = json.Unmarshal(r.Body, &got.reply)
			}
			results <- got
		}()
	}
	next := func() rig.Reply {
		got := <-results
		if got.err != nil {
			t.Fatal(got.err)
		}
		return got.reply
	}
	// The model answers only when all others have ended: they are refused for what the three reserve.
	for range calls - room {
		wantOver(d, next(), limitOf, 0, resets)
	}
	arrived := make(chan struct{})
	go func() { m.Arrived(room); close(arrived) }()
	select {
	case <-arrived:
	case got := <-results:
		t.Fatalf("fewer than %d asked the model: %+v, %v", room, got.reply.Outcome, got.err)
	}
	if reserved := usage(d, "").Limits[0].Reserved; reserved < room*16384 || reserved > limitOf {
		t.Errorf("%d tokens are reserved by %d requests", reserved, room)
	}
	m.Release()
	for range room {
		d.WantValue(next(), "x", "generated")
	}
	if n := len(m.Questions()); n != room {
		t.Errorf("the model was asked %d times, want %d", n, room)
	}
	wantLimit(d, limit{Scope: "namespace", Window: "day", Limit: limitOf, Used: room * perForge, ResetsAt: resets})
	d.WantValue(d.Call(d.Session("worker"), "mxx", "x"), "x", "generated") // what was reserved is free again
}

// Over the cap nothing asks the model, stored programs go on, and everybody is warned.
func TestOverTheCap(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"worker.known": {rig.ProgGiven}})
	d, resets := start(t, m)
	s := d.Session("worker")
	call := func(method string) (rig.Reply, string) {
		r := d.Do(http.StatusOK, http.MethodPost, "/v1/sessions/"+s+"/calls",
			map[string]any{"method": method, "args": []any{"x"}})
		var got rig.Reply
		r.Into(t, &got)
		return got, r.Header.Get("Recurgent-Spend")
	}
	const series = `recurgent_spend_used_ratio{window="day"}`
	got, warned := call("known")
	d.WantValue(got, "x", "generated")
	if ratio := d.Highest(series); warned != "" || ratio != 0 {
		t.Errorf("without a cap: warned of %q, ratio %v", warned, ratio)
	}
	for _, c := range []struct {
		cap    int
		header string
	}{{20, ""}, {18, "0.83"}, {15, "1.00"}, {10, "1.50"}} {
		capped(d, c.cap)
		got, warned = call("known")
		d.WantValue(got, "x", "persisted")
		if want := float64(perForge) / float64(c.cap); warned != c.header || d.Highest(series) != want {
			t.Errorf("cap %d: warned of %q, want %q; ratio %v, want %v", c.cap, warned, c.header, d.Highest(series),
				want)
		}
		got, warned = call("unknown")
		wantOver(d, got, c.cap, perForge, resets)
		if warned != c.header {
			t.Errorf("cap %d: a refused call warned of %q, want %q", c.cap, warned, c.header)
		}
	}
	p := d.Send(http.MethodPost, "/v1/predict",
		[]byte(`{"signature":{"inputs":[{"name":"q"}],"outputs":[{"name":"a"}]},"inputs":{"q":"x"}}`), nil)
	rig.CheckProblem(t, "a prediction", p)
	if o := p.Object(t); p.Status != http.StatusTooManyRequests || o["code"] != "budget_exceeded" ||
		o["limit"] != 10.0 || o["used"] != float64(perForge) || o["resets_at"] != resets ||
		p.Header.Get("Retry-After") == "" {
		t.Errorf("a prediction: %d, %s", p.Status, p.Body)
	}
	if n := d.Metric(`recurgent_spend_refused_total{window="day"}`); n != 5 {
		t.Errorf("%v requests were refused, want 5", n)
	}
	if n := len(m.Questions()); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
	if !strings.Contains(d.Output.String(), "a cap of tokens is nearly used") {
		t.Error("the log says nothing of the cap")
	}
}

// A daemon that is killed forgets nothing: a request that was under way counts with all that it reserved.
func TestKilledDaemonForgetsNothing(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"worker.known": {rig.ProgGiven}, "worker.slow": {rig.Held(rig.ProgGiven)}})
	d, resets := start(t, m)
	s, slow := d.Session("worker"), d.Session("worker")
	d.WantValue(d.Call(s, "known", "x"), "x", "generated")
	capped(d, 1_000_000)
	ended := make(chan error, 1)
	go func() {
		_, err := d.Try(context.Background(), http.MethodPost, "/v1/sessions/"+slow+"/calls",
			[]byte(`{"method":"slow","args":["x"]}`), nil)
		ended <- err
	}()
	m.Arrived(2)
	reserved := usage(d, "").Limits[0].Reserved
	if reserved < 16384 {
		t.Errorf("%d tokens are reserved", reserved)
	}
	d.Stop(syscall.SIGKILL)
	if err := <-ended; err == nil {
		t.Error("the call whose daemon was killed has a reply")
	}
	d.Start()
	wantLimit(d, limit{Scope: "namespace", Window: "day", Limit: 1_000_000, Used: perForge + reserved,
		ResetsAt: resets})
	estimated := 0
	for _, r := range usage(d, "?by=method").Data {
		estimated += r.EstimatedTokens
		if r.Key == "worker.known" && r.PromptTokens+r.Completion != perForge {
			t.Errorf("after the restart %+v", r)
		}
	}
	if estimated != reserved {
		t.Errorf("%d tokens are estimated, want the %d that were reserved", estimated, reserved)
	}
	capped(d, reserved)
	wantOver(d, d.Call(s, "other", "x"), reserved, perForge+reserved, resets)
	d.WantValue(d.Call(s, "known", "x"), "x", "persisted")
	if n := len(m.Questions()); n != 2 {
		t.Errorf("the model was asked %d times, want twice", n)
	}
}

// The daemon's cap bounds all namespaces together, and shows none of them what others used. What one used counts when
// it is erased, after a restart, too.
func TestCapOfTheDaemon(t *testing.T) {
	t.Parallel()
	const all = 40_000 // room for one request, which reserves 16384 and its length
	m := rig.NewModel(t, rig.Script{"worker.slow": {rig.Held(rig.ProgGiven)}})
	d, resets := start(t, m, "--spend-day-tokens", fmt.Sprint(all))
	d.Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/acme", nil)
	acme := d.In("acme")
	theirs := acme.Session("worker")
	ended := make(chan error, 1)
	go func() {
		_, err := acme.Try(context.Background(), http.MethodPost, "/v1/sessions/"+theirs+"/calls",
			[]byte(`{"method":"slow","args":["x"]}`), nil)
		ended <- err
	}()
	m.Arrived(1)
	got := d.Call(d.Session("worker"), "other", "x")
	wantOver(d, got, all, all, resets)
	if got.Outcome.Metadata["scope"] != "daemon" {
		t.Errorf("refused for %v", got.Outcome.Metadata)
	}
	m.Release()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	wantLimit(d, limit{Scope: "daemon", Window: "day", Limit: all, Used: perForge, ResetsAt: resets})
	if ratio := d.Highest(`recurgent_spend_used_ratio{window="daemon_day"}`); ratio != float64(perForge)/all {
		t.Errorf("ratio %v", ratio)
	}
	if n := len(m.Questions()); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/namespaces/acme", nil)
	for range 2 {
		wantLimit(d, limit{Scope: "daemon", Window: "day", Limit: all, Used: perForge, ResetsAt: resets})
		d.Restart()
	}
}

package daemon

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// connect makes a connection to the upstream that grants the methods.
func connectShop(d *rig.Daemon, u *upstream, methods ...string) {
	d.T.Helper()
	d.Do(http.StatusCreated, http.MethodPut, "/v1/connections/shop",
		object{"description": "orders", "hosts": []string{u.host()}, "methods": methods, "roles": []string{"shop"},
			"auth": object{"type": "bearer", "secret": "a-key-of-the-shop"}, "idempotency_header": "Idempotency-Key"})
}

// panics makes a program end in a panic where it would return.
func panics(program string) string {
	return strings.Replace(program, "return body, nil",
		"if len(body) >= 0 {\n\t\tpanic(\"boom\")\n\t}\n\treturn body, nil", 1)
}

// Nothing is written without a connection; with one the request carries the credential and a key of its own.
func TestAWriteNeedsAConnection(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	m := rig.NewModel(t, rig.Script{"shop.order": {fetches("POST " + u.URL + "/orders 7")},
		"shop.cancel": {fetches("DELETE " + u.URL + "/orders/7")},
		"bank.pay":    {fetches("POST " + u.URL + "/orders 7")}})
	d := rig.Start(t, m, "--fetch-allow", u.host())
	s, bank := d.Session("shop"), d.Session("bank")
	for range 3 {
		deniedFor(d, d.Call(s, "order"), "PUT /v1/connections/{name}",
			"recurgentd connections set NAME --host "+u.host()+" --method POST")
	}
	if n := m.Count("shop", "order"); n != 1 || len(u.requests()) > 0 {
		t.Errorf("%d requests to the model, %q to the host", n, u.requests())
	}
	connectShop(d, u, "POST")
	d.WantValue(d.Call(s, "order"), "answer 1", "persisted")
	d.WantValue(d.Call(s, "order"), "answer 2", "persisted")
	deniedFor(d, d.Call(s, "cancel"), "PUT /v1/connections/{name}", "grants DELETE there to the role shop")
	deniedFor(d, d.Call(bank, "pay"), "PUT /v1/connections/{name}", "grants POST there to the role bank")
	if !slices.Equal(u.requests(), []string{"POST /orders 7", "POST /orders 7"}) ||
		u.auth[0] != "Bearer a-key-of-the-shop" || u.keys[0] == "" || u.keys[0] == u.keys[1] {
		t.Errorf("the host got %q, %q, %q", u.requests(), u.auth, u.keys)
	}
	if e := effectsOf(d, "shop", "order"); !rig.Equal([]any{"POST"}, e["methods"]) ||
		!rig.Equal([]any{u.host()}, e["hosts"]) {
		t.Errorf("the manifest: %v", e)
	}
	if sent, denied := d.Metric(`recurgent_writes_total{result="sent"}`),
		d.Metric(`recurgent_writes_total{result="denied"}`); sent != 2 || denied != 5 {
		t.Errorf("%v sent, %v denied", sent, denied)
	}
}

// A program that fails after a write, and is repaired and run again, has the write's answer and sends it no second
// time: in the call itself, below it, and where the answer was lost. Two equal writes of one run are two.
func TestAWriteIsSentOnceWithinACall(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	order, twice, lost := fetches("POST "+u.URL+"/orders 7"), fetches("POST "+u.URL+"/orders 7",
		"POST "+u.URL+"/orders 7"), fetches("POST "+u.URL+"/hangup 7")
	nests := rig.Program("\tout := call.Tool(\"shop\").Call(\"order\")\n\tbody := out.Value\n\tif !out.OK() {\n\t\treturn nil, recurgent.Fail(out.ErrorType, out.ErrorMessage)\n\t}\n\treturn body, nil")
	nestsAndPanics := strings.Replace(nests, "return body, nil",
		"if body != nil {\n\t\tpanic(\"boom\")\n\t}\n\treturn body, nil", 1)
	passesOn := strings.Replace(nests, `"order"`, `"lost"`, 1)
	panicsWithout := strings.Replace(passesOn, "return nil, recurgent.Fail(out.ErrorType, out.ErrorMessage)",
		"panic(out.ErrorType)", 1)
	m := rig.NewModel(t, rig.Script{"shop.again": {panics(order), order}, "shop.twice": {panics(twice), twice},
		"shop.order": {order}, "shop.below": {nestsAndPanics, nests}, "shop.lost": {lost},
		"shop.above": {panicsWithout, passesOn}, "shop.more": {panics(order), twice}})
	d := rig.Start(t, m, "--fetch-allow", u.host())
	connectShop(d, u, "POST")
	s := d.Session("shop")
	for _, c := range []struct {
		method, value string
		sent          int
	}{{"again", "answer 1", 1}, {"twice", "answer 3", 2}, {"below", "answer 4", 1}, {"more", "answer 6", 2}} {
		before := len(u.requests())
		got := d.Call(s, c.method)
		d.WantValue(got, c.value, "generated")
		if sent := len(u.requests()) - before; sent != c.sent {
			t.Errorf("%s: %d requests, want %d", c.method, sent, c.sent)
		}
	}
	if u.keys[1] == u.keys[2] {
		t.Errorf("two equal writes of one run have one key: %q", u.keys)
	}
	got := d.Call(s, "above")
	d.WantError(got, "unknown_outcome")
	if !strings.Contains(got.Outcome.ErrorMessage, "not sent again") {
		t.Errorf("got %+v", got.Outcome)
	}
	if n := strings.Count(strings.Join(u.requests(), " "), "/hangup"); n != 1 {
		t.Errorf("a write whose answer was lost was sent %d times", n)
	}
	if repeated, unknown := d.Metric(`recurgent_writes_total{result="repeated"}`),
		d.Metric(`recurgent_writes_total{result="unknown"}`); repeated < 5 || unknown < 1 {
		t.Errorf("%v repeated, %v unknown", repeated, unknown)
	}
}

// Replays, tries, examples and proofs write nothing.
func TestDryRunsWriteNothing(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	order := fetches("POST " + u.URL + "/orders 7")
	m := rig.NewModel(t, rig.Script{"shop.order": {order, order + "\n// anew\n"}})
	d := rig.Start(t, m, "--fetch-allow", u.host())
	connectShop(d, u, "POST")
	s := d.Session("shop")
	first := d.Call(s, "order")
	d.WantValue(first, "answer 1", "generated")
	path := rig.MethodPath("shop", "order")
	if r := d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+first.CallID+"/replay",
		nil).Object(t); r["identical"] == false {
		t.Errorf("the replay: %v", r)
	}
	tried := d.Do(http.StatusOK, http.MethodPost, path+"/try", object{"args": []any{}, "fetch": "live"}).Object(t)
	if o, _ := tried["outcome"].(object); o["error_type"] != "denied" ||
		!strings.Contains(string(rig.MustJSON(o)), "proof, try and replay") {
		t.Errorf("the try: %v", tried)
	}
	d.Do(http.StatusOK, http.MethodPut, path+"/examples",
		object{"examples": []object{{"args": []any{}, "expect": object{"value": "answer 1"}}}})
	if r := d.Do(http.StatusOK, http.MethodPost, path+"/examples/run", nil).Object(t); r["skipped"] != 1.0 {
		t.Errorf("the examples: %v", r)
	}
	if got := u.requests(); len(got) != 1 {
		t.Errorf("dry runs wrote: %q", got)
	}
	d.Do(http.StatusOK, http.MethodPost, path+"/regenerate", object{"reason": "anew"})
	d.WantValue(d.Call(s, "order"), "answer 2", "generated") // it was proved before, on what the first one recorded
	if got := u.requests(); len(got) != 2 {
		t.Errorf("the proof of a successor wrote: %q", got)
	}
}

// A call that ends while its write is under way sends it no second time. A client that repeats a call under its
// Idempotency-Key after the daemon has died means the same write, which the host recognizes by its key. Another call is
// another write.
func TestWritesOverCancellationAndCrash(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	m := rig.NewModel(t, rig.Script{"shop.hold": {fetches("POST " + u.URL + "/hold 7")},
		"shop.order": {fetches("POST url 7")}})
	d := rig.Start(t, m, "--fetch-allow", u.host())
	connectShop(d, u, "POST")
	s := d.Session("shop")
	ended := make(chan []byte, 1)
	go func() {
		r, _ := d.Try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method": "hold"}`), nil)
		ended <- r.Body
	}()
	rig.Until(t, "the write is under way", func() bool { return len(u.requests()) == 1 })
	running := d.List("/v1/calls?status=running")
	if len(running) != 1 {
		t.Fatalf("running: %v", running)
	}
	d.Do(http.StatusNoContent, http.MethodPost, "/v1/calls/"+running[0]["call_id"].(string)+"/cancel", nil)
	if body := string(<-ended); !strings.Contains(body, `"error_type":"canceled"`) || len(u.requests()) != 1 {
		t.Fatalf("a call that was canceled sent %q: %s", u.requests(), body)
	}

	d.WantValue(d.Call(s, "order", u.URL+"/orders"), "answer 2", "generated")
	body := rig.Encode(t, object{"method": "order", "args": []any{u.URL + "/hold"}})
	keyed := map[string]string{"Idempotency-Key": "order-7"}
	lost := make(chan error, 1)
	go func() {
		_, err := d.Try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls", body, keyed)
		lost <- err
	}()
	rig.Until(t, "the write is under way", func() bool { return len(u.requests()) == 3 })
	d.Stop(syscall.SIGKILL)
	if err := <-lost; err == nil {
		t.Fatal("a daemon that was killed has answered")
	}
	u.release()
	d.Start()
	again := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", body, keyed)
	var reply rig.Reply
	again.Into(t, &reply)
	d.WantValue(reply, "answer 4", "persisted")
	other := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", body, map[string]string{"Idempotency-Key": "order-8"})
	if other.Status != http.StatusOK {
		t.Fatalf("another call: %s", other.Body)
	}
	if k := u.keys; len(k) != 5 || k[3] != k[2] || k[4] == k[2] || k[2] == "" {
		t.Errorf("keys %q", k)
	}
	replayed := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", body, keyed)
	if string(replayed.Body) != string(again.Body) || len(u.requests()) != 5 {
		t.Errorf("a call that was answered was made again: %s", replayed.Body)
	}
}

package tools

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A fault of a host is never an authored error, even where the program passes it on: it has a type and a plain
// text, counts as the source's failure, and asks no model. Afterwards the program serves as before.
func TestFaultsOfHostsAreNobodysFault(t *testing.T) {
	t.Parallel()
	source := rig.NewSource(t, "small")
	m := rig.NewModel(t, rig.Script{"page.size": {rig.Program("\tr, err := call.FetchWith(recurgent.Request{URL: \"" +
		source.URL + "\", Retry: 2})\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tif r.Status >= 400 {\n\t\treturn nil, recurgent.Fail(\"fetch_failed\", r.Body)\n\t}\n\treturn len(r.Body), nil")}})
	d := rig.Start(t, m, "--fetch-allow", "public,"+source.Host(), "--fetch-max", "1MiB")
	s := d.Session("page")
	d.WantValue(d.Call(s, "size"), 5.0, "generated")
	header := func(name, value string, then func(http.ResponseWriter)) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set(name, value)
			then(w)
		}
	}
	write := func(body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { fmt.Fprint(w, body) }
	}
	status := func(code int) func(http.ResponseWriter) { return func(w http.ResponseWriter) { w.WriteHeader(code) } }
	var bomb strings.Builder
	z := gzip.NewWriter(&bomb)
	fmt.Fprint(z, strings.Repeat("x", 1<<20+1))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, errorType, says string
		answer                func(http.ResponseWriter)
	}{
		{"too large", "resource_exhausted", "1048576 bytes", write(strings.Repeat("x", 1<<20+1))},
		{"a bomb", "resource_exhausted", "1048576 bytes", header("Content-Encoding", "gzip", write(bomb.String()))},
		{"cut", "fetch_failed", "cut off", header("Content-Length", "99", write("short"))},
		{"not gzip", "fetch_failed", "cannot be unpacked", header("Content-Encoding", "gzip",
			write("this is no gzip at all"))},
		{"unknown characters", "fetch_failed", "klingon", header("Content-Type", "text/plain; charset=klingon",
			write("\xff"))},
		{"a circle", "fetch_failed", "redirects", header("Location", source.URL, status(http.StatusFound))},
		{"a redirect to a private host", "denied", "the host redirects",
			header("Location", "https://127.0.0.1:1/", status(http.StatusFound))},
		{"429 without end", "fetch_failed", "", header("Retry-After", "0", status(http.StatusTooManyRequests))},
	} {
		source.Answer(c.answer)
		got := d.Call(s, "size")
		d.WantError(got, c.errorType)
		if line := d.LogOf(got); line["failure_class"] != "extrinsic" ||
			!strings.Contains(got.Outcome.ErrorMessage, c.says) {
			t.Errorf("%s: the outcome is %+v of class %v", c.name, got.Outcome, line["failure_class"])
		}
		if c.errorType == "resource_exhausted" && got.Outcome.Authored {
			t.Errorf("%s: a limit of the daemon counts as the program's own error", c.name)
		}
	}
	before := source.Requests()
	source.Answer(func(w http.ResponseWriter) {
		if source.Requests() == before+1 {
			header("Retry-After", "0", status(http.StatusServiceUnavailable))(w)
			return
		}
		fmt.Fprint(w, "small")
	})
	d.WantValue(d.Call(s, "size"), 5.0, "persisted")
	if n := m.Count("page", "size"); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
	for result, want := range map[string]float64{"redirect_denied": 1, "encoding": 2, "too_large": 2, "live": 3} {
		if got := d.Metric(`recurgent_fetches_total{result="` + result + `"}`); got != want {
			t.Errorf("%v fetches ended %s, want %v", got, result, want)
		}
	}
}

// A call whose time ended in the queue of its session says that it never started.
func TestQueuedCallNeverStarted(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"f.slow": {rig.Held(rig.ProgGiven)}, "f.fast": {rig.ProgGiven}})
	d := rig.Start(t, m)
	s := d.Session("f")
	slow := make(chan rig.Reply, 1)
	go func() {
		slow <- d.Invoke(s, map[string]any{"method": "slow", "args": []any{1}, "timeout_ms": 600_000})
	}()
	m.Arrived(1)
	got := d.Invoke(s, map[string]any{"method": "fast", "args": []any{1}, "timeout_ms": 100})
	d.WantError(got, "timeout")
	if got.Outcome.Metadata["started"] != false || !got.Outcome.Retriable || got.Program.Source != "none" ||
		!strings.Contains(got.Outcome.ErrorMessage, "never started") ||
		!strings.Contains(got.Outcome.ErrorMessage, "run in order") {
		t.Errorf("the outcome is %+v", got.Outcome)
	}
	if n := len(m.Requests()); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
	// One that a person cancels while it waits is not to be sent again.
	r := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method": "fast", "args": [1]}`),
		map[string]string{"Prefer": "respond-async"})
	id, _ := r.Object(t)["call_id"].(string)
	d.Do(http.StatusNoContent, http.MethodPost, "/v1/calls/"+id+"/cancel", nil)
	m.Release()
	d.WantValue(<-slow, 1.0, "generated")
	rig.Until(t, "the canceled call's end",
		func() bool { return d.Get("/v1/calls/" + id)["outcome_status"] != "running" })
	if line := d.Get("/v1/calls/" + id); line["outcome_error_type"] != "canceled" ||
		line["outcome_retriable"] != false {
		t.Errorf("the canceled call ended in %v, retriable %v", line["outcome_error_type"], line["outcome_retriable"])
	}
}

// A request that was sent to the model and not answered counts: in the reply of a call, in the log, in the metrics.
func TestUnansweredModelRequestsCount(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"f.slow": {openaitest.Reply{Hang: true}}})
	m.Answer("", "", openaitest.Reply{Hang: true})
	d := rig.Start(t, m)
	s := d.Session("f")
	slow := make(chan rig.Reply, 1)
	go func() { slow <- d.Call(s, "slow", 1) }()
	m.Arrived(1)
	running := d.List("/v1/calls?status=running")
	if len(running) != 1 || running[0]["stage"] != "call.forging" {
		t.Fatalf("while the model is asked: %v", running)
	}
	d.Do(http.StatusNoContent, http.MethodPost, "/v1/calls/"+running[0]["call_id"].(string)+"/cancel", nil)
	got := <-slow
	d.WantError(got, "canceled")
	if line := d.LogOf(got); line["stage"] != nil || got.Usage.ModelRequests != 1 ||
		line["usage"].(map[string]any)["model_requests"] != 1.0 {
		t.Errorf("the usage is %+v, in the log %v", got.Usage, line["usage"])
	}
	rig.Until(t, "the request in the metrics", func() bool { return d.Metric("recurgent_model_requests_total") == 1 })

	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		body := map[string]any{"signature": map[string]any{"inputs": []any{map[string]any{"name": "q"}},
			"outputs": []any{map[string]any{"name": "a"}}}, "inputs": map[string]any{"q": 1}}
		_, _ = d.Try(ctx, http.MethodPost, "/v1/predict", rig.MustJSON(body), nil) // is cut off
	}()
	m.Arrived(2)
	hangUp()
	<-gone
	var lines []map[string]any
	rig.Until(t, "the prediction in the log",
		func() bool { lines = d.List("/v1/calls?method=predict"); return len(lines) == 1 })
	if lines[0]["usage"].(map[string]any)["model_requests"] != 1.0 || lines[0]["outcome_error_type"] != "canceled" {
		t.Errorf("a prediction whose client went away: %v", lines[0])
	}
}

// A program that ends in the failure of another one's program, model or source is not to blame: it is kept, and serves
// once the other does. What the other's program authored may be about what it was passed, and shows nothing.
func TestParentIsKeptWhenAChildFails(t *testing.T) {
	t.Parallel()
	parent := func(child string) string {
		return rig.Program("\tout := call.Tool(\"helper\").Call(\"" + child +
			"\", call.Arg(0, \"x\"))\n\tif !out.OK() {\n\t\treturn nil, recurgent.Fail(out.ErrorType, out.ErrorMessage)\n\t}\n\treturn out.Value, nil")
	}
	given := rig.Program("\treturn call.Arg(0, \"x\"), nil")
	panics := rig.Program("\tvar list []int\n\treturn list[1], nil")
	m := rig.NewModel(t, rig.Script{
		"f.outage": {parent("down")}, "helper.down": {rig.Status(http.StatusUnauthorized), given},
		"f.bug": {parent("buggy")}, "helper.buggy": {panics, panics, given},
		"f.honest":       {parent("refuses")},
		"helper.refuses": {rig.Program("\treturn nil, recurgent.Fail(\"not_today\", \"no\")")},
	})
	d := rig.Start(t, m)
	d.Policy(map[string]any{"backoff": map[string]any{"base_seconds": 0}, "execution_repair_budget": 1})
	s := d.Session("f")
	for _, c := range []struct {
		method, errorType, class, then string
		asked                          int
	}{
		{"outage", "provider", "extrinsic", "persisted", 1},
		{"bug", "execution", "authored", "persisted", 1},
		{"honest", "not_today", "authored", "generated", 2},
	} {
		first := d.Call(s, c.method, 7)
		d.WantError(first, c.errorType)
		if got := d.LogOf(first)["failure_class"]; got != c.class {
			t.Errorf("%s: class %v, want %s", c.method, got, c.class)
		}
		second := d.Call(s, c.method, 7)
		if second.Program.Source != c.then || c.then == "persisted" && second.Outcome.Value != 7.0 {
			t.Errorf("%s: the second call ended in %+v by a program that was %s", c.method, second.Outcome,
				second.Program.Source)
		}
		if n := m.Count("f", c.method); n != c.asked {
			t.Errorf("%s: the model was asked for the parent %d times, want %d", c.method, n, c.asked)
		}
	}
}

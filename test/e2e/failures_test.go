package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A labelledFailure is one failure with its label: a program that served once, pinned so that nothing mends it, and how it fails the second
// time; or a program that the gate does not let in.
type labelledFailure struct {
	name     string
	code     string
	answer   func(http.ResponseWriter) // of the site, when it fails; nil: as when the program served
	contract map[string]any            // deliverable
	timeout  int                       // of the call, in milliseconds
	refused  bool                      // it is never run, nothing is kept
	types    string                    // the error types that it may end in
	class    string                    // intrinsic, adaptive, extrinsic, authored; "" counts for nothing
}

// turns is a program that answers 1 until its argument is "bad", and then goes on with the body.
func turns(body string, imports ...string) string {
	return program("\tif call.Arg(0, \"x\") != \"bad\" {\n\t\treturn 1, nil\n\t}\n"+body, imports...)
}

// reads is a program that fetches, with its argument in the query, and goes on with the body.
func reads(address, body string, imports ...string) string {
	return program("\tres, err := call.Fetch(\""+address+"?x=\" + call.Arg(0, \"x\").(string))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n"+body, imports...)
}

// answers is a program whose value is ok, and bad when it is asked so.
func answers(ok, bad string) string {
	return program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn " + bad + ", nil\n\t}\n\treturn " + ok + ", nil")
}

const (
	parses   = "\tvar v struct{ Items []string }\n\tif err := json.Unmarshal([]byte(res.Body), &v); err != nil || v.Items == nil {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", \"no items\")\n\t}\n\treturn v.Items, nil"
	trusts   = "\tvar v map[string][]string\n\t_ = json.Unmarshal([]byte(res.Body), &v)\n\treturn v[\"items\"][0], nil"
	listens  = "\tif res.Status >= 400 {\n\t\treturn nil, recurgent.Fail(\"fetch_failed\", \"no answer\")\n\t}\n\treturn 1, nil"
	blunders = "\tif res.Status >= 400 {\n\t\tpanic(\"what now\")\n\t}\n\treturn 1, nil"
	breaches = "\tif res.Status >= 400 || !strings.Contains(res.Body, \"items\") {\n\t\treturn \"nothing\", nil\n\t}\n\treturn 1, nil"
)

func code(n int) func(http.ResponseWriter) { return func(w http.ResponseWriter) { w.WriteHeader(n) } }
func body(s string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { fmt.Fprint(w, s) }
}

// cutOff breaks the connection in the middle of an answer.
func cutOff(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "1000")
	fmt.Fprint(w, "half")
	panic(http.ErrAbortHandler)
}

// labelled is the corpus, with the addresses of a site, of a port where nobody listens and of a host that nobody knows.
func labelled(site, closed, unknown string, hang func(http.ResponseWriter)) []labelledFailure {
	number, object := map[string]any{"type": "number"}, map[string]any{"type": "object", "required": []any{"a"}}
	return []labelledFailure{
		// Programs that the gate does not let in.
		{name: "syntax", code: "package tool\n\nfunc Run(call", refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "undefined name", code: program("\treturn unknown(), nil"), refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "type mismatch", code: program("\tvar n int = \"text\"\n\treturn n, nil"), refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "arity of a call", code: program("\tf := func(a int) int { return a }\n\treturn f(1, 2), nil"), refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "arity of Run", code: "package tool\n\nfunc Run(a int) int { return a }\n", refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "no Run", code: "package tool\n\nfunc Walk() {}\n", refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "two Runs", code: program("\treturn 1, nil") + "\nfunc Run() {}\n", refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "missing return", code: program("\tcall.Arg(0, \"x\")"), refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "init function", code: program("\treturn 1, nil") + "\nfunc init() {}\n", refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "goroutine panic", code: program("\tgo func() { panic(\"boom\") }()\n\treturn 1, nil"), refused: true, types: "invalid_code", class: "intrinsic"},
		{name: "import of os", code: program("\treturn os.Getpid(), nil", "os"), refused: true, types: "guardrail_retry_exhausted", class: "intrinsic"},
		{name: "import of the network", code: program("\t_, err := http.Get(\"http://localhost\")\n\treturn nil, err", "net/http"), refused: true, types: "guardrail_retry_exhausted", class: "intrinsic"},
		{name: "import of unsafe", code: program("\treturn unsafe.Sizeof(1), nil", "unsafe"), refused: true, types: "guardrail_retry_exhausted invalid_code", class: "intrinsic"},
		{name: "another package's variable", code: program("\tbase64.StdEncoding = nil\n\treturn 1, nil", "encoding/base64"), refused: true, types: "guardrail_retry_exhausted", class: "intrinsic"},
		// Programs that end badly by themselves.
		{name: "panic", code: turns("\tpanic(\"boom\")"), types: "execution", class: "intrinsic"},
		{name: "panic with an error", code: turns("\tpanic(recurgent.Fail(\"not_found\", \"no\"))"), types: "execution", class: "intrinsic"},
		{name: "index out of range", code: turns("\treturn call.Args[7], nil"), types: "execution", class: "intrinsic"},
		{name: "slice out of range", code: turns("\tn := 9\n\treturn call.Args[n:], nil"), types: "execution", class: "intrinsic"},
		{name: "nil map", code: turns("\tvar m map[string]int\n\tm[\"a\"] = 1\n\treturn m, nil"), types: "execution", class: "intrinsic"},
		{name: "nil pointer", code: turns("\tvar p *struct{ N int }\n\treturn p.N, nil"), types: "execution", class: "intrinsic"},
		{name: "type assertion", code: turns("\treturn call.Args[0].(float64), nil"), types: "execution", class: "intrinsic"},
		{name: "division by zero", code: turns("\tn := len(call.Args) - 1\n\treturn 1 / n, nil"), types: "execution", class: "intrinsic"},
		{name: "send on a closed channel", code: turns("\tc := make(chan int, 1)\n\tclose(c)\n\tc <- 1\n\treturn 1, nil"), types: "execution", class: "intrinsic"},
		{name: "waits for itself", code: turns("\tc := make(chan int)\n\treturn <-c, nil"), types: "execution timeout", class: "intrinsic"},
		{name: "endless loop", code: turns("\tfor {\n\t}"), types: "timeout", class: "intrinsic"},
		{name: "stack death", code: turns("\tvar f func(int) int\n\tf = func(n int) int { return f(n+1) + 1 }\n\treturn f(0), nil"), types: "resource_exhausted timeout", class: "intrinsic"},
		{name: "memory death", code: turns("\tvar all [][]byte\n\tfor {\n\t\tb := make([]byte, 1<<20)\n\t\tfor i := 0; i < len(b); i += 4096 {\n\t\t\tb[i] = 1\n\t\t}\n\t\tall = append(all, b)\n\t}"), types: "resource_exhausted timeout", class: "intrinsic"},
		{name: "a value too large for memory", code: turns("\tvar b strings.Builder\n\tb.Grow(1 << 42)\n\treturn b.Len(), nil", "strings"), types: "resource_exhausted execution", class: "intrinsic"},
		{name: "function as value", code: turns("\treturn func() {}, nil"), types: "non_serializable_result", class: "intrinsic"},
		{name: "channel as value", code: turns("\treturn make(chan int), nil"), types: "non_serializable_result", class: "intrinsic"},
		{name: "not a number", code: turns("\treturn math.NaN(), nil", "math"), types: "non_serializable_result", class: "intrinsic"},
		{name: "infinite", code: turns("\treturn math.Inf(1), nil", "math"), types: "non_serializable_result", class: "intrinsic"},
		{name: "contains itself", code: turns("\tm := map[string]any{}\n\tm[\"m\"] = m\n\treturn m, nil"), types: "non_serializable_result", class: "intrinsic"},
		// Values that break the contract.
		{name: "another type", code: answers("1", `"text"`), contract: number, types: "contract_violation", class: "intrinsic"},
		{name: "a missing key", code: answers(`map[string]any{"a": 1}`, `map[string]any{"b": 1}`), contract: object, types: "contract_violation", class: "intrinsic"},
		{name: "too few items", code: answers(`[]any{1}`, `[]any{}`), contract: map[string]any{"type": "array", "min_items": 1}, types: "contract_violation", class: "intrinsic"},
		{name: "a property of another type", code: answers(`map[string]any{"a": []any{}}`, `map[string]any{"a": 1}`), types: "contract_violation", class: "intrinsic",
			contract: map[string]any{"type": "object", "constraints": map[string]any{"properties": map[string]any{"a": map[string]any{"type": "array"}}}}},
		{name: "a schema's bound", code: answers("1", "-1"), contract: map[string]any{"type": "number", "minimum": 0}, types: "contract_violation", class: "intrinsic"},
		{name: "null", code: answers("1", "nil"), contract: number, types: "contract_violation", class: "intrinsic"},
		// Errors that programs author, whatever they say.
		{name: "an honest error", code: turns("\treturn nil, recurgent.Fail(\"not_today\", \"no\")"), types: "not_today", class: "authored"},
		{name: "a plain error", code: turns("\treturn nil, errors.New(\"no\")", "errors"), types: "tool_error", class: "authored"},
		{name: "invalid input", code: turns("\treturn nil, recurgent.Fail(\"invalid_input\", \"no\")"), types: "invalid_input", class: "authored"},
		{name: "low utility", code: turns("\treturn nil, recurgent.Fail(\"low_utility\", \"no\")"), types: "low_utility", class: "authored"},
		{name: "wrong boundary", code: turns("\treturn nil, recurgent.Fail(\"wrong_tool_boundary\", \"no\")"), types: "wrong_tool_boundary", class: "authored"},
		{name: "says that it timed out", code: turns("\treturn nil, recurgent.Fail(\"timeout\", \"no\")"), types: "timeout", class: "authored"},
		{name: "says that the model failed", code: turns("\treturn nil, recurgent.Fail(\"provider\", \"no\")"), types: "provider", class: "authored"},
		{name: "says that it is extrinsic", code: turns("\treturn nil, recurgent.Fail(\"extrinsic\", \"no\")"), types: "extrinsic", class: "authored"},
		{name: "parse failed on nothing", code: turns("\treturn nil, recurgent.Fail(\"parse_failed\", \"no\")"), types: "parse_failed", class: "authored"},
		{name: "parse failed on the form of always", code: reads(site, "\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn nil, recurgent.Fail(\"parse_failed\", \"no\")\n\t}\n\treturn res.Status, nil"), types: "parse_failed", class: "authored"},
		{name: "404, told honestly", code: reads(site, listens), answer: code(404), types: "fetch_failed", class: "authored"},
		{name: "a denied fetch, passed on", code: turns("\t_, err := call.Fetch(\"http://127.0.0.1:1/\")\n\treturn nil, err"), types: "denied", class: "authored"},
		// The outside fails.
		{name: "dns", code: turns("\t_, err := call.Fetch(\"" + unknown + "\")\n\treturn nil, err"), types: "fetch_failed", class: "extrinsic"},
		{name: "connection refused", code: turns("\t_, err := call.Fetch(\"" + closed + "\")\n\treturn nil, err"), types: "fetch_failed", class: "extrinsic"},
		{name: "connection refused, panic over it", code: turns("\tr, _ := call.Fetch(\"" + closed + "\")\n\treturn r.Body, nil"), types: "execution", class: "extrinsic"},
		{name: "429", code: reads(site, listens), answer: code(429), types: "fetch_failed", class: "extrinsic"},
		{name: "500", code: reads(site, listens), answer: code(500), types: "fetch_failed", class: "extrinsic"},
		{name: "502", code: reads(site, listens), answer: code(502), types: "fetch_failed", class: "extrinsic"},
		{name: "503", code: reads(site, listens), answer: code(503), types: "fetch_failed", class: "extrinsic"},
		{name: "504", code: reads(site, listens), answer: code(504), types: "fetch_failed", class: "extrinsic"},
		{name: "503, panic over it", code: reads(site, blunders), answer: code(503), types: "execution", class: "extrinsic"},
		{name: "503, contract broken over it", code: reads(site, breaches, "strings"), answer: code(503), contract: number, types: "contract_violation", class: "extrinsic"},
		{name: "503, parse failed over it", code: reads(site, parses, "encoding/json"), answer: code(503), types: "parse_failed", class: "extrinsic"},
		{name: "an answer cut off", code: reads(site, listens), answer: cutOff, types: "fetch_failed", class: "extrinsic"},
		{name: "the deadline while waiting for a fetch", code: reads(site, listens), answer: hang, timeout: 300, types: "timeout", class: "extrinsic"},
		// The outside changed its form.
		{name: "format drift, parse failed", code: reads(site, parses, "encoding/json"), answer: body(`{"entries":["a"]}`), types: "parse_failed", class: "adaptive"},
		{name: "format drift to a page", code: reads(site, parses, "encoding/json"), answer: body("<html>"), types: "parse_failed", class: "adaptive"},
		{name: "format drift, panic", code: reads(site, trusts, "encoding/json"), answer: body(`{"entries":["a"]}`), types: "execution", class: "adaptive"},
		{name: "format drift, contract broken", code: reads(site, breaches, "strings"), answer: body(`{"entries":["a"]}`), contract: number, types: "contract_violation", class: "adaptive"},
		{name: "panic on the form of always", code: reads(site, "\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn res.Status, nil"), types: "execution", class: "intrinsic"},
		{name: "404, panic over it", code: reads(site, blunders), answer: code(404), types: "execution", class: "intrinsic"},
		{name: "a delegated value has another form", code: program("\tv := call.Tool(\"helper\").Call(\"list\", call.Arg(0, \"x\")).Value\n\treturn v.([]any)[0], nil"), types: "execution", class: "adaptive"},
	}
}

// P-48..P-50, P-57..P-59, X-09, X-10; decisions 13 and 17: the labelled corpus, driven through the real daemon. Classes come
// from evidence; extrinsic, authored and interrupted calls never touch health.
func TestLabelledFailures(t *testing.T) {
	f, gate := newFeed(t), make(chan struct{})
	arrived := make(chan struct{}, 8)
	hang := func(http.ResponseWriter) { <-gate }
	tell := func(w http.ResponseWriter) {
		arrived <- struct{}{}
		hang(w)
	}
	t.Cleanup(func() { close(gate) }) // before the site is closed, which waits for its answers
	closed := deafPort(t)
	const unknown = "no-such-host.invalid"
	corpus := labelled(f.URL, "http://"+closed, "http://"+unknown+"/", hang)
	if len(corpus) < 60 {
		t.Fatalf("%d labelled failures, want at least 60", len(corpus))
	}
	waits := labelledFailure{name: "waits", code: reads(f.URL, listens)}
	programs := script{"helper.list": {program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn map[string]any{\"a\": 1}, nil\n\t}\n\treturn []any{1}, nil")}, "f.waits": {waits.code}}
	for _, c := range corpus {
		programs["f."+c.name] = []any{c.code}
	}
	d := newDaemon(t, newModel(t, programs), "--call-timeout", "3s", "--fetch-allow", f.host()+","+closed+","+unknown)
	d.policy(map[string]any{"guardrail_recovery_budget": 0, "execution_repair_budget": 0, "outcome_repair_budget": 0})
	s := d.session("f")
	for _, c := range corpus {
		f.items()
		before := d.serveAndPin(s, c)
		if c.answer != nil {
			f.answer.Store(c.answer)
		}
		got := d.invoke(s, c.request("bad"))
		if got.Outcome.OK || !slices.Contains(strings.Fields(c.types), got.Outcome.ErrorType) {
			t.Errorf("%s: ended in %+v, want %s", c.name, got.Outcome, c.types)
		}
		if got.Outcome.Authored != (c.class == "authored" || got.Outcome.ErrorType == "parse_failed" || got.Outcome.ErrorType == "fetch_failed") {
			t.Errorf("%s: authored %v", c.name, got.Outcome.Authored)
		}
		d.wantClass(c, got.CallID, before)
	}
	f.items()
	d.interruptions(s, waits, func() { f.answer.Store(tell) }, arrived)
}

// interruptions cuts off calls that wait for the outside: a client that goes, a cancellation, a shutdown.
func (d *proc) interruptions(s string, c labelledFailure, hang func(), arrived <-chan struct{}) {
	d.t.Helper()
	before := d.serveAndPin(s, c)
	hang()
	running := func() string {
		for _, e := range d.get("/v1/calls?status=running")["data"].([]any) {
			return e.(map[string]any)["call_id"].(string)
		}
		return ""
	}
	for _, cut := range []struct {
		name string
		by   func(hangUp func(), id string)
	}{
		{"client gone", func(hangUp func(), _ string) { hangUp() }},
		{"canceled", func(_ func(), id string) { d.do(http.StatusNoContent, http.MethodPost, "/v1/calls/"+id+"/cancel", nil) }},
		{"shutdown", func(func(), string) { _ = d.cmd.Process.Signal(syscall.SIGTERM) }},
	} {
		ctx, hangUp := context.WithCancel(d.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = d.try(ctx, http.MethodPost, "/v1/sessions/"+s+"/calls", mustJSON(c.request("bad")), nil) // is cut off
		}()
		select {
		case <-arrived:
		case <-time.After(patience):
			d.t.Fatalf("%s: the call did not get to its fetch", cut.name)
		}
		id := running()
		cut.by(hangUp, id)
		<-done
		hangUp()
		if cut.name == "shutdown" {
			if code := d.wait(); code != 0 {
				d.t.Errorf("exit code %d", code)
			}
			d.start()
		}
		until(d.t, "the record of "+cut.name, func() bool {
			r := d.history(s)
			return r[len(r)-1]["call_id"] == id
		})
		if e := d.get("/v1/calls/" + id); e["outcome_error_type"] != "canceled" {
			d.t.Errorf("%s: ended in %v", cut.name, e["outcome_error_type"])
		}
		c.name = "waits" // the class of all three is none
		d.wantClass(c, id, before)
	}
}

func (c *labelledFailure) request(x string) map[string]any {
	r := map[string]any{"method": c.name, "args": []any{x}}
	if c.contract != nil {
		r["contract"] = map[string]any{"deliverable": c.contract}
	}
	if x == "bad" && c.timeout > 0 {
		r["timeout_ms"] = c.timeout
	}
	return r
}

// serveAndPin has the program serve once and pins it. It returns the artifact, nil for a program that is not let in.
func (d *proc) serveAndPin(s string, c labelledFailure) map[string]any {
	d.t.Helper()
	if c.refused {
		return nil
	}
	if got := d.invoke(s, c.request("ok")); !got.Outcome.OK {
		d.t.Fatalf("%s: did not serve: %+v", c.name, got.Outcome)
	}
	return d.do(http.StatusOK, http.MethodPost, methodPath("f", c.name)+"/pin", map[string]any{}).object(d.t)
}

// wantClass checks the class on the call's log line, and what of it counts for the program's health.
func (d *proc) wantClass(c labelledFailure, callID string, before map[string]any) {
	d.t.Helper()
	if e := d.get("/v1/calls/" + callID); e["failure_class"] != c.class {
		d.t.Errorf("%s: class %q, want %q (%v: %v)", c.name, e["failure_class"], c.class, e["outcome_error_type"], e["outcome_error_message"])
	}
	if before == nil {
		if r := d.send(http.MethodGet, methodPath("f", c.name), nil, nil); r.Status != http.StatusNotFound {
			d.t.Errorf("%s: a program was kept: %d", c.name, r.Status)
		}
		return
	}
	after := d.get(methodPath("f", c.name))
	counts := map[string]any{"intrinsic_failure_count": 0, "adaptive_failure_count": 0, "extrinsic_failure_count": 0, "authored_error_count": 0}
	rate, failures := 0.0, 0
	switch c.class {
	case "intrinsic", "adaptive":
		counts[c.class+"_failure_count"], rate, failures = 1, 0.5, 1
	case "extrinsic":
		counts["extrinsic_failure_count"], failures = 1, 1
	case "authored":
		counts["authored_error_count"] = 1
	}
	counts["failure_count"], counts["recent_failure_rate"], counts["success_count"] = failures, rate, 1
	for k, v := range counts {
		if !equal(v, after[k]) {
			d.t.Errorf("%s: %s is %v, want %v", c.name, k, after[k], v)
		}
	}
	if after["lifecycle_state"] != before["lifecycle_state"] || after["repair_count_since_regen"] != 0.0 {
		d.t.Errorf("%s: %v after %v, %v repairs", c.name, after["lifecycle_state"], before["lifecycle_state"], after["repair_count_since_regen"])
	}
}

// deafPort is an address that is taken and where nobody listens, so that connections to it are refused for as long as the
// test runs.
func deafPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/runtime/verify"
)

// An outside has two hosts that count their requests, and a client that reaches both. A connection grants methods on
// the first one.
type outside struct {
	host, other string // as agent.HostOf has them
	client      *fetch.Client

	mu      sync.Mutex
	got     []string // method, path and body of each request; guarded by mu
	granted []string // methods; guarded by mu
}

func newOutside(t *testing.T, granted ...string) *outside {
	t.Helper()
	x := &outside{granted: granted}
	start := func() string {
		s := httptest.NewServer(http.HandlerFunc(x.serve))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	x.host, x.other = start(), start()
	transport, err := fetch.NewTransport(fetch.TransportOptions{Allow: []string{x.host, x.other},
		Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	o := fetch.DefaultOptions()
	o.Connector = x
	if x.client, err = fetch.New(transport, o); err != nil {
		t.Fatal(err)
	}
	return x
}

// Named is part of fetch.Connector.
func (x *outside) Named(fetch.Caller, string, string) (fetch.Connection, *url.URL, error) {
	return nil, nil, errors.New("no connection of the test is an address")
}

func (x *outside) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	x.mu.Lock()
	x.got = append(x.got, r.Method+" "+r.URL.Path+" "+string(body))
	x.mu.Unlock()
	if r.URL.Path == "/to-other" {
		http.Redirect(w, r, "http://"+x.other+"/there", http.StatusSeeOther)
		return
	}
	fmt.Fprintf(w, `"%s"`, r.URL.Path)
}

func (x *outside) requests() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.got)
}

func (x *outside) grant(methods ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.granted = methods
}

func (x *outside) Connect(_ fetch.Caller, _ string, at *url.URL) fetch.Connection {
	if agent.HostOf(at) != x.host {
		return nil
	}
	return x
}
func (x *outside) Name() string { return "outside" }
func (x *outside) Grants(method string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Contains(x.granted, method)
}
func (x *outside) Sign(context.Context, *http.Request) error  { return nil }
func (x *outside) Renew(context.Context) bool                 { return false }
func (x *outside) Mask(_ context.Context, text []byte) []byte { return text }
func (x *outside) IdempotencyHeader() string                  { return "" }

// program returns a program of steps: "GET http://host/path", "POST http://host/path body", "call role.method", "panic"
// or "panic once". It returns the first failure of a step as its own error, otherwise the JSON value "done".
func (x *outside) program(all ...string) runtimetest.Run {
	return func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
		var res sandbox.Result
		for _, s := range all {
			if end := x.step(ctx, &q, h, s, &res.Effects); end != nil {
				end.Effects = res.Effects
				return *end
			}
		}
		res.Value = json.RawMessage(`"done"`)
		return res
	}
}

func (x *outside) step(ctx context.Context, q *sandbox.Request, h sandbox.Host, s string,
	did *sandbox.Effects) *sandbox.Result {
	verb, rest, _ := strings.Cut(s, " ")
	switch verb {
	case "panic":
		end := runtimetest.Failure(agent.ErrExecution, "boom")
		return &end
	case "call":
		role, method, _ := strings.Cut(rest, ".")
		if o := h.Call(ctx, role, method, nil, nil); !o.OK() {
			return &sandbox.Result{Authored: &sandbox.AuthoredError{Type: o.ErrorType, Message: o.ErrorMessage}}
		}
		return nil
	}
	address, body, _ := strings.Cut(rest, " ")
	if q.NoFetch || q.Recorded != nil {
		did.Fetches = append(did.Fetches, fetch.Denied(recurgent.Request{URL: address}))
		return &sandbox.Result{Authored: &sandbox.AuthoredError{Type: agent.ErrDenied, Message: "no fetch"}}
	}
	a := x.client.Do(ctx, fetch.Caller{Owner: q.Owner, Role: q.Role, Method: q.Method, CallID: q.CallID, Guard: q.Guard,
		Writes: q.Writes},
		recurgent.Request{URL: address, Method: verb, Body: body})
	a.Release()
	did.Fetches = append(did.Fetches, a.Note)
	if a.Failure != nil {
		return &sandbox.Result{Authored: &sandbox.AuthoredError{Type: "could_not", Message: a.Failure.Message}}
	}
	return nil
}

// effectsRig starts a runtime over the programs, by method of the role r: in the order in which the model writes them.
func (x *outside) start(t *testing.T, programs map[string]runtimetest.Run, written map[string][]string,
	change func(*env.Options)) (*Runtime, *runtimetest.Model, func(method string, args ...any) Reply) {
	t.Helper()
	byMethod := map[string][]string{}
	for method, names := range written {
		byMethod["r."+method] = names
	}
	r, model := scripted(t, &runtimetest.Box{Programs: programs}, byMethod, change)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	return r, model, call
}

// allow writes the manifest as a person does.
func allow(t *testing.T, r *Runtime, method string, e agent.Effects) {
	t.Helper()
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: method,
		Manifest: &agent.Manifest{Effects: e, ApprovedBy: "op"}})
}

func effectsOfList(hosts, methods, tools string) agent.Effects {
	return agent.Effects{Hosts: strings.Fields(hosts), Methods: strings.Fields(methods), Tools: strings.Fields(tools),
		Files: []string{}}
}

func wantEffects(t *testing.T, what string, got *agent.Effects, want agent.Effects) {
	t.Helper()
	if got == nil || string(agent.Encoded(got)) != string(agent.Encoded(want)) {
		t.Errorf("%s: got %s, want %s", what, agent.Encoded(got), agent.Encoded(want))
	}
}

// The effects of ok calls are recorded per generation, redirects hop by hop, and form the manifest. In observe mode,
// the manifest grows until a person approves one. A call without new effects changes neither.
func TestEffectsAreRecorded(t *testing.T) {
	t.Parallel()
	x := newOutside(t, "POST")
	sort := func(hosts ...string) string { slices.Sort(hosts); return strings.Join(hosts, " ") }
	r, _, call := x.start(t, map[string]runtimetest.Run{
		"plain": runtimetest.Returns("1"), "fails": x.program("GET http://"+x.other+"/", "panic"),
		"varied": func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
			var which string
			if len(q.Args) > 0 {
				_ = json.Unmarshal(q.Args[0], &which)
			}
			return x.program(map[string]string{"": "GET http://" + x.host + "/", "other": "GET http://" + x.other + "/",
				"away": "POST http://" + x.host + "/to-other x", "tool": "call r.plain"}[which])(ctx, q, h)
		},
	}, map[string][]string{"plain": {"plain"}, "varied": {"varied"}, "fails": {"fails"}}, nil)

	call("plain")
	wantEffects(t, "a program that reaches nothing", artifactOf(t, r, "r", "plain").Current().Effects,
		effectsOfList("", "", ""))
	if m := artifactOf(t, r, "r", "plain").Manifest; m == nil || m.Revision != 1 || m.ApprovedBy != "" {
		t.Errorf("its manifest: %+v", m)
	}
	call("varied")
	call("varied")
	a := artifactOf(t, r, "r", "varied")
	wantEffects(t, "one fetch", a.Current().Effects, effectsOfList(x.host, "GET", ""))
	if a.Manifest.Revision != 1 {
		t.Errorf("the same again counts as a change: %+v", a.Manifest)
	}
	got := call("varied", "away")
	all := effectsOfList(sort(x.host, x.other), "GET POST", "")
	wantEffects(t, "a redirect", artifactOf(t, r, "r", "varied").Current().Effects, all)
	wantEffects(t, "the manifest under observe", &artifactOf(t, r, "r", "varied").Manifest.Effects, all)
	wantEffects(t, "the log of the call that went beyond", logOf(t, r, got.CallID).BeyondManifest,
		effectsOfList(x.other, "POST", ""))

	allow(t, r, "varied", effectsOfList(x.host, "GET", ""))
	got = call("varied", "tool")
	a = artifactOf(t, r, "r", "varied")
	wantEffects(t, "a nested call", a.Current().Effects, effectsOfList(sort(x.host, x.other), "GET POST", "r.plain"))
	wantEffects(t, "the manifest of a person", &a.Manifest.Effects, effectsOfList(x.host, "GET", ""))
	wantEffects(t, "the log", logOf(t, r, got.CallID).BeyondManifest, effectsOfList("", "", "r.plain"))

	call("fails")
	if a, err := r.env.Store.Artifact(t.Context(), "r", "fails"); err == nil && a.Manifest != nil {
		t.Errorf("a failed call made a manifest: %+v", a.Manifest)
	}
}

// In enforce mode, a program cannot exceed its method's manifest. The denial names what a person can do, no model is
// asked, and nothing counts against the program. A person's approval ends the denial.
func TestEffectsAreEnforced(t *testing.T) {
	for _, tt := range []struct {
		name, step, lacks, flag string
		approve                 func(x *outside) agent.Effects
	}{
		{"another host", "GET http://OTHER/", `"hosts":["OTHER"]`, "--host OTHER",
			func(x *outside) agent.Effects { return effectsOfList(x.host+" "+x.other, "GET", "") }},
		{"a redirect to it", "GET http://HOST/to-other", `"hosts":["OTHER"]`, "--host OTHER",
			func(*outside) agent.Effects { return effectsOfList("*", "GET", "") }},
		{"another HTTP method", "POST http://HOST/ x", `"methods":["POST"]`, "--http-method POST",
			func(x *outside) agent.Effects { return effectsOfList(x.host, "GET POST", "") }},
		{"a tool", "call r.nested", `"tools":["r.nested"]`, "--tool r.nested",
			func(x *outside) agent.Effects { return effectsOfList(x.host, "GET", "*") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newOutside(t, "POST")
			fill := strings.NewReplacer("HOST", x.host, "OTHER", x.other).Replace
			r, model, call := x.start(t, map[string]runtimetest.Run{"nested": runtimetest.Returns("1"),
				"program": func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
					if len(q.Args) == 0 {
						return x.program("GET http://"+x.host+"/")(ctx, q, h)
					}
					return x.program(fill(tt.step))(ctx, q, h)
				}}, map[string][]string{"m": {"program"}, "nested": {"nested"}}, nil)
			patchPolicy(t, r, `{"effects": "enforce"}`)
			call("nested")
			wantReply(t, "the first call", call("m"), `"done" generated`)
			for range 5 {
				got := call("m", 1)
				wantReply(t, "beyond the manifest", got, "denied persisted")
				o := got.Outcome
				if !strings.Contains(o.ErrorMessage, "A person can allow it: recurgentd tools allow r m "+
					fill(tt.flag)) || o.Metadata["approve"] != "PUT /v1/tools/r/methods/m/effects" || o.Authored ||
					o.Retriable {
					t.Errorf("the outcome: %+v", o)
				}
				if lacks := string(agent.Encoded(o.Metadata["lacks"])); lacks != "{"+fill(tt.lacks)+"}" {
					t.Errorf("it lacks %s", lacks)
				}
				if e := logOf(t, r, got.CallID); e.FailureClass != agent.ClassExtrinsic || e.BeyondManifest == nil {
					t.Errorf("the log: %q %v", e.FailureClass, e.BeyondManifest)
				}
			}
			a := artifactOf(t, r, "r", "m")
			if n := model.Count("r.m", ""); n != 1 || a.IntrinsicFailureCount > 0 || a.Current().AuthoredStreak > 0 ||
				a.Manifest.Revision != 1 {
				t.Errorf("%d requests to the model, %d failures, manifest %+v", n, a.IntrinsicFailureCount, a.Manifest)
			}
			wantReply(t, "within the manifest", call("m"), `"done" persisted`)
			allow(t, r, "m", tt.approve(x))
			wantReply(t, "after a person's approval", call("m", 1), `"done" persisted`)
		})
	}
}

// A successor that reaches a new host is held until a person allows the host, without further model requests.
func TestASuccessorWaitsForItsHost(t *testing.T) {
	t.Parallel()
	x := newOutside(t)
	clock := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	failing := false
	r, model, call := x.start(t, map[string]runtimetest.Run{
		"old": func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
			if failing {
				return x.program("panic")(ctx, q, h)
			}
			return x.program("GET http://"+x.host+"/")(ctx, q, h)
		},
		"new": x.program("GET http://" + x.other + "/"),
	}, map[string][]string{"m": {"old", "new"}}, func(o *env.Options) { o.Now = func() time.Time { return clock } })
	patchPolicy(t, r, `{"effects": "enforce", "new_reach": "allow", "fixtures_enabled": false}`)
	call("m")
	failing = true
	for i := range 8 {
		got := call("m")
		if got.Outcome.ErrorType != agent.ErrDenied || !strings.Contains(got.Outcome.ErrorMessage, x.other) {
			t.Fatalf("call %d: got %+v %+v %+v", i, got.Outcome, got.Program.Selection,
				logOf(t, r, got.CallID).AttemptFailures)
		}
		clock = clock.Add(2 * time.Hour)
	}
	if n := model.Count("r.m", ""); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
	repair := model.Requests()[1]
	if text := repair.Messages[len(
		repair.Messages)-1].Content; !strings.Contains(text, "may reach only this, until a person allows more: hosts "+
		x.host+"; HTTP methods GET; tools none") {
		t.Errorf("the request for the successor does not say what it may reach: %s", text)
	}
	if a := artifactOf(t, r, "r", "m"); a.Code != "old" {
		t.Errorf("%s serves", a.Code)
	}
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m",
		Manifest: &agent.Manifest{Effects: effectsOfList("*", "GET", ""), ApprovedBy: "op"}})
	wantReply(t, "once the host is allowed", call("m"), `"done" repaired`)
	a := artifactOf(t, r, "r", "m")
	if n := model.Count("r.m", ""); n != 2 || a.Code != "new" ||
		!slices.Equal(a.NewHosts(a.Current()), []string{x.other}) {
		t.Errorf("%d requests, %s serves, new hosts %v", n, a.Code, a.NewHosts(a.Current()))
	}
}

// A first program that needs a connection for a write is kept, and answers once the connection exists. Nothing is
// forged in between.
func TestAWriteWaitsForItsConnection(t *testing.T) {
	t.Parallel()
	x := newOutside(t)
	r, model, call := x.start(t, map[string]runtimetest.Run{"pays": x.program("POST http://" + x.host + "/pay 7"),
		"passes on": x.program("call r.m")}, map[string][]string{"m": {"pays"}, "above": {"passes on"}}, nil)
	for range 4 {
		got := call("m")
		if got.Outcome.ErrorType != agent.ErrDenied ||
			got.Outcome.Metadata["approve"] != "PUT /v1/connections/{name}" ||
			!strings.Contains(got.Outcome.ErrorMessage, "POST to "+x.host) {
			t.Fatalf("got %+v", got.Outcome)
		}
		wantReply(t, "by a nested call", call("above"), map[bool]string{true: "denied generated",
			false: "denied persisted"}[model.Count("r.above", "") == 1 &&
			artifactOf(t, r, "r", "above").ExtrinsicFailureCount == 1])
	}
	a := artifactOf(t, r, "r", "m")
	if n := model.Count("r.m", ""); n != 1 || a.Code != "pays" || a.IntrinsicFailureCount+a.AuthoredErrorCount > 0 {
		t.Errorf("%d requests, %q is kept, %d failures", n, a.Code, a.IntrinsicFailureCount+a.AuthoredErrorCount)
	}
	if got := x.requests(); len(got) > 0 {
		t.Errorf("the host got %q", got)
	}
	x.grant("POST")
	wantReply(t, "with a connection", call("m"), `"done" persisted`)
	wantReply(t, "with a connection, nested", call("above"), `"done" persisted`)
}

// A write is sent once per call, whatever fails after it and runs again: the repaired program, a new program, or a
// nested call.
func TestWritesAreSentOnceWithinACall(t *testing.T) {
	x := newOutside(t, "POST", "DELETE")
	pay := "POST http://" + x.host + "/pay 7"
	for _, tt := range []struct {
		name     string
		programs map[string]runtimetest.Run
		written  map[string][]string
		want     string
		got      []string
	}{
		{"repaired after it", map[string]runtimetest.Run{"a": x.program(pay, "panic"), "b": x.program(pay)},
			map[string][]string{"m": {"a", "b"}}, `"done" generated`, []string{"POST /pay 7"}},
		{"repaired and written anew", map[string]runtimetest.Run{"old": x.program(pay, "panic"),
			"a": x.program(pay, pay, "panic"), "b": x.program(pay, "panic"), "c": x.program(pay, pay, pay)},
			map[string][]string{"m": {"old", "a", "b", "c"}}, `"done" generated`,
			[]string{"POST /pay 7", "POST /pay 7", "POST /pay 7"}},
		{"another write of the repaired program", map[string]runtimetest.Run{"a": x.program(pay, "panic"),
			"b": x.program(pay, "DELETE http://"+x.host+"/pay")}, map[string][]string{"m": {"a", "b"}},
			`"done" generated`, []string{"POST /pay 7", "DELETE /pay "}},
		{"in a nested call", map[string]runtimetest.Run{"pays": x.program(pay), "a": x.program("call r.pay", "panic"),
			"b": x.program("call r.pay")}, map[string][]string{"m": {"a", "b"}, "pay": {"pays"}},
			`"done" generated`, []string{"POST /pay 7"}},
		{"twice on purpose, nested", map[string]runtimetest.Run{"pays": x.program(pay),
			"a": x.program("call r.pay", "call r.pay", "panic"), "b": x.program("call r.pay", "call r.pay")},
			map[string][]string{"m": {"a", "b"}, "pay": {"pays"}},
			`"done" generated`, []string{"POST /pay 7", "POST /pay 7"}},
		{"a nested call that fails after it, and is made again",
			map[string]runtimetest.Run{"pays": x.program(pay, "panic"),
				"a": func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
					h.Call(ctx, "r", "pay", nil, nil)
					return x.program("call r.pay")(ctx, q, h)
				}}, map[string][]string{"m": {"a"}, "pay": {"pays"}}, `execution generated`, []string{"POST /pay 7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(x.requests())
			r, _, call := x.start(t, tt.programs, tt.written, nil)
			patchPolicy(t, r, `{"execution_repair_budget": 5}`)
			wantReply(t, "the call", call("m"), tt.want)
			if got := x.requests()[before:]; !slices.Equal(got, tt.got) {
				t.Errorf("the host got %q, want %q", got, tt.got)
			}
			if tt.want == `"done" generated` {
				before = len(x.requests())
				if call("m"); len(x.requests()) == before {
					t.Error("another call wrote nothing: it is another call")
				}
			}
		})
	}
}

// Dry runs write nothing: of examples, of candidates, and to try something.
func TestDryRunsWriteNothing(t *testing.T) {
	t.Parallel()
	x := newOutside(t, "POST")
	r, _, call := x.start(t, map[string]runtimetest.Run{"pays": x.program("POST http://" + x.host + "/pay 7")},
		map[string][]string{"m": {"pays"}}, nil)
	call("m")
	before := len(x.requests())
	a := operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", Example: ptr(example("ex_1", `"done"`))})
	got := r.RunDry(t.Context(), verify.DryRun{Role: "r", Method: "m", Artifact: a, Generation: a.Current()})
	if got.OK() || !strings.Contains(got.ErrorMessage, "proof, try and replay") {
		t.Errorf("a try: %+v", got)
	}
	for _, res := range r.CheckExamples(t.Context(), verify.DryRun{Role: "r", Method: "m", Artifact: a,
		Generation: a.Current()}) {
		if res.Result != proof.ExampleSkipped {
			t.Errorf("an example that writes: %+v", res)
		}
	}
	if got := x.requests()[before:]; len(got) > 0 {
		t.Errorf("the host got %q", got)
	}
}

func ptr[T any](v T) *T { return &v }

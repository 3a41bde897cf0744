package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// on answers by the text of the first argument; otherwise with rest.
func on(arg string, then, rest runtimetest.Run) runtimetest.Run {
	return func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
		if len(q.Args) > 0 && string(q.Args[0]) == `"`+arg+`"` {
			return then(ctx, q, h)
		}
		return rest(ctx, q, h)
	}
}

// fetched is a program that fetched the body of that shape, and answers.
func fetched(shape string, status int, answer runtimetest.Run) runtimetest.Run {
	return func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
		res := answer(ctx, q, h)
		res.Effects.Fetches = []sandbox.Fetch{{URL: "https://feed.example/rss?q=1", Status: status, Shape: shape,
			ContentType: "text/xml", Bytes: 12, Sample: "rss 2.0"}}
		return res
	}
}

func scriptedPrograms() map[string]runtimetest.Run {
	boom := runtimetest.Breaks(agent.ErrExecution, "boom")
	return map[string]runtimetest.Run{
		"one":    runtimetest.Returns("1"),
		"two":    runtimetest.Returns("2"),
		"boom":   boom,
		"fickle": on("bad", boom, runtimetest.Returns("1")),
		"fixed":  on("bad", runtimetest.Returns(`"fixed"`), runtimetest.Returns("1")),
		"other":  on("bad", runtimetest.Returns(`"fixed"`), runtimetest.Returns("9")),
		"honest": on("bad", runtimetest.Raises("no_such_thing", "there is none"), runtimetest.Returns("1")),
		"refers": on("bad", runtimetest.Raises(agent.ErrInvalidInput, "not like this"), runtimetest.Returns("3")),
	}
}

func artifactOf(t *testing.T, r *Runtime, role, method string) *agent.Artifact {
	t.Helper()
	a, err := r.env.Store.Artifact(t.Context(), role, method)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func logOf(t *testing.T, r *Runtime, callID string) agent.LogEntry {
	t.Helper()
	c, err := r.env.Store.Call(t.Context(), callID)
	if err != nil {
		t.Fatal(err)
	}
	return c.Log
}

// How the runtime recovers from a failing stored program, by what the model writes next. Each row makes a first call
// that stores the first program, and a second call that fails with it.
func TestRecovery(t *testing.T) {
	tests := []struct {
		name     string
		programs []string
		policy   string
		want     string // reply of the second call
		kinds    string // of the requests of the second call
		current  string // code that is stored afterwards
		trigger  string
		repairs  int
		rejected []string // stage and reason, newest first
	}{
		{"a repair serves", []string{"fickle", "fixed"}, "", `"fixed" repaired`, "repair", "fixed", "repair:execution",
			1, nil},
		{"a repair that fails is replaced", []string{"fickle", "boom", "fixed"}, "", `"fixed" generated`,
			"repair forge", "fixed", "regenerate:repair_failed", 0,
			[]string{"proof execution: it broke an earlier call that was right"}},
		{"a repair that breaks an earlier answer", []string{"fickle", "other", "fixed"}, "", `"fixed" generated`,
			"repair forge", "fixed", "regenerate:repair_failed", 0,
			[]string{"proof execution: it broke an earlier call that was right"}},
		{"fixtures off", []string{"fickle", "other"}, `{"fixtures_enabled": false}`, `"fixed" repaired`, "repair",
			"other", "repair:execution", 1, nil},
		{"repair off", []string{"fickle", "fixed"}, `{"repair_enabled": false}`, `"fixed" generated`, "forge", "fixed",
			"regenerate:repair_disabled", 0, nil},
		{"no repairs are left", []string{"fickle", "fixed"}, `{"max_repairs_before_regen": 0}`, `"fixed" generated`,
			"forge", "fixed", "regenerate:budget_exhausted", 0, nil},
		{"the new program fails too, and is repaired", []string{"fickle", "boom", "boom", "fixed"},
			`{"fixtures_enabled": false}`, `"fixed" generated`, "repair forge repair", "fixed",
			"regenerate:repair_failed", 0, []string{"execution execution: boom", "execution execution: boom"}},
		{"everything fails", []string{"fickle", "boom"}, `{"fixtures_enabled": false}`, "execution generated",
			"repair forge repair", "fickle", "initial_forge", 1, []string{"execution execution: boom",
				"execution execution: boom", "execution execution: boom"}},
		{"everything fails, no recovery is left", []string{"fickle", "boom"},
			`{"fixtures_enabled": false, "execution_repair_budget": 0}`, "execution generated", "repair forge",
			"fickle", "initial_forge", 1, []string{"execution execution: boom", "execution execution: boom"}},
		{"a refused repair", []string{"fickle", "refused", "fixed"}, `{"guardrail_recovery_budget": 0}`,
			`"fixed" generated`, "repair forge", "fixed", "regenerate:repair_failed", 0,
			[]string{"validation dependency_policy_violation: os"}},
		{"a refused repair is repaired", []string{"fickle", "refused", "fixed"}, "", `"fixed" repaired`,
			"repair repair", "fixed", "repair:execution", 1, nil},
		{"an honest error that kept earlier answers", []string{"fickle", "honest"}, "", "no_such_thing repaired",
			"repair", "honest", "repair:execution", 1, nil},
		{"an honest error that shows nothing", []string{"fickle", "honest"}, `{"fixtures_enabled": false}`,
			"no_such_thing repaired", "repair", "fickle", "initial_forge", 1,
			[]string{"execution no_such_thing: there is none"}},
		{"invalid input keeps a repair", []string{"fickle", "refers"}, `{"fixtures_enabled": false}`,
			"invalid_input repaired", "repair", "refers", "repair:execution", 1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			box := &runtimetest.Box{Programs: scriptedPrograms(),
				Refused: map[string]*sandbox.Failure{"refused": {Type: agent.ErrDependencyPolicy, Message: "os",
					Hint: "without os"}}}
			r, model := scripted(t, box, map[string][]string{"r.m": slices.Clone(tt.programs)}, nil)
			if tt.policy != "" {
				patchPolicy(t, r, tt.policy)
			}
			_, call := conversation(t, r, sessions.Request{Role: "r"})
			wantReply(t, "first", call("m", "fine"), "1 generated")
			got := call("m", "bad")
			wantReply(t, "second", got, tt.want)
			kinds := []string{}
			for _, q := range model.Requests()[1:] {
				kinds = append(kinds, q.Kind)
			}
			if s := strings.Join(kinds, " "); s != tt.kinds {
				t.Errorf("the requests were %s, want %s", s, tt.kinds)
			}
			a := artifactOf(t, r, "r", "m")
			if a.Code != tt.current || a.Current().Trigger != tt.trigger || a.RepairCountSinceRegen != tt.repairs {
				t.Errorf("%s (%s) serves after %d repairs, want %s (%s) after %d", a.Code, a.Current().Trigger,
					a.RepairCountSinceRegen, tt.current, tt.trigger, tt.repairs)
			}
			if a.IntrinsicFailureCount < 1 || a.LastFailureClass != agent.ClassIntrinsic {
				t.Errorf("the failure did not count: %d, %q", a.IntrinsicFailureCount, a.LastFailureClass)
			}
			var rejected []string
			for _, x := range a.Rejections {
				rejected = append(rejected, x.Stage+" "+x.Reason)
			}
			if !slices.Equal(rejected, tt.rejected) {
				t.Errorf("rejected %q, want %q", rejected, tt.rejected)
			}
			e := logOf(t, r, got.CallID)
			if tt.kinds != "forge" != e.RepairAttempted || strings.HasSuffix(tt.want, "repaired") &&
				tt.current != "fickle" != e.RepairSucceeded || !e.RollbackApplied {
				t.Errorf("the log says attempted %v, succeeded %v, rolled back %v", e.RepairAttempted,
					e.RepairSucceeded, e.RollbackApplied)
			}
			if n := strings.Count(tt.kinds, " ") + 1; got.Usage.ModelRequests != n || e.GenerationAttempt != n {
				t.Errorf("%d requests are charged, %d logged, want %d", got.Usage.ModelRequests, e.GenerationAttempt, n)
			}
		})
	}
}

// After forging failed, calls wait out the delay: a failing program answers with its own failure and the time of the
// next try. After the delay, forging starts anew.
func TestFailingProgramBacksOff(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	box := &runtimetest.Box{Programs: scriptedPrograms()}
	r, model := scripted(t, box, map[string][]string{"r.m": {"fickle", "boom"}},
		func(o *env.Options) { o.Now = func() time.Time { return clock } })
	patchPolicy(t, r, `{"degraded": {"min_failures": 20}, "fixtures_enabled": false}`)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	call("m", "fine")
	if got := call("m", "bad"); got.Outcome.ErrorType != agent.ErrExecution ||
		got.Outcome.Metadata["retry_after_ms"] != nil {
		t.Fatalf("got %+v", got.Outcome)
	}
	asked := model.Count("r.m", "")
	clock = clock.Add(20 * time.Second)
	got := call("m", "bad")
	wantReply(t, "during the delay", got, "execution persisted")
	if ms := got.Outcome.Metadata["retry_after_ms"]; ms != 10_000.0 || model.Count("r.m", "") != asked {
		t.Errorf("retry after %v ms; %d requests more", ms, model.Count("r.m", "")-asked)
	}
	wantReply(t, "another input", call("m", "fine"), "1 persisted")
	r.ForgetFailures("r", "m")
	if call("m", "bad"); model.Count("r.m", "") == asked {
		t.Error("forgotten failures still delay")
	}
	clock = clock.Add(31 * time.Second)
	model.Programs["r.m"] = []string{"fixed"}
	wantReply(t, "after the delay", call("m", "bad"), `"fixed" repaired`)
	if r.forges.Delayed(clock) {
		t.Error("a success leaves a delay")
	}
}

// Why a stored program is repaired before it runs, and what the request to the model says.
func TestRepairFirst(t *testing.T) {
	type question = CallRequest
	tests := []struct {
		name    string
		facts   map[string]gate.Facts
		prepare func(t *testing.T, r *Runtime)
		q       question
		trigger string
		says    []string
	}{
		{"the contract changed", nil, nil,
			question{Contract: &agent.Contract{Deliverable: json.RawMessage(`{"type":"number"}`)}},
			"repair:contract_changed",
			[]string{"The contract changed since this program was written", "<failure_class>stale</failure_class>"}},
		{"arguments are ignored", map[string]gate.Facts{"one": {}}, nil,
			question{Args: []json.RawMessage{json.RawMessage("7")}}, "repair:arguments_ignored",
			[]string{"This program ignores its arguments", "<failure_class>stale</failure_class>"}},
		{"degraded", nil, func(t *testing.T, r *Runtime) {
			for range 3 {
				operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", Result: agent.ClassIntrinsic,
					ErrorType: agent.ErrExecution, Reason: "boom at 7"})
			}
		}, question{}, "repair:degraded",
			[]string{"This program fails too often: 75% of its recent calls. Last failure: boom at 7",
				"<failure_class>intrinsic</failure_class>"}},
		{"degraded by a source", nil, func(t *testing.T, r *Runtime) {
			for range 3 {
				operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", Result: agent.ClassAdaptive,
					ErrorType: agent.ErrParseFailed, Reason: "no title"})
			}
		}, question{}, "repair:degraded", []string{"Last failure: no title",
			"<failure_class>adaptive</failure_class>"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			facts := map[string]gate.Facts{}
			for k, v := range tt.facts {
				facts[k] = v
			}
			box := &runtimetest.Box{Programs: scriptedPrograms(), Facts: facts}
			r, model := scripted(t, box, map[string][]string{"r.m": {"one", "two"}}, nil)
			patchPolicy(t, r, `{"fixtures_enabled": false}`)
			id, call := conversation(t, r, sessions.Request{Role: "r"})
			wantReply(t, "first", call("m"), "1 generated")
			if tt.prepare != nil {
				tt.prepare(t, r)
			}
			tt.q.SessionID, tt.q.Method = id, "m"
			res, err := r.Call(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			var got Reply
			if err := json.Unmarshal(res.Body, &got); err != nil {
				t.Fatal(err)
			}
			wantReply(t, "second", got, "2 repaired")
			if got.Program.Trigger != tt.trigger {
				t.Errorf("the trigger is %s, want %s", got.Program.Trigger, tt.trigger)
			}
			for _, part := range append(tt.says, "<failed_code>", "one") {
				if text := lastUser(model.Requests()[1]); !strings.Contains(text, part) {
					t.Errorf("the request lacks %q:\n%s", part, text)
				}
			}
		})
	}
}

// A provider that fails during a repair ends the call with the program's own failure, and with what the provider said.
func TestProviderFailsDuringRepair(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: scriptedPrograms()}
	r, model := scripted(t, box, map[string][]string{"r.m": {"fickle", "fixed"}}, nil)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	call("m", "fine")
	model.Err = &provider.Error{Type: agent.ErrProvider, Reason: "network", Message: "connection refused"}
	got := call("m", "bad")
	wantReply(t, "during the outage", got, "execution persisted")
	if got.Outcome.Metadata["repair_error"] != "connection refused" {
		t.Errorf("metadata %v", got.Outcome.Metadata)
	}
	a := artifactOf(t, r, "r", "m")
	if a.RepairCountSinceRegen != 0 || r.forges.Delayed(r.env.Now()) {
		t.Errorf("the outage counts as %d repairs, or delays the next program", a.RepairCountSinceRegen)
	}
	model.Err = nil
	wantReply(t, "afterwards", call("m", "bad"), `"fixed" repaired`)
}

// An unreadable reply is requested once more with other words, if the policy allows it; then it counts as the model's
// fault. A reply that would end the same way is not requested again.
func TestUnreadablePayloads(t *testing.T) {
	t.Parallel()
	r, model := scripted(t, &runtimetest.Box{Programs: scriptedPrograms()}, map[string][]string{"r.m": {"one"}}, nil)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	cut := &provider.Error{Type: agent.ErrInvalidCode, Reason: provider.ReasonInvalidPayload, Message: "cut off"}
	model.Err = cut
	if got := call("cut"); got.Outcome.OK() || model.Count("r.cut", "") != 1 {
		t.Errorf("got %+v after %d requests", got.Outcome, model.Count("r.cut", ""))
	}
	unread := *cut
	unread.Message, unread.Unread = "no program in it", true
	model.Err = &unread
	patchPolicy(t, r, `{"max_generation_attempts": 5}`)
	got := call("m")
	if got.Outcome.OK() || model.Count("r.m", "") != 2 || got.Attempts != 2 {
		t.Errorf("got %+v after %d requests and %d attempts", got.Outcome, model.Count("r.m", ""), got.Attempts)
	}
	requests := model.Requests()
	first, second := requests[len(requests)-2].Messages, requests[len(requests)-1].Messages
	if last := second[len(second)-1].Content; !strings.Contains(last, "no program in it") ||
		slices.Equal(first, second) {
		t.Errorf("the second request ends with %s", last)
	}
	e := logOf(t, r, got.CallID)
	if e.FailureClass != agent.ClassIntrinsic || len(e.AttemptFailures) != 1 ||
		e.AttemptFailures[0].Stage != attempt.StageValidation {
		t.Errorf("class %q, failures %+v", e.FailureClass, e.AttemptFailures)
	}
}

// A source that changed its shape makes a failure adaptive. Fixtures that rest on the source no longer bind the repair.
// The evidence of the failure is kept and shown to the model, secrets masked.
func TestChangedSource(t *testing.T) {
	t.Parallel()
	shape := "rss"
	reads := func(answer runtimetest.Run) runtimetest.Run {
		return func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
			res := fetched(shape, 200, answer)(ctx, q, h)
			res.Effects.Journal = json.RawMessage(`[{"fetch":1}]`)
			return res
		}
	}
	old := func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
		if shape == "rss" {
			return reads(runtimetest.Returns("1"))(ctx, q, h)
		}
		return reads(runtimetest.Raises(agent.ErrParseFailed, "no item"))(ctx, q, h)
	}
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"old": old, "new": reads(runtimetest.Returns("2"))}}
	r, model := scripted(t, box, map[string][]string{"r.m": {"old", "new"}}, nil)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	wantReply(t, "first", call("m"), "1 generated")
	first := artifactOf(t, r, "r", "m").Current()
	if len(first.Fixtures) != 1 || first.Shapes["https://feed.example/rss"] != "rss" || len(first.Answered) != 1 {
		t.Fatalf("the first run left %d fixtures, shapes %v, answered %v", len(first.Fixtures), first.Shapes,
			first.Answered)
	}
	shape = "html"
	got := call("m")
	wantReply(t, "after the change", got, "2 repaired")
	a := artifactOf(t, r, "r", "m")
	if a.AdaptiveFailureCount != 1 || len(a.Failures) != 1 {
		t.Fatalf("%d adaptive failures, %d kept", a.AdaptiveFailureCount, len(a.Failures))
	}
	want := agent.Source{URL: "https://feed.example/rss?q=1", Status: 200, ContentType: "text/xml", Bytes: 12,
		Shape: "html", WasShape: "rss", Sample: "rss 2.0"}
	if f := a.Failures[0]; f.ErrorType != agent.ErrParseFailed || f.Message != "no item" ||
		f.Class != agent.ClassAdaptive || f.Generation != "gen-1" || len(f.Sources) != 1 || f.Sources[0] != want {
		t.Errorf("the failure is kept as %+v", f)
	}
	for _, part := range []string{"the failing run ended in parse_failed: no item",
		"it fetched https://feed.example/rss?q=1: status 200, text/xml, 12 bytes",
		"the shape of the response is now html; at the last good run it was rss", "the response begins: rss 2.0"} {
		if text := lastUser(model.Requests()[1]); !strings.Contains(text, part) {
			t.Errorf("the request lacks %q:\n%s", part, text)
		}
	}
	if rec := logOf(t, r, got.CallID); rec.FailureClass != agent.ClassAdaptive {
		t.Errorf("the call is classed %q", rec.FailureClass)
	}
}

// Outages and interruptions do not lower a program's health and do not cause forging.
func TestOutageIsNoFailure(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"reads": on("bad",
		fetched("", 503, runtimetest.Raises("unavailable", "503")), fetched("rss", 200, runtimetest.Returns("1")))}}
	r, model := scripted(t, box, map[string][]string{"r.m": {"reads"}}, nil)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	call("m", "fine")
	wantReply(t, "outage", call("m", "bad"), "unavailable persisted")
	a := artifactOf(t, r, "r", "m")
	if a.ExtrinsicFailureCount != 1 || a.IntrinsicFailureCount+a.AdaptiveFailureCount != 0 ||
		model.Count("r.m", "") != 1 {
		t.Errorf("extrinsic %d, intrinsic %d, adaptive %d; %d requests", a.ExtrinsicFailureCount,
			a.IntrinsicFailureCount, a.AdaptiveFailureCount, model.Count("r.m", ""))
	}
}

// A value that breaks its contract is repaired from the budget for outcomes.
func TestBrokenContract(t *testing.T) {
	t.Parallel()
	contract := &agent.Contract{Deliverable: json.RawMessage(`{"type":"string"}`)}
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"number": runtimetest.Returns("1"),
		"text": runtimetest.Returns(`"one"`)}}
	r, _ := scripted(t, box, map[string][]string{"r.m": {"number", "text"}, "r.never": {"number"}}, nil)
	_, call := conversation(t, r, sessions.Request{Role: "r", Contract: contract})
	got := call("m")
	wantReply(t, "repaired within the call", got, `"one" generated`)
	e := logOf(t, r, got.CallID)
	if e.OutcomeRepairAttempts != 1 || e.ExecutionRepairAttempts != 0 || !e.ContractValidationApplied ||
		!e.ContractValidationPassed {
		t.Errorf("log: outcome repairs %d, execution repairs %d, checked %v, kept %v", e.OutcomeRepairAttempts,
			e.ExecutionRepairAttempts, e.ContractValidationApplied, e.ContractValidationPassed)
	}
	got = call("never")
	wantReply(t, "never repaired", got, "contract_violation generated")
	e = logOf(t, r, got.CallID)
	if e.OutcomeRepairAttempts != 1 || !e.ContractValidationApplied || e.ContractValidationPassed ||
		e.ContractValidationMismatch == "" {
		t.Errorf("log: outcome repairs %d, checked %v, kept %v, mismatch %q", e.OutcomeRepairAttempts,
			e.ContractValidationApplied, e.ContractValidationPassed, e.ContractValidationMismatch)
	}
	if _, err := r.env.Store.Artifact(t.Context(), "r", "never"); err == nil {
		t.Error("a program that never served is stored")
	}
}

// If a person asked for a program and none could be obtained, the old program keeps serving. The method shows the
// reason, and the next calls wait out the delay.
func TestFallBack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, next string
		arg        string
		want       string // reply of the call that forges
		state      string // of the correction afterwards
		last       string // its error
	}{
		{"it fails", "boom", "fine", "1 persisted", agent.CorrectionBackingOff,
			"outcome_repair_retry_exhausted: it broke an earlier call that was right"},
		{"it is refused", "refused", "fine", "1 persisted", agent.CorrectionBackingOff,
			"guardrail_retry_exhausted: os"},
		{"an honest error, where the old one has a value", "grumpy", "fine", "1 persisted", agent.CorrectionBackingOff,
			"no_such_thing: there is none"},
		{"an honest error, where the old one fails", "grumpy", "bad", "no_such_thing generated",
			agent.CorrectionBackingOff, "no_such_thing: there is none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			box := &runtimetest.Box{Programs: scriptedPrograms(),
				Refused: map[string]*sandbox.Failure{"refused": {Type: agent.ErrDependencyPolicy, Message: "os"}}}
			box.Programs["grumpy"] = runtimetest.Raises("no_such_thing", "there is none")
			r, model := scripted(t, box, map[string][]string{"r.m": {"fickle", tt.next}}, nil)
			if tt.next == "grumpy" {
				patchPolicy(t, r, `{"fixtures_enabled": false}`)
			}
			_, call := conversation(t, r, sessions.Request{Role: "r"})
			call("m", "fine")
			reason := "nicer"
			operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", ForceRegenerate: &reason})
			wantReply(t, "forging fails", call("m", tt.arg), tt.want)
			a := artifactOf(t, r, "r", "m")
			if c := a.Correction; c == nil || c.State != tt.state || c.LastError == nil || *c.LastError != tt.last ||
				c.Attempts != 1 {
				t.Errorf("the correction is %s", agent.Encoded(c))
			}
			asked := model.Count("r.m", "")
			wantReply(t, "during the delay", call("m", "fine"), "1 persisted")
			if n := model.Count("r.m", ""); n != asked || a.Code != "fickle" {
				t.Errorf("%d requests more, %s serves", n-asked, a.Code)
			}
		})
	}
}

// Refused programs are repaired from the budget for guardrails, and each is logged once.
func TestGuardrails(t *testing.T) {
	t.Parallel()
	for budget, want := range map[int]string{0: "invalid_code none", 1: "invalid_code none", 2: "1 generated",
		3: "1 generated"} {
		box := &runtimetest.Box{Programs: scriptedPrograms(),
			Refused: map[string]*sandbox.Failure{"refused": {Type: agent.ErrInvalidCode, Message: "undefined: x"}}}
		r, model := scripted(t, box, map[string][]string{"r.m": {"refused", "refused", "one"}}, nil)
		patchPolicy(t, r, fmt.Sprintf(`{"guardrail_recovery_budget": %d}`, budget))
		_, call := conversation(t, r, sessions.Request{Role: "r"})
		got := call("m")
		wantReply(t, fmt.Sprint("budget ", budget), got, want)
		used := min(budget, 2)
		e := logOf(t, r, got.CallID)
		refused := min(budget+1, 2)
		if e.GuardrailRecoveryAttempts != used || len(e.AttemptFailures) != refused ||
			e.RetryFeedbackInjected != (used > 0) || model.Count("r.m", "") != used+1 {
			t.Errorf("budget %d: %d recoveries, %d refusals, feedback %v, %d requests", budget,
				e.GuardrailRecoveryAttempts, len(e.AttemptFailures), e.RetryFeedbackInjected, model.Count("r.m", ""))
		}
	}
}

// A call's log holds the first of its failures.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: scriptedPrograms()}
	r, _ := scripted(t, box, map[string][]string{"r.m": {"boom"}}, nil)
	patchPolicy(t, r, `{"execution_repair_budget": 10}`)
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	got := call("m")
	e := logOf(t, r, got.CallID)
	if len(e.AttemptFailures) != forge.MaxFailures || e.AttemptFailures[0].AttemptID != got.CallID+".1" ||
		e.ExecutionRepairAttempts != 10 || got.Attempts != 11 || e.AttemptID != got.CallID+".11" {
		t.Errorf("%d failures of %d attempts are logged, the last attempt is %s", len(e.AttemptFailures), got.Attempts,
			e.AttemptID)
	}
	var failures []agent.AttemptFailure
	for i, want := range []int{5, 8, 8} {
		if failures = forge.AppendFailures(failures, make([]agent.AttemptFailure, 5)); len(failures) != want {
			t.Errorf("%d times five: %d failures, want %d", i+1, len(failures), want)
		}
	}
}

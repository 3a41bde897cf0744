package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// The reply, the record and the log of a call with a forged program, and with a stored one.
func TestReplyRecordAndLog(t *testing.T) {
	t.Parallel()
	facts := report.Facts{UsesArgs: true, Engine: "ssa 1", CapabilityPatterns: []string{"http_fetch"},
		HistoryPatterns: []string{"filter"}}
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"reads": fetched("rss", 200, runtimetest.Returns("1")),
		"none": runtimetest.Returns(`{"status":"empty"}`)}, Facts: map[string]report.Facts{"reads": facts}}
	r, model := scripted(t, box, map[string][]string{"r.m": {"reads"}, "r.none": {"none"}}, nil)
	id, _ := conversation(t, r, sessions.Request{Role: "r", Model: "other-model"})
	call := func(q CallRequest) (Reply, agent.LogEntry, agent.Record) {
		q.SessionID = id
		res, err := r.Call(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var reply Reply
		if err := json.Unmarshal(res.Body, &reply); err != nil {
			t.Fatal(err)
		}
		records := historyOf(t, r, id)
		return reply, logOf(t, r, reply.CallID), records[len(records)-1]
	}
	for _, hit := range []bool{false, true} {
		reply, e, rec := call(CallRequest{Method: "m", Args: texts("7"),
			Kwargs: json.RawMessage(`{"token":"hunter2"}`)})
		if p := reply.Program; p.ArtifactHit != hit || p.Engine != report.EngineSSA || p.Tier != sandbox.TierEngine ||
			p.Generation != "gen-1" || p.Trigger != "initial_forge" || p.Checksum != agent.Checksum("reads") {
			t.Errorf("hit %v: the reply says %+v", hit, p)
		}
		if rec.ArtifactHit != hit || rec.OutcomeSummary.SourceCount != 1 ||
			rec.OutcomeSummary.PrimaryURI != "https://feed.example/rss?q=1" ||
			string(rec.Kwargs) != `{"token":"[masked]"}` {
			t.Errorf("hit %v: the record says %+v", hit, rec)
		}
		if e.ArtifactHit != hit || (e.Code == "") != hit || e.ProgramEngine != "ssa" ||
			len(e.CapabilityPatterns) != 1 || len(e.HistoryQueryPatterns) != 1 || e.WeakSuccess ||
			e.ContractSource != "none" || e.ContractFingerprint != agent.FingerprintNone || e.Model != "other-model" ||
			e.Replayable || agent.ReasonCode(e.ReplayableReason) != "masked_input" ||
			!e.Cacheable || e.CacheabilityReason != forge.CacheStable || e.UserCorrectionDetected ||
			e.OutcomeValueClass != "number" {
			t.Errorf("hit %v: the log says %s", hit, agent.Encoded(e))
		}
	}
	if q := model.Requests()[0]; q.Model != "other-model" {
		t.Errorf("the model asked is %s", q.Model)
	}
	events, err := r.env.Store.Patterns(t.Context(), "r")
	if err != nil || len(events) != 2 || events[0].WeakSuccess || events[0].Status != agent.StatusOK {
		t.Errorf("patterns %+v, %v", events, err)
	}
	reply, e, _ := call(CallRequest{Method: "none", Args: texts(`"rain in Spain"`)})
	if !e.WeakSuccess || len(e.WeakSuccessReasons) == 0 || e.UserCorrectionDetected || !e.Replayable {
		t.Errorf("a weak success is logged as %s", agent.Encoded(e))
	}
	_, e, _ = call(CallRequest{Method: "none", Args: texts(`"rain in Spain"`)})
	if !e.UserCorrectionDetected || e.UserCorrectionSignal != evolve.SignalReask ||
		e.UserCorrectionReferenceCallID != reply.CallID {
		t.Errorf("the same question again is logged as %s", agent.Encoded(e))
	}
	if events, err := r.env.Store.Patterns(t.Context(), "r"); err != nil || len(events) != 4 {
		t.Errorf("%d patterns with the weak ones, %v", len(events), err)
	}
	_, e, rec := call(CallRequest{Method: "missing"})
	if rec.ProgramSource != agent.SourceNone || rec.ErrorType != agent.ErrProvider ||
		rec.OutcomeSummary.ContentRef != "" || e.ReplayableReason != "no program ran" || e.WeakSuccess ||
		e.FailureClass != agent.ClassExtrinsic {
		t.Errorf("a call without a program: record %+v, log %s", rec, agent.Encoded(e))
	}
}

// Values that are too large are not kept for follow-ups. A bound of 0 is none.
func TestKeptContent(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"five": runtimetest.Returns(`"abc"`)}}
	r, _ := scripted(t, box, map[string][]string{"r.m": {"five"}}, nil)
	id, call := conversation(t, r, sessions.Request{Role: "r"})
	for patch, kept := range map[string]bool{`{"retention": {"content_bytes": 5}}`: true,
		`{"retention": {"content_bytes": 4}}`:                       false,
		`{"retention": {"content_bytes": 0}}`:                       true,
		`{"retention": {"content_bytes": 5, "content_entries": 0}}`: true} {
		patchPolicy(t, r, `{"retention": {"content_entries": 8}}`)
		patchPolicy(t, r, patch)
		call("m")
		records := historyOf(t, r, id)
		s := records[len(records)-1].OutcomeSummary
		if (s.ContentRef != "") != kept || kept && (s.ContentBytes != 5 || s.ContentKind != "string" ||
			!strings.HasPrefix(s.ContentDigest, "sha256:")) {
			t.Errorf("%s: %+v", patch, s)
		}
	}
}

// The request describes the call, earlier attempts and the program to replace.
func TestRequests(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: scriptedPrograms(),
		Refused: map[string]*sandbox.Failure{"refused": {Type: agent.ErrInvalidCode, Message: "undefined: x",
			Hint: "declare x"}}}
	box.Programs["hinted"] = func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
		return sandbox.Result{Failure: &sandbox.Failure{Type: agent.ErrExecution, Message: "boom",
			Hint: "check the index", Detail: "index"}}
	}
	r, model := scripted(t, box, map[string][]string{"r.m": {"refused", "hinted", "one", "two"}}, nil)
	patchPolicy(t, r, `{"redact_keys": ["password"]}`)
	id, _ := conversation(t, r, sessions.Request{Role: "r", Context: json.RawMessage(`{"topic":"tides"}`)})
	ask := func(contract *agent.Contract) {
		if _, err := r.Call(t.Context(), CallRequest{SessionID: id, Method: "m",
			Kwargs: json.RawMessage(`{"password":"hunter2","n":7}`), Contract: contract}); err != nil {
			t.Fatal(err)
		}
	}
	ask(nil)
	reason := "faster, please"
	operate(t, r, agent.ArtifactChange{Role: "r", MethodName: "m", ForceRegenerate: &reason})
	ask(&agent.Contract{Purpose: "measures", Deliverable: json.RawMessage(`{"type":"number"}`)})
	requests := model.Requests()
	if len(requests) != 4 {
		t.Fatalf("%d requests, want 4", len(requests))
	}
	has := func(i int, want bool, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if text := lastUser(requests[i]); strings.Contains(text, part) != want {
				t.Errorf("request %d has %q: %v\n%s", i, part, !want, text)
			}
		}
	}
	has(0, true, "topic", `"n":7`, "[masked]")
	has(0, false, "hunter2", "tides", "<failed_code>", "faster, please", "<input_history>")
	has(1, true, "<failed_code>", "undefined: x", "declare x")
	has(2, true, "execution: boom", "check the index", "undefined: x")
	has(3, true, "faster, please", "measures")
	if e := logOf(t, r, historyOf(t, r, id)[0].CallID); len(e.AttemptFailures) != 2 ||
		e.AttemptFailures[1].Metadata["detail"] != "index" || e.AttemptFailures[1].Hint != "check the index" ||
		!e.RetryFeedbackInjected {
		t.Errorf("the log of the first call: %s", agent.Encoded(e.AttemptFailures))
	}
}

// An exhausted outcome of a stored method counts against its promotion.
func TestExhaustionCounts(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{Programs: scriptedPrograms()}
	box.Programs["fits"] = on("bad", runtimetest.Returns(`"text"`), runtimetest.Returns("1"))
	box.Programs["never"] = runtimetest.Returns(`"text"`)
	r, _ := scripted(t, box, map[string][]string{"r.m": {"fits", "never"}}, nil)
	patchPolicy(t, r, `{"fixtures_enabled": false}`)
	_, call := conversation(t, r, sessions.Request{Role: "r",
		Contract: &agent.Contract{Deliverable: json.RawMessage(`{"type":"number"}`)}})
	call("m", "fine")
	got := call("m", "bad")
	if got.Outcome.ErrorType != agent.ErrContractViolation || got.Outcome.Metadata["boundary"] != outcomeBoundary {
		t.Errorf("got %+v", got.Outcome)
	}
	if s := artifactOf(t, r, "r", "m").Scorecard; s.OutcomeRepairExhausted != 1 || s.GuardrailExhausted != 0 {
		t.Errorf("the scorecard is %+v", s)
	}
}

// The same call id gives a program the same randomness, another id another; the numbers are those of FNV-1a.
func TestSeed(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]uint64{"": 14695981039346656037, "a": 12638187200555641996,
		"foobar": 9625390261332436968} {
		if got := attempt.Seed(id); got != want {
			t.Errorf("Seed(%q) = %d, want %d", id, got, want)
		}
	}
}

package why

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/store"
)

// answered is a call that a stored program answered, with the method's artifact.
func answered() *Input {
	in := inputOf(agent.LogEntry{CallID: "call_1", Timestamp: "2026-11-22T10:00:00.000Z", Role: "r", Method: "m",
		Args: []json.RawMessage{json.RawMessage("1")}, OutcomeStatus: agent.StatusOK,
		ProgramSource: agent.SourcePersisted, Generation: "gen-1", Replayable: true,
		Selection: agent.Selection{Decision: agent.DecideRun, Reason: selection.ReasonHealthy, Generation: "gen-1"}})
	in.Call.Outcome = &agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage("1")}
	in.Artifact = &agent.Artifact{SchemaVersion: agent.SchemaVersion, CurrentID: "gen-1", Quarantined: true,
		Generations: []*agent.Generation{
			{ID: "gen-1", RuntimeVersion: agent.ABI, Cacheable: true,
				CreatedAt: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}}}
	return in
}

// Requests that the asker's token may not send are not offered, and a verdict that would be a proposal is named so.
func TestStepsOfTheAsker(t *testing.T) {
	t.Parallel()
	const verdict, examples, replay, release, regenerate = "/v1/calls/call_1/verdict", "/v1/tools/r/methods/m/examples",
		"/v1/calls/call_1/replay", "/v1/tools/r/methods/m/release", "/v1/tools/r/methods/m/regenerate"
	for _, c := range []struct {
		name     string
		asker    Asker
		want     []string
		proposal bool
	}{
		{"read", Asker{}, []string{examples}, false},
		{"read and call", Asker{Call: true}, []string{verdict, verdict, replay, examples}, true},
		{"read and operate", Asker{Operate: true}, []string{examples, release, regenerate}, false},
		{"all", Asker{Call: true, Operate: true}, []string{verdict, verdict, replay, examples, release, regenerate},
			false},
	} {
		in := answered()
		in.Asker = c.asker
		got, proposal := []string{}, false
		for _, s := range Explain(in).Next {
			got = append(got, s.Path)
			proposal = proposal || strings.Contains(s.Name, "propose")
		}
		if !slices.Equal(got, c.want) || proposal != c.proposal {
			t.Errorf("%s: got %q, proposals %v; want %q, %v", c.name, got, proposal, c.want, c.proposal)
		}
	}
	in := answered()
	in.Call.Log.Verdict, in.Artifact.Verdicts = agent.VerdictRight,
		[]agent.Verdict{{CallID: "call_1", Verdict: agent.VerdictRight, State: agent.ExampleActive}}
	withdraws := func(asker Asker) bool {
		in.Asker = asker
		return slices.ContainsFunc(Explain(in).Next, func(s Step) bool { return s.Method == "DELETE" })
	}
	if withdraws(Asker{Call: true}) || !withdraws(Asker{Call: true, Operate: true}) {
		t.Error("a verdict in force is withdrawn with the right to operate only")
	}
	// the log contains only verdicts in force
	in.Call.Log.Verdict, in.Artifact.Verdicts[0].State = "", agent.ExampleProposed
	if x := Explain(in); !withdraws(Asker{Call: true}) || !strings.Contains(x.Text(nil),
		"judgement: somebody proposed that it is right; nobody who may operate has decided yet") {
		t.Errorf("a proposal: %+v\n%s", x.Next, x.Text(nil))
	}
	if steps := Explain(in).Next; slices.ContainsFunc(steps,
		func(s Step) bool { return string(s.Body) == `{"verdict":"right"}` }) {
		t.Errorf("who proposed that it is right is offered the same again: %+v", steps)
	}
}

// A program's own error can be judged right even if the program was not kept. Judging it wrong needs an expectation,
// which only the asker has.
func TestStepsWithoutAProgram(t *testing.T) {
	t.Parallel()
	in := answered()
	in.Asker = Asker{Call: true, Operate: true}
	in.Artifact, in.Call.Log.OutcomeStatus, in.Call.Log.OutcomeAuthored = nil, agent.StatusError, true
	bodies := func() (all []string) {
		for _, s := range Explain(in).Next {
			all = append(all, string(s.Body))
		}
		return all
	}
	if got, want := bodies(), []string{`{"verdict":"right"}`, `{}`}; !slices.Equal(got, want) {
		t.Errorf("an error that the program returned: %q, want %q", got, want)
	}
	in.Call.Log.OutcomeAuthored = false
	if got, want := bodies(), []string{`{}`}; !slices.Equal(got, want) {
		t.Errorf("a failure: %q, want %q", got, want)
	}
}

// If another policy leads to the same selection but to another end, the page describes that instead of "no change".
func TestWhatFollowsFromAnotherPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, flip, want string
		change           func(e *agent.LogEntry, p *agent.Policy)
	}{
		{"a first program", "approval_required",
			"with approval_required=true the program that the model wrote would have waited for a person's approval",
			func(e *agent.LogEntry, _ *agent.Policy) {
				e.ProgramSource, e.Selection = agent.SourceGenerated, agent.Selection{Decision: agent.DecideForge,
					Reason: selection.ReasonMissing}
			}},
		{"one that waits", "approval_required",
			"with approval_required=false the program that the model wrote would have answered without a person's approval", func(e *agent.LogEntry, p *agent.Policy) {
				p.ApprovalRequired = true
				e.ProgramSource, e.Selection, e.OutcomeStatus, e.OutcomeErrorType = agent.SourceNone,
					agent.Selection{Decision: agent.DecideForge, Reason: selection.ReasonMissing}, agent.StatusError,
					agent.ErrDenied
			}},
		{"a repaired one", "repair_enabled",
			"with repair_enabled=false when it failed the model would have written a new program instead of repairing it", func(e *agent.LogEntry, _ *agent.Policy) {
				e.ProgramSource, e.Generation = agent.SourceRepaired, "gen-2"
			}},
	} {
		in := answered()
		c.change(&in.Call.Log, in.Policy)
		x := Explain(in)
		i := slices.IndexFunc(x.Counterfactuals, func(f Counterfactual) bool { return f.Switch == c.flip })
		if i < 0 || x.Counterfactuals[i].Then == "" || x.Counterfactuals[i].Changes {
			t.Errorf("%s: %+v", c.name, x.Counterfactuals)
			continue
		}
		row := x.Counterfactuals[i].Then + "\n"
		if page := x.Text(nil); !strings.Contains(x.Summary, c.want) || !strings.Contains(page, ": "+row) ||
			strings.Contains(x.Summary, "No other setting") {
			t.Errorf("%s:\n%s", c.name, page)
		}
	}
	unwritten := answered()
	unwritten.Call.Log.ProgramSource, unwritten.Call.Log.Generation, unwritten.Call.Log.Selection = agent.SourceNone,
		"", agent.Selection{Decision: agent.DecideForge, Reason: selection.ReasonMissing}
	unwritten.Artifact, unwritten.Call.Outcome = nil, &agent.Outcome{Status: agent.StatusError,
		ErrorType: agent.ErrBudgetExceeded, Metadata: map[string]any{"resets_at": "2026-11-23T00:00:00Z"}}
	x := Explain(unwritten)
	if slices.ContainsFunc(x.Counterfactuals, func(f Counterfactual) bool { return f.Then != "" }) ||
		!slices.ContainsFunc(x.Next, func(s Step) bool { return s.Path == "/v1/usage" }) {
		t.Errorf("a call over a cap: %+v, %+v", x.Counterfactuals, x.Next)
	}
	if x := Explain(answered()); slices.ContainsFunc(x.Counterfactuals,
		func(f Counterfactual) bool { return f.Then != "" && f.Switch != "approval_required" }) {
		t.Errorf("a warm call: %+v", x.Counterfactuals)
	}
}

// If nothing ran, the page claims no confinement. Requests without figures do not count as free.
func TestNothingRan(t *testing.T) {
	t.Parallel()
	in := inputOf(agent.LogEntry{CallID: "call_1", Timestamp: "2026-11-22T10:00:00.000Z", Role: "r", Method: "m",
		OutcomeStatus: agent.StatusError, OutcomeErrorType: agent.ErrProvider, SandboxLevel: "full",
		ProgramSource: agent.SourceNone, Usage: agent.Usage{ModelRequests: 4},
		Selection: agent.Selection{Decision: agent.DecideForge, Reason: selection.ReasonMissing},
		AttemptFailures: []agent.AttemptFailure{{AttemptID: "call_1.v", Stage: "validation",
			ErrorType: agent.ErrInvalidCode}}})
	in.Price = func(string, agent.Usage) (float64, string, bool) { return 0, "EUR", true }
	confined := func(x *Explanation) bool {
		return slices.ContainsFunc(x.Checks, func(c Check) bool { return c.Name == "confinement" })
	}
	x := Explain(in)
	if confined(x) || x.Cost.Money != nil || !strings.Contains(x.Summary,
		"4 model requests, for which no tokens were reported.") || strings.Contains(x.Summary, "EUR") {
		t.Errorf("got %+v\n%s", x.Cost, x.Summary)
	}
	in.Call.Log.Role = "" // as of a prediction outside of sessions
	if x := Explain(in); !strings.HasPrefix(x.Summary, "m ended in the error provider") {
		t.Errorf("without a role: %s", x.Summary)
	}
	in.Call.Log.AttemptFailures[0].Stage = "execution"
	in.Call.Log.Usage.PromptTokens = 7
	if x := Explain(in); !confined(x) || x.Cost.Money == nil ||
		!strings.Contains(x.Summary, "7 tokens, which cost at most") {
		t.Errorf("a program ran and failed: %+v\n%s", x.Cost, x.Summary)
	}
}

// A program that did not run, since the arguments do not fit it, is not called one that ran, also when the session is
// deleted.
func TestArgumentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	in := ended(agent.ErrInvalidInput, "the value is missing")
	e := &in.Call.Log
	e.ReplayableReason, e.SandboxLevel, e.Selection.Reason = agent.ReasonNoProgram, "full", selection.ReasonHealthy
	for range 2 {
		x := Explain(in)
		confined := slices.ContainsFunc(x.Checks, func(c Check) bool { return c.Name == "confinement" })
		fetched := slices.ContainsFunc(x.NotRecorded, func(n string) bool { return strings.Contains(n, "fetched") })
		if confined || fetched || strings.Contains(x.Summary, "gen-1 ran") ||
			!strings.Contains(x.Summary, "so its program did not run") ||
			!strings.Contains(x.Summary, "It did not run, since the arguments do not fit it.") {
			t.Errorf("got %+v, %v\n%s", x.Checks, x.NotRecorded, x.Summary)
		}
		store.EraseLog(e)
	}
}

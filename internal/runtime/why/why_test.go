package why

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// hostile is text that would forge a line, an escape sequence, a heading, a link or a tag if it was not quoted.
const hostile = "x\n\nWhat to do next\n  safe: curl evil\x1b[2J\u202e\u2028<script>`[a](http://evil.example)` **b**"

// reselect is the selection without the runtime's knowledge about programs.
func reselect(in selection.Input) selection.Decision {
	in.ImportAllowed = func(string) bool { return true }
	in.IgnoresArgs = func(*agent.Generation) bool { return false }
	in.Intact = func(*agent.Generation) bool { return true }
	return selection.Select(in)
}

func inputOf(e agent.LogEntry) *Input {
	p := agent.DefaultPolicy()
	in := &Input{Asker: Asker{Call: true, Operate: true}, Policy: &p, PolicyKnown: true, PolicyNow: &p,
		Select: reselect}
	in.Call.Log = e
	return in
}

// Whatever others wrote, the pages contain only printable characters and their own lines.
func TestHostileText(t *testing.T) {
	t.Parallel()
	args, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	e := agent.LogEntry{CallID: "call_1", Timestamp: "2026-11-22T10:00:00.000Z", Role: hostile, Method: hostile,
		Args:          []json.RawMessage{args, json.RawMessage("[\n1,\n2]")},
		OutcomeStatus: agent.StatusError, OutcomeErrorType: hostile, OutcomeErrorMessage: hostile,
		OutcomeAuthored: true, ContractValidationApplied: true,
		ContractValidationMismatch: hostile, WeakSuccess: true, WeakSuccessReasons: []string{hostile},
		CorrectedBy: hostile, ProgramSource: agent.SourcePersisted, Generation: "gen-1",
		Selection: agent.Selection{Decision: agent.DecideRun, Reason: hostile, Generation: "gen-1"},
		AttemptFailures: []agent.AttemptFailure{{AttemptID: hostile, Stage: hostile, ErrorType: hostile,
			ErrorMessage: hostile}}}
	in := inputOf(e)
	in.Methods = []string{hostile, "other" + hostile}
	in.Nested = []agent.LogEntry{{CallID: hostile, Role: hostile, Method: hostile, OutcomeErrorType: hostile}}
	in.Artifact = &agent.Artifact{SchemaVersion: agent.SchemaVersion, CurrentID: "gen-2",
		Generations: []*agent.Generation{
			{ID: "gen-2", Trigger: "operator:" + hostile, RuntimeVersion: agent.ABI, Cacheable: true},
			{ID: "gen-1", Trigger: hostile, RuntimeVersion: agent.ABI, Cacheable: true}}}
	x := Explain(in)
	x.Effects = []sandbox.Done{{Kind: hostile, Target: "GET " + hostile, Error: hostile}}
	for name, page := range map[string]string{"text": x.Text(nil), "markdown": x.Markdown(), "summary": x.Summary} {
		if strings.ContainsFunc(page, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%s: unprintable characters:\n%q", name, page)
		}
		if n := strings.Count("\n"+page, "\n  safe:") + strings.Count("\n"+page, "\n- safe:"); n > 0 {
			t.Errorf("%s: %d forged lines:\n%s", name, n, page)
		}
		if n := strings.Count("\n"+page, "\nWhat to do next\n"); n > 1 {
			t.Errorf("%s: a forged heading:\n%s", name, page)
		}
	}
	page := x.Markdown()
	for _, raw := range []string{"<script>", "[a](", " **b**", "http://evil"} {
		if strings.Contains(strings.ReplaceAll(page, `\`+raw, ""), raw) {
			t.Errorf("Markdown of somebody else: %q in\n%s", raw, page)
		}
	}
}

// Each changed switch is passed through the real selection, which shows whether the decision changes.
func TestCounterfactuals(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	in := inputOf(agent.LogEntry{CallID: "call_1", Timestamp: "2026-11-22T10:00:00.000Z", Role: "r", Method: "m",
		OutcomeStatus: agent.StatusOK, ProgramSource: agent.SourcePersisted,
		Generation: "gen-1", Selection: agent.Selection{Decision: agent.DecideRun, Reason: selection.ReasonHealthy,
			Generation: "gen-1"}})
	in.Artifact = &agent.Artifact{SchemaVersion: agent.SchemaVersion, CurrentID: "gen-1", Quarantined: true,
		Generations: []*agent.Generation{{ID: "gen-1", RuntimeVersion: agent.ABI, Cacheable: true, CreatedAt: at}}}
	x := Explain(in)
	if !x.Selection.Same || x.Selection.Again.Decision != agent.DecideRun {
		t.Errorf("a quarantine since the call counts: %+v", x.Selection)
	}
	want := map[string]string{"artifact_read_enabled": "forge", "artifact_read_roles": "forge",
		"force_generation": "forge", "repair_enabled": "", "approval_required": "refuse",
		"promotion.enforce": "", "correction": "", "dispatch_methods": "forge"}
	for _, c := range x.Counterfactuals {
		decision, known := want[c.Switch]
		if !known || c.Changes != (decision != "") || decision != "" && c.Decision != decision {
			t.Errorf("%s=%v: %s, changes %v, want %q", c.Switch, c.Value, c.Decision, c.Changes, decision)
		}
		delete(want, c.Switch)
	}
	if len(want) > 0 {
		t.Errorf("not flipped: %v", want)
	}
	if in.Artifact.Quarantined != true || in.PolicyNow.ForceGeneration {
		t.Error("the explanation changed what it was given")
	}
}

// Missing data is listed, and the selection is not repeated without it.
func TestErased(t *testing.T) {
	t.Parallel()
	x := Explain(inputOf(agent.LogEntry{CallID: "call_1", Timestamp: "2026-11-22T10:00:00.000Z", Role: "r", Method: "m",
		OutcomeStatus: agent.StatusOK, ProgramSource: agent.SourcePersisted,
		Generation: "gen-1", Selection: agent.Selection{Decision: agent.DecideRun, Reason: selection.ReasonHealthy,
			Generation: "gen-1"}}))
	if x.Selection.Again != nil || len(x.Counterfactuals) > 0 || len(x.NotRecorded) != 2 {
		t.Errorf("got %+v, %v", x.Selection, x.NotRecorded)
	}
}

func TestArgument(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"add": "add", "": "''", "a b": "'a b'", "it's": `'it'\''s'`,
		"$(x)": "'$(x)'", "a;b": "'a;b'"} {
		if got := Argument(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

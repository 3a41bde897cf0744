package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

// Traces of a call in an artifact, or in another call's entry, are removed from public copies but not from the
// original.
func TestWithoutWhatIsOfOthers(t *testing.T) {
	t.Parallel()
	const canary = "canary"
	said, texts := canary, []json.RawMessage{json.RawMessage(`"` + canary + `"`)}
	a := &Artifact{Role: "r", LastFailureReason: canary, Scorecard: Scorecard{Sessions: []string{canary}},
		Rejections: []Rejection{{CallID: canary, Stage: "proof", Reason: canary, Hint: canary, Fixture: canary}},
		Displaced:  []Displaced{{Generations: []*Generation{{ChangedAnswers: []ChangedAnswer{{Args: texts}}}}}},
		Verdicts:   []Verdict{{CallID: canary, Args: texts}},
		Correction: &Correction{State: CorrectionFailed, LastError: &said}, Failures: []Failure{{Message: canary}},
		Drifts: []Drift{{}},
		Generations: []*Generation{{ID: "gen-1", ChangedAnswers: []ChangedAnswer{{CallID: canary, Args: texts}},
			Shapes: map[string]string{canary: "x"}, Outlines: map[string]string{canary: "x"},
			Answered: []string{canary}, Fixtures: []Fixture{{CallID: canary, Args: texts}}}}}
	e := LogEntry{UserPrompt: canary, OutcomeErrorMetadata: map[string]any{"fixture": canary, "kept": 1},
		AttemptFailures: []AttemptFailure{{ErrorType: "execution", Metadata: map[string]any{"fixture": canary}}}}
	before := string(Encoded(a)) + string(Encoded(e))
	shared, own := a.WithoutCalls(), e.WithoutOthers()
	if got := string(Encoded(shared)) + string(Encoded(own)); strings.Contains(got, canary) {
		t.Errorf("left: %s", got)
	}
	if after := string(Encoded(a)) + string(Encoded(e)); after != before {
		t.Errorf("changed to %s", after)
	}
	if len(shared.Rejections) != 1 || shared.Rejections[0].Stage != "proof" ||
		len(shared.Generations[0].Fixtures) != 1 || shared.Correction.State != CorrectionFailed ||
		own.OutcomeErrorMetadata["kept"] != 1 {
		t.Errorf("lost: %s, %s", Encoded(shared), Encoded(own))
	}
}

package runtime

import (
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
)

// The caller's outcome of an exhausted call depends on the stage at which its last attempt ended.
func TestExhausted(t *testing.T) {
	t.Parallel()
	type reply struct{ errorType, boundary, class, subtype string }
	tests := []struct {
		name, stage, errorType string
		want                   reply
	}{
		{"no Go", attempt.StageValidation, agent.ErrInvalidCode, reply{agent.ErrInvalidCode, guardrailBoundary,
			agent.ErrInvalidCode, "does_not_compile"}},
		{"a forbidden import", attempt.StageValidation, agent.ErrDependencyPolicy,
			reply{agent.ErrGuardrailExhausted, guardrailBoundary, agent.ErrDependencyPolicy, "import_not_allowed"}},
		{"a foreign state", attempt.StageValidation, agent.ErrToolRegistry,
			reply{agent.ErrGuardrailExhausted, guardrailBoundary, agent.ErrToolRegistry, "foreign_state_mutation"}},
		{"a broken fixture", attempt.StageProof, agent.ErrExecution, reply{agent.ErrOutcomeRepairExhausted,
			outcomeBoundary, "",
			""}},
		{"a broken contract", attempt.StageOutcome, agent.ErrContractViolation,
			reply{agent.ErrContractViolation, outcomeBoundary, "", ""}},
		{"a panic", attempt.StageExecution, agent.ErrExecution, reply{agent.ErrExecution, executionBoundary, "", ""}},
	}
	recoveries := map[string]forge.Ledger{
		"a repair":             {RepairAttempted: true},
		"a guardrail recovery": {Cost: forge.Cost{Guardrails: 1}},
		"an execution repair":  {ExecutionRepairs: 1},
		"an outcome repair":    {OutcomeRepairs: 1},
		"two failures":         {Failures: make([]agent.AttemptFailure, 2)},
	}
	exhaust := func(depth int, tried forge.Ledger, stage, errorType string) (agent.Outcome, agent.Outcome) {
		o := agent.Failed(errorType, "secret of the program")
		o.Metadata = map[string]any{"detail": "index"}
		return o, exhausted(judge.Judged{Stage: stage, Outcome: o}, depth, &tried)
	}
	for _, tt := range tests {
		for what, tr := range recoveries {
			o, got := exhaust(0, tr, tt.stage, tt.errorType)
			text := func(key string) string { s, _ := got.Metadata[key].(string); return s }
			is := reply{got.ErrorType, text("boundary"), text("guardrail_class"), text("guardrail_subtype")}
			if is != tt.want || got.ErrorMessage != exhaustedMessage || text("raw_error_type") != tt.errorType ||
				text("raw_error_message") != "secret of the program" || text("detail") != "index" ||
				got.Retriable != agent.Retriable(got.ErrorType) {
				t.Errorf("%s after %s: got %+v", tt.name, what, got)
			}
			if len(o.Metadata) != 1 {
				t.Errorf("%s: the attempt's own metadata changed: %v", tt.name, o.Metadata)
			}
		}
		if o, got := exhaust(1, forge.Ledger{RepairAttempted: true}, tt.stage,
			tt.errorType); got.ErrorMessage != o.ErrorMessage || got.ErrorType != tt.errorType {
			t.Errorf("%s: a program that called another gets %+v", tt.name, got)
		}
		_, got := exhaust(0, forge.Ledger{Failures: make([]agent.AttemptFailure, 1)}, tt.stage, tt.errorType)
		if plain := got.ErrorMessage != exhaustedMessage; plain == policyBreach(tt.errorType) {
			t.Errorf("%s at the first attempt: got %+v", tt.name, got)
		}
	}
}

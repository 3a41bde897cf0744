package runtime

import (
	"maps"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
)

// exhaustedMessage is what a client gets for a call that used up its retries. It is fixed, so it reveals nothing about
// a program or about other calls.
const exhaustedMessage = "This request couldn't be completed after multiple attempts."

// Boundaries that normalise outcomes, as metadata names them.
const (
	guardrailBoundary = "guardrail_exhaustion_boundary_v1"
	outcomeBoundary   = "outcome_exhaustion_boundary_v1"
	executionBoundary = "execution_exhaustion_boundary_v1"
)

// exhausted returns the outcome, as its caller gets it, of a call that has no retries left in the attempt's stage. A
// program that calls another one gets the original error, so that it can react. A client gets the same message whatever
// happened. The details are in the metadata and in the log.
//
// The error type follows the evidence: a broken contract stays a contract_violation with all findings of the contract's
// check, and an invalid_code or a panic stays as it is. Two cases get a type of their own, because their causes do not
// concern clients: programs that the gate's policy refused, and programs that answered earlier calls differently from
// their predecessors.
func exhausted(a judge.Judged, depth int, tried *forge.Ledger) agent.Outcome {
	o := a.Outcome
	if depth > 0 || !policyBreach(o.ErrorType) && !tried.Recovered() {
		return o
	}
	public := o
	public.ErrorMessage, public.Metadata = exhaustedMessage, map[string]any{}
	public.Authored = false // the daemon refused to accept the error as the program's answer
	maps.Copy(public.Metadata, o.Metadata)
	public.Metadata["raw_error_type"], public.Metadata[agent.RawMessageKey] = o.ErrorType, agent.Clip(o.ErrorMessage,
		400)
	switch a.Stage {
	case attempt.StageValidation:
		public.Metadata["boundary"] = guardrailBoundary
		public.Metadata["guardrail_class"], public.Metadata["guardrail_subtype"] = o.ErrorType,
			guardrailSubtype(o.ErrorType)
		if policyBreach(o.ErrorType) {
			public.ErrorType, public.Retriable = agent.ErrGuardrailExhausted,
				agent.Retriable(agent.ErrGuardrailExhausted)
		}
	case attempt.StageProof:
		public.Metadata["boundary"] = outcomeBoundary
		public.ErrorType, public.Retriable = agent.ErrOutcomeRepairExhausted,
			agent.Retriable(agent.ErrOutcomeRepairExhausted)
	case attempt.StageOutcome:
		public.Metadata["boundary"] = outcomeBoundary
	default:
		public.Metadata["boundary"] = executionBoundary
	}
	return public
}

// lastMessage returns the message of the last failure, even if the client got exhaustedMessage instead.
func lastMessage(o agent.Outcome) string {
	if raw, said := o.Metadata[agent.RawMessageKey].(string); said {
		return raw
	}
	return o.ErrorMessage
}

// policyBreach reports whether the gate refused a program for what it tries to do, rather than for not being valid Go.
func policyBreach(errorType string) bool {
	return errorType == agent.ErrToolRegistry || errorType == agent.ErrDependencyPolicy
}

// guardrailSubtype names the gate's rule that a program broke.
func guardrailSubtype(errorType string) string {
	switch errorType {
	case agent.ErrDependencyPolicy:
		return "import_not_allowed"
	case agent.ErrToolRegistry:
		return "foreign_state_mutation"
	}
	return "does_not_compile"
}

package runtime

import (
	"maps"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// exhaustedMessage is what a client gets for a call whose recoveries were used up: words of
// our own, that hold nothing of a program and nothing of other calls.
const exhaustedMessage = "This request couldn't be completed after multiple attempts."

// Boundaries that normalise, as metadata names them.
const (
	guardrailBoundary = "guardrail_exhaustion_boundary_v1"
	outcomeBoundary   = "outcome_exhaustion_boundary_v1"
	executionBoundary = "execution_exhaustion_boundary_v1"
)

// exhausted is the outcome, as its caller gets it, of a call that has no retries left in the attempt's stage. A program
// that calls another gets the original error, so that it can react. A client learns that it did not work, in the same
// words whatever happened; what happened stands beside, in the metadata and in the log.
//
// The type stays what the evidence says: a contract that was broken is a contract_violation with all that the contract's
// check found, an invalid_code or a panic what it is. Two ends have a type of their own, for what ended them is
// no client's business: programs that the gate's policy refused, and programs that answered earlier calls otherwise than
// their predecessor.
func (rec *recovery) exhausted(a judged) agent.Outcome {
	o := a.outcome
	if rec.depth > 0 || !policyBreach(o.ErrorType) && !rec.recovered() {
		return o
	}
	public := o
	public.ErrorMessage, public.Metadata = exhaustedMessage, map[string]any{}
	maps.Copy(public.Metadata, o.Metadata)
	public.Metadata["raw_error_type"], public.Metadata["raw_error_message"] = o.ErrorType, Clip(o.ErrorMessage, 400)
	switch a.stage {
	case stageValidation:
		public.Metadata["boundary"] = guardrailBoundary
		public.Metadata["guardrail_class"], public.Metadata["guardrail_subtype"] = o.ErrorType,
			guardrailSubtype(o.ErrorType)
		if policyBreach(o.ErrorType) {
			public.ErrorType, public.Retriable = agent.ErrGuardrailExhausted,
				agent.Retriable(agent.ErrGuardrailExhausted)
		}
	case stageProof:
		public.Metadata["boundary"] = outcomeBoundary
		public.ErrorType, public.Retriable = agent.ErrOutcomeRepairExhausted,
			agent.Retriable(agent.ErrOutcomeRepairExhausted)
	case stageOutcome:
		public.Metadata["boundary"] = outcomeBoundary
	default:
		public.Metadata["boundary"] = executionBoundary
	}
	return public
}

// lastMessage is what the last failure said, also where the client got the words of exhausted instead.
func lastMessage(o agent.Outcome) string {
	if raw, said := o.Metadata["raw_error_message"].(string); said {
		return raw
	}
	return o.ErrorMessage
}

// recovered reports whether the call tried more than once.
func (rec *recovery) recovered() bool {
	t := &rec.trail
	return t.repairAttempted || t.guardrails+t.executionRepairs+t.outcomeRepairs > 0 || len(t.failures) > 1
}

// policyBreach reports whether the gate refused a program for what it wanted to do, not for being no Go.
func policyBreach(errorType string) bool {
	return errorType == agent.ErrToolRegistry || errorType == agent.ErrDependencyPolicy
}

// guardrailSubtype says which of the gate's rules a program broke.
func guardrailSubtype(errorType string) string {
	switch errorType {
	case agent.ErrDependencyPolicy:
		return "import_not_allowed"
	case agent.ErrToolRegistry:
		return "foreign_state_mutation"
	}
	return "does_not_compile"
}

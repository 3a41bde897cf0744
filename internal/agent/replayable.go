package agent

// Reasons why a call cannot be replayed: values of LogEntry.ReplayableReason, for people.
const (
	ReasonNoProgram     = "no program ran"
	ReasonMasked        = "inputs were masked"
	ReasonMaskedEffects = "effects were masked"
	ReasonHistory       = "the history came in by the context"
	ReasonManyEffects   = "too many effects to keep"
	ReasonErased        = "session deleted"
)

// reasonCodes maps the reasons to stable codes for clients. The wording of a reason may change.
var reasonCodes = map[string]string{
	ReasonNoProgram: "no_program", ReasonMasked: "masked_input", ReasonMaskedEffects: "masked_effects",
	ReasonHistory: "history_in_context", ReasonManyEffects: "too_many_effects", ReasonErased: "erased",
}

// ReasonCode returns the code of a reason, or "" for any other text.
func ReasonCode(reason string) string { return reasonCodes[reason] }

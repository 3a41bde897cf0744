package agent

// Reasons why a call cannot be replayed: the replayable_reason of its log entry, in words.
const (
	ReasonNoProgram     = "no program ran"
	ReasonMasked        = "inputs were masked"
	ReasonMaskedEffects = "effects were masked"
	ReasonHistory       = "the history came in by the context"
	ReasonManyEffects   = "too many effects to keep"
	ReasonErased        = "session deleted"
)

// reasonCodes are the reasons as clients can compare them: words may change.
var reasonCodes = map[string]string{
	ReasonNoProgram: "no_program", ReasonMasked: "masked_input", ReasonMaskedEffects: "masked_effects",
	ReasonHistory: "history_in_context", ReasonManyEffects: "too_many_effects", ReasonErased: "erased",
}

// ReasonCode is the code of one of these reasons, "" for another text.
func ReasonCode(reason string) string { return reasonCodes[reason] }

package forge

import (
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Failing describes the program that the model is asked to repair.
type Failing struct {
	Code, Checksum string
	Class          string       // intrinsic, adaptive, stale, degraded, unproven
	Reason         string       // from the trigger: an error type, or a selection's reason
	Message        prompt.Quote // the attempt's error if zero
	Attempt        judge.Judged // zero if nothing ran
}

// failureShown returns the prompt's description of the failure.
func failureShown(c *call.Call, f *Failing) []prompt.Quote {
	message := f.Message
	if message == (prompt.Quote{}) {
		message = c.Mine(f.Attempt.Outcome.ErrorType + ": " + f.Attempt.Outcome.ErrorMessage)
	}
	return []prompt.Quote{message, f.Attempt.Hint}
}

// A Request describes the program to forge, and what the call that needs it has left.
type Request struct {
	For         *call.Selection // the call, or the judged input of a correction
	Kind        string          // provider.KindForge or KindRepair
	Trigger     string
	Basis       Failing           // the program to repair
	Predecessor *agent.Generation // the program that would be replaced; nil for the first program
	Alone       bool              // not shared with other calls
	// the predecessor is shown, because a person changed the method's purpose since it was made
	Recheck bool

	Guardrails int                    // retries left for programs that the gate refuses
	Earlier    []agent.AttemptFailure // earlier failures of the call, shown to the model
	Unheld     bool                   // a candidate that an earlier call left does not serve
}

// mayKeep reports whether the model may answer the request by keeping the program.
func (q *Request) mayKeep() bool { return q.Recheck && q.Kind == provider.KindForge }

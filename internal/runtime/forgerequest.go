package runtime

import (
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// failing describes the program that the model is asked to repair.
type failing struct {
	code, checksum string
	class          string       // intrinsic, adaptive, stale, degraded, unproven
	reason         string       // from the trigger: an error type, or a selection's reason
	message        prompt.Quote // zero means the attempt's error
	attempt        judge.Judged // zero if nothing ran
}

// failureShown returns the prompt's description of the failure.
func failureShown(c *call.Call, f *failing) []prompt.Quote {
	message := f.message
	if message == (prompt.Quote{}) {
		message = c.Mine(f.attempt.Outcome.ErrorType + ": " + f.attempt.Outcome.ErrorMessage)
	}
	return []prompt.Quote{message, f.attempt.Hint}
}

// A forgeRequest describes the program to forge.
type forgeRequest struct {
	kind        string // provider.KindForge or KindRepair
	trigger     string
	basis       failing           // the program to repair
	predecessor *agent.Generation // the program that would be replaced; nil for the first program
	alone       bool              // not shared with other calls
	// the predecessor is shown, because a person changed the method's purpose since it was made
	recheck bool
}

// mayKeep reports whether the model may answer the request by keeping the program.
func (q *forgeRequest) mayKeep() bool { return q.recheck && q.kind == provider.KindForge }

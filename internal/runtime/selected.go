package runtime

import (
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// A Selection is a call with its contract, its context, and the decision about its program. It is a value: a phase that
// reads the artifact again makes a new one. Flights read it concurrently.
type Selection struct {
	*call.Call

	terms    call.Terms
	memory   map[string]json.RawMessage // the session's context; empty for nested calls
	artifact *agent.Artifact            // nil if none is stored
	decision selection.Decision
	took     time.Duration // how long the selection took
	reached  agent.Effects // what the stored program that failed in this call reached
}

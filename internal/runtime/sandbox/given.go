package sandbox

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Given holds what a journal records in addition to the answers that a replay serves.
type Given struct {
	Context      map[string]json.RawMessage // context of the session; nil if the program did not read it
	InputHistory json.RawMessage            // nil if the call had none
	Fetched      []string                   // requested addresses, without user information
}

// Journalled reads a journal. It returns the zero Given for one that cannot be read; replaying such a journal fails
// with the reason.
func Journalled(journal json.RawMessage) Given {
	var form journalForm
	if len(journal) == 0 || json.Unmarshal(journal, &form) != nil {
		return Given{}
	}
	g := Given{Context: form.Context, InputHistory: form.InputHistory}
	for i := range form.Asks {
		var q recurgent.Request
		if e := &form.Asks[i]; wire.Fetches(e.Op) && !e.Same && json.Unmarshal(e.Params, &q) == nil {
			g.Fetched = append(g.Fetched, fetch.SafeURL(q.URL))
		}
	}
	return g
}

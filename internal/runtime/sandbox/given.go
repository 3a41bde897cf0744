package sandbox

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Given is what a journal records about its run, apart from the answers that a replay serves from it.
type Given struct {
	Context      map[string]json.RawMessage // of the session; nil when the program did not look at it
	InputHistory json.RawMessage            // nil when the call brought none
	Fetched      []string                   // the addresses that were asked for, without user information
}

// Journalled reads a journal. What cannot be read is left out: running on it fails and says why.
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

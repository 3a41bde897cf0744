package sandbox

import (
	"cmp"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Done is one host call of a program, as its journal records it.
type Done struct {
	Kind string `json:"kind"` // fetch, call, predict, history ...
	// Target is method and address, without user information, for a fetch, and role and method for a call.
	Target string `json:"target,omitempty"`
	Status int    `json:"status,omitempty"` // HTTP status of a fetch; 0 if there is none
	Error  string `json:"error_type,omitempty"`
	Again  bool   `json:"again,omitempty"` // asked before in the run, with the same answer
}

// Calls reports whether d is a nested call or delegation that was not refused.
func (d *Done) Calls() bool {
	return (d.Kind == wire.OpCall || d.Kind == wire.OpDelegate) && d.Error == ""
}

// DoneIn lists the host calls of a journal in order. It omits reads and writes of open files. The list is empty, not
// nil, if the journal is empty or unreadable.
func DoneIn(journal json.RawMessage) []Done {
	var form journalForm
	list := []Done{}
	if len(journal) == 0 || json.Unmarshal(journal, &form) != nil {
		return list
	}
	for i := range form.Asks {
		e := &form.Asks[i]
		if e.Op == wire.OpRead || e.Op == wire.OpWrite || e.Op == wire.OpClose {
			continue
		}
		d := Done{Kind: e.Op, Again: e.Same}
		if e.Error != nil {
			d.Error = e.Error.Type
		}
		switch e.Op {
		case wire.OpFetch, wire.OpFetchFile:
			var q recurgent.Request
			var got struct{ Status int }
			if json.Unmarshal(e.Params, &q) == nil {
				d.Target = cmp.Or(q.Method, "GET") + " " + fetch.SafeURL(q.URL)
			}
			if json.Unmarshal(e.Result, &got) == nil {
				d.Status = got.Status
			}
		case wire.OpCall, wire.OpDelegate:
			var q struct{ Role, Method string }
			if json.Unmarshal(e.Params, &q) == nil {
				d.Target = q.Role + "." + q.Method
			}
		}
		list = append(list, d)
	}
	return list
}

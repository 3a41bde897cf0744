package sandbox

import (
	"cmp"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Done is one thing that a program asked of its host, as a journal records it.
type Done struct {
	Kind string `json:"kind"` // fetch, call, predict, history ...
	// of a fetch the method and the address without user information; of a call role and method
	Target string `json:"target,omitempty"`
	Status int    `json:"status,omitempty"` // of a fetch
	Error  string `json:"error_type,omitempty"`
	Again  bool   `json:"again,omitempty"` // asked before within the run, and answered the same
}

// Calls reports whether it was a nested call that began.
func (d *Done) Calls() bool {
	return (d.Kind == wire.OpCall || d.Kind == wire.OpDelegate) && d.Error == ""
}

// DoneIn reads a journal, in order. Reads and writes of an open file are left out, and so is what cannot be read.
func DoneIn(journal json.RawMessage) []Done {
	var form journalForm
	list := []Done{}
	if len(journal) == 0 || json.Unmarshal(journal, &form) != nil {
		return list
	}
	for i := range form.Asks {
		e := &form.Asks[i]
		if e.Op == wire.OpRead || e.Op == wire.OpWrite || e.Op == wire.OpClose { // parts of an open file
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

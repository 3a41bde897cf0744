package sandbox

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// recordsParams are those of the question for the records in the context. A program cannot ask it: its own questions have other parameters.
var recordsParams = json.RawMessage(`{"context":true}`)

// noRecords is the history of a session whose records cannot be read.
var noRecords = json.RawMessage("[]")

// bringRecords asks for the session's records where the program may come upon them in its context. The journal has them as the answer to a question,
// so that a second run finds what the first one did.
func (x *exchange) bringRecords(ctx context.Context, facts *report.Facts) *Failure {
	if !facts.FindsRecords() || x.journal.replaying() && !x.journal.has(wire.OpHistory, recordsParams) && !facts.NamesHistory() {
		return nil // a computed key, in a run of before the records were a question, or beside one of a program that did not look
	}
	q := &wire.Question{Op: wire.OpHistory, Params: recordsParams}
	var r reply
	if x.journal.replaying() {
		var failure *Failure
		if r, failure = x.recorded(ctx, q); failure != nil {
			return failure
		}
	} else {
		r = x.live(ctx, q)
	}
	if x.records = r.body; r.refusal != nil {
		x.records = noRecords
	}
	x.bytes += int64(len(x.records))
	return nil
}

// memory is the context that the program sees. What a client stored under the key of the records is no one's to find.
func (x *exchange) memory() map[string]json.RawMessage {
	_, stored := x.req.Context[report.ContextHistory]
	if x.records == nil && !stored {
		return x.req.Context
	}
	seen := make(map[string]json.RawMessage, len(x.req.Context)+1)
	maps.Copy(seen, x.req.Context)
	delete(seen, report.ContextHistory)
	if x.records != nil {
		seen[report.ContextHistory] = x.records
	}
	return seen
}

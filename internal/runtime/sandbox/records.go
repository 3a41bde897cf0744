package sandbox

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// recordsParams are the parameters of the question for the records in the context. A program cannot ask it, because its
// own questions have other parameters.
var recordsParams = json.RawMessage(`{"context":true}`)

// noRecords stands for records that cannot be read.
var noRecords = json.RawMessage("[]")

// bringRecords loads the session's records if the program may read them from its context. The journal records them as a
// question and its answer, so a replay sees the same records.
func (x *exchange) bringRecords(ctx context.Context, facts *report.Facts) *Failure {
	if !facts.FindsRecords() || x.journal.replaying() && !x.journal.has(wire.OpHistory, recordsParams) &&
		!facts.NamesHistory() {
		// The program may compute the key at run time, but the journal has no such question: it is older than the
		// question, or that run did not need the records.
		return nil
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

// memory returns the context that the program sees. The key of the records holds the session's records or nothing,
// never what a client stored there.
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

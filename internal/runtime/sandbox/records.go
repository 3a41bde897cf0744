package sandbox

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// recordsParams are the parameters of the question for the records in the context. A program cannot ask it, because its
// own questions have other parameters.
var recordsParams = json.RawMessage(`{"context":true}`)

// noRecords stands for records that cannot be read.
var noRecords = json.RawMessage("[]")

// bringRecords loads the session's records if the program may read them from its context. The journal records them as a
// question and its answer, so a replay sees the same records. It returns a Failure if the program cannot run correctly
// on the input (see takenForZero).
func (x *exchange) bringRecords(ctx context.Context, facts *report.Facts) *Failure {
	if f := x.takenForZero(facts); f != nil {
		return f
	}
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

// takenForZero returns a Failure if the program would take a whole number of its input for 0, otherwise nil.
func (x *exchange) takenForZero(facts *report.Facts) *Failure {
	if !facts.TakesForZero || !x.inexact(len(facts.ContextReads) > 0) {
		return nil
	}
	return &Failure{Type: agent.ErrExecution, Detail: "numbers",
		Message: "the input has a whole number that float64 does not hold; it comes as json.Number, and the program takes it for 0: it asserts float64 without looking whether it is one",
		Hint:    "Look at the ok of .(float64), and handle json.Number (its digits as text), or have Bind fill an int64 or a json.RawMessage."}
}

// inexact reports whether the input, with the context if withContext is set, contains a whole number that float64
// cannot represent.
func (x *exchange) inexact(withContext bool) bool {
	if recurgent.Inexact(x.req.Kwargs) || recurgent.Inexact(x.req.InputHistory) {
		return true
	}
	for _, raw := range x.req.Args {
		if recurgent.Inexact(raw) {
			return true
		}
	}
	for _, raw := range x.req.Context {
		if withContext && recurgent.Inexact(raw) {
			return true
		}
	}
	return false
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

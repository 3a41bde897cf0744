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

// recordsParams are those of the question for the records in the context. A program cannot ask it: its own questions have other parameters.
var recordsParams = json.RawMessage(`{"context":true}`)

// noRecords is the history of a session whose records cannot be read.
var noRecords = json.RawMessage("[]")

// bringRecords asks for the session's records where the program may come upon them in its context. The journal has them as the answer to a question,
// so that a second run finds what the first one did. It fails for a program that may not run with the input.
func (x *exchange) bringRecords(ctx context.Context, facts *report.Facts) *Failure {
	if f := x.takenForZero(facts); f != nil {
		return f
	}
	if !facts.FindsRecords() || x.journal.replaying() && !x.journal.has(wire.OpHistory, recordsParams) &&
		!facts.NamesHistory() {
		// a computed key, in a run of before the records were a question, or beside one of a program that did not look
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

// takenForZero refuses to run a program that would take a whole number of its input for 0.
func (x *exchange) takenForZero(facts *report.Facts) *Failure {
	if !facts.TakesForZero || !x.inexact(len(facts.ContextReads) > 0) {
		return nil
	}
	return &Failure{Type: agent.ErrExecution, Detail: "numbers",
		Message: "the input has a whole number that float64 does not hold; it comes as json.Number, and the program takes it for 0: it asserts float64 without looking whether it is one",
		Hint:    "Look at the ok of .(float64), and handle json.Number (its digits as text), or have Bind fill an int64 or a json.RawMessage."}
}

// inexact reports whether the input has a whole number that float64 does not hold.
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

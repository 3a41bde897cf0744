package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// An exchange is the host side of one run. It answers the program's questions and records their effects.
type exchange struct {
	pool    *Pool
	req     Request
	h       Host
	journal journal

	asks    int
	free    int   // asks that do not count: time.Sleep, call.Log, and pieces of files
	bytes   int64 // bytes of questions and answers
	strange int   // number of frames of unknown kinds
	nested  int
	fetches []Fetch
	// records holds the session's records, in the program's context. It is nil if the program does not read them.
	records json.RawMessage
	held    func() // releases the memory of the last answer; nil if there is none
	slept   time.Duration
	notes   []string
	host    time.Duration // time spent waiting for others; the daemon's own work counts as the program's time
	until   time.Time     // when the program's time ends
	files   streams
	given   map[string]given // by digest of op and parameters, because parameters may be long
}

// A reply answers a question: with a body, with same if the answer is still that of Question.Have, or with a refusal
// that the program sees.
type reply struct {
	body    json.RawMessage
	same    bool
	refusal *recurgent.Failure
}

// given records the last answer to a question that can be asked again.
type given struct {
	id       uint64
	revision int64         // revision of the data behind the answer
	entry    *journalEntry // in a replay: the journal entry that answered
}

// answer answers one question. A non-nil Failure ends the call.
func (x *exchange) answer(ctx context.Context, q *wire.Question) (reply, *Failure) {
	x.asks++
	if q.Op == wire.OpSleep { // sleeps have bounds of their own
		x.free++
		return x.sleep(ctx, q.Params)
	}
	if q.Op == wire.OpLog { // replays do not need notes
		x.free++
		x.note(q.Params)
		return reply{body: json.RawMessage("null")}, nil
	}
	if wire.OnStream(q.Op) { // streams have bounds of their own
		x.free++
		return x.stream(ctx, q)
	}
	if x.asks-x.free > x.pool.opts.MaxAsks {
		return reply{}, &Failure{Type: agent.ErrResourceExhausted, Detail: "asks",
			Message: "the program made too many host calls",
			Hint:    "Ask the host once and keep the answer, instead of asking in a loop."}
	}
	switch q.Op {
	case wire.OpOpen, wire.OpCreate, wire.OpDecode:
		return x.stream(ctx, q)
	case wire.OpFile:
		return x.fileInfo(ctx, q)
	case wire.OpFetchFile:
		return x.fetchFile(ctx, q.Params)
	}
	var r reply
	var fatal *Failure
	if x.journal.replaying() {
		r, fatal = x.recorded(ctx, q)
	} else {
		r = x.live(ctx, q)
	}
	x.bytes += int64(len(q.Params) + len(r.body))
	if x.bytes > x.pool.opts.MaxHostBytes {
		return reply{}, &Failure{Type: agent.ErrResourceExhausted, Detail: "host_bytes",
			Message: fmt.Sprintf("the program's host calls carried more than %d bytes", x.pool.opts.MaxHostBytes),
			Hint:    "Ask for less: a page of the history, one fetch instead of many; keep what you need of an answer."}
	}
	return r, fatal
}

// live asks the host, unless the runner already has the answer and the revision is unchanged.
func (x *exchange) live(ctx context.Context, q *wire.Question) reply {
	if !wire.Repeatable(q.Op) {
		raw, refusal := x.perform(ctx, q.Op, q.Params)
		x.journal.add(q.Op, q.Params, raw, refusal)
		return reply{body: raw, refusal: refusal}
	}
	// Read the revision before the answer. If the answer is newer, the next question asks the host again.
	revision := x.h.Revision(ctx, q.Op)
	if g, ok := x.given[digest([]byte(q.Key()))]; ok && g.id == q.Have && g.revision == revision && revision >= 0 {
		x.journal.repeat(q.Op, q.Params)
		return reply{same: true}
	}
	raw, refusal := x.perform(ctx, q.Op, q.Params)
	x.journal.add(q.Op, q.Params, raw, refusal)
	if refusal == nil {
		x.give(q, given{id: q.ID, revision: revision})
	}
	return reply{body: raw, refusal: refusal}
}

func (x *exchange) give(q *wire.Question, g given) {
	if x.given == nil {
		x.given = map[string]given{}
	}
	x.given[digest([]byte(q.Key()))] = g
}

// recorded answers a question from the journal of the earlier call. A question that the journal does not hold ends the
// run.
func (x *exchange) recorded(ctx context.Context, q *wire.Question) (reply, *Failure) {
	e, failure := x.lookUp(q.Op, q.Params)
	if failure != nil {
		return reply{}, failure
	}
	switch q.Op {
	case wire.OpCall:
		x.nested++
	case wire.OpFetch:
		x.fetches = append(x.fetches, recordedFetch(q.Params, e))
	}
	if e.Error != nil {
		return reply{refusal: &recurgent.Failure{Type: e.Error.Type, Message: e.Error.Message}}, nil
	}
	if g, ok := x.given[digest([]byte(q.Key()))]; ok && g.id == q.Have && g.entry == e {
		return reply{same: true}, nil
	}
	raw := e.Result
	if e.Digest != "" {
		today, refusal := x.perform(ctx, q.Op, q.Params)
		same := false
		if raw, same = sameAnswer(q.Op, today, e.Digest); refusal != nil || !same {
			return reply{}, diverged("the session's " + q.Op + " is not what it was at the recorded call")
		}
	}
	if wire.Repeatable(q.Op) {
		x.give(q, given{id: q.ID, entry: e})
	}
	return reply{body: raw}, nil
}

// lookUp takes the journal entry that answers the question.
func (x *exchange) lookUp(op string, params json.RawMessage) (*journalEntry, *Failure) {
	e := x.journal.find(op, params)
	if e == nil {
		e = x.journal.findCanonical(op, params, x.req.Canonical)
	}
	if e == nil {
		return nil, diverged("the program asked for " + op + ", which the recorded call did not")
	}
	return e, nil
}

func diverged(message string) *Failure {
	return &Failure{Type: agent.ErrExecution, Detail: DetailDiverged, Message: "replay: " + message}
}

// DetailDiverged is the Detail of a failure in which a replayed program asked for something that its journal does not
// hold.
const DetailDiverged = "replay_diverged"

func denied(message string) *recurgent.Failure {
	return &recurgent.Failure{Type: agent.ErrDenied, Message: message}
}

// perform asks the host, or fetches. The daemon's own work is bounded by the program's deadline.
func (x *exchange) perform(ctx context.Context, op string,
	params json.RawMessage) (json.RawMessage, *recurgent.Failure) {
	switch op {
	case wire.OpCall:
		return x.call(ctx, params)
	case wire.OpFetch:
		return x.fetch(ctx, params)
	case wire.OpPredict:
		return x.predict(ctx, params)
	}
	ctx, cancel := context.WithDeadline(ctx, x.until)
	defer cancel()
	switch op {
	case wire.OpHistory:
		var q struct {
			All, Page    bool
			After, Limit int
		}
		if json.Unmarshal(params, &q) != nil {
			return nil, denied("history: bad parameters")
		}
		return plain(x.h.History(ctx, q.All, q.Page, q.After, q.Limit))
	case wire.OpTools:
		return plain(x.h.Tools(ctx))
	case wire.OpContent:
		var q struct{ Ref string }
		if json.Unmarshal(params, &q) != nil {
			return nil, denied("content: bad parameters")
		}
		raw, err := x.h.Content(ctx, q.Ref)
		if err == nil && raw == nil {
			raw = json.RawMessage("null")
		}
		return plain(raw, err)
	case wire.OpDelegate:
		var q struct {
			Role     string
			Contract json.RawMessage
		}
		if json.Unmarshal(params, &q) != nil {
			return nil, denied("delegate: bad parameters")
		}
		if e := x.h.Delegate(ctx, q.Role, q.Contract); e != nil {
			return nil, &recurgent.Failure{Type: e.Type, Message: e.Message}
		}
		return json.RawMessage("null"), nil
	}
	return nil, denied("the host knows no " + op)
}

// plain converts an error of the host to a refusal that the program sees.
func plain(raw json.RawMessage, err error) (json.RawMessage, *recurgent.Failure) {
	if err != nil {
		var f *recurgent.Failure
		if errors.As(err, &f) {
			return nil, f
		}
		return nil, &recurgent.Failure{Type: agent.ErrExecution,
			Message: wire.BoundText([]byte(err.Error()), wire.MaxMessage)}
	}
	return raw, nil
}

// call makes a nested call. The program's clock and place are paused meanwhile.
func (x *exchange) call(ctx context.Context, params json.RawMessage) (json.RawMessage, *recurgent.Failure) {
	var q struct {
		Role, Method string
		Args         []json.RawMessage
		Kwargs       json.RawMessage
		Unsafe       string
	}
	if json.Unmarshal(params, &q) != nil {
		return nil, denied("call: bad parameters")
	}
	x.nested++
	if q.Unsafe != "" {
		return plain(json.Marshal(x.h.Refuse(ctx, q.Role, q.Method, q.Args, q.Kwargs,
			wire.BoundText([]byte(q.Unsafe), wire.MaxMessage))))
	}
	var outcome agent.Outcome
	x.wait(ctx, func() { outcome = x.h.Call(ctx, q.Role, q.Method, q.Args, q.Kwargs) })
	return plain(json.Marshal(outcome))
}

// result converts an answer into a Result.
func (x *exchange) result(a *wire.Answer) Result {
	x.journal.clock, x.journal.randomness = a.Clock, a.Randomness
	var r Result
	switch a.End {
	case wire.EndValue:
		r.Value, r.Context = x.endFiles(a.Value), (*agent.ContextChange)(a.Change)
	case wire.EndAuthored, wire.EndRetriable:
		r.Authored = &AuthoredError{Type: authoredType(a.Type), Message: a.Message,
			Retriable: a.End == wire.EndRetriable, Plain: a.Type == agent.ErrTool}
	case wire.EndFault:
		r.Failure = engineFault(a.Message)
	default:
		r.Failure = &Failure{Type: a.Type, Message: a.Message, Detail: a.Detail, Hint: a.Hint}
		switch a.Type {
		case agent.ErrExecution, agent.ErrNonSerializable, agent.ErrResourceExhausted:
		default:
			r.Failure.Type = agent.ErrExecution
		}
	}
	return r
}

// authoredType returns t if it is a valid error type, otherwise tool_error.
func authoredType(t string) string {
	if !agent.IsErrorType(t) {
		return agent.ErrTool
	}
	return t
}

// effects returns the recorded effects of the run.
func (x *exchange) effects(req *Request) Effects {
	raw, truncated := x.journal.encode(req)
	return Effects{Journal: raw, Truncated: truncated, Fetches: x.fetches, Nested: x.nested, Asks: x.asks,
		Slept: x.slept, Made: x.files.ended, Notes: x.notes}
}

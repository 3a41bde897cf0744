package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// An exchange is one run as the host side of it sees it: the questions that were asked, what they took from outside.
// It lives on the stack of Run.
type exchange struct {
	pool    *Pool
	req     *Request
	h       Host
	journal journal

	asks    int
	strange int // frames of unknown kinds
	nested  int
	fetches []Fetch
	host    time.Duration
}

// answer performs one question: the answer as JSON, or a refusal that the program gets to see, or the end of the call.
func (x *exchange) answer(ctx context.Context, op string, params json.RawMessage) (json.RawMessage, *recurgent.Failure, *Failure) {
	x.asks++
	if x.asks > x.pool.opts.MaxAsks {
		return nil, nil, &Failure{Type: agent.ErrResourceExhausted, Detail: "asks", Message: "the program made too many host calls",
			Hint: "Ask the host once and keep the answer, instead of asking in a loop."}
	}
	if x.journal.replaying() {
		return x.recorded(ctx, op, params)
	}
	raw, refusal := x.perform(ctx, op, params)
	x.journal.add(op, params, raw, refusal)
	return raw, refusal, nil
}

// recorded answers from the journal of the earlier call.
func (x *exchange) recorded(ctx context.Context, op string, params json.RawMessage) (json.RawMessage, *recurgent.Failure, *Failure) {
	e := x.journal.find(op, params)
	if e == nil {
		return nil, nil, diverged("the program asked for " + op + ", which the recorded call did not")
	}
	switch op {
	case opCall:
		x.nested++
	case opFetch:
		x.fetches = append(x.fetches, recordedFetch(params, e))
	}
	if e.Digest != "" {
		today, refusal := x.perform(ctx, op, params)
		raw, same := sameAnswer(op, today, e.Digest)
		if refusal != nil || !same {
			return nil, nil, diverged("the session's " + op + " is not what it was at the recorded call")
		}
		return raw, nil, nil
	}
	if e.Error != nil {
		return nil, &recurgent.Failure{Type: e.Error.Type, Message: e.Error.Message}, nil
	}
	return e.Result, nil, nil
}

func diverged(message string) *Failure {
	return &Failure{Type: agent.ErrExecution, Detail: DetailDiverged, Message: "replay: " + message}
}

// DetailDiverged is the Detail of the failure of a run on recorded effects which asked for others.
const DetailDiverged = "replay_diverged"

// The operations of recurgent.Host.
const (
	opHistory  = "history"
	opTools    = "tools"
	opCall     = "call"
	opDelegate = "delegate"
	opFetch    = "fetch"
	opContent  = "content"
)

func denied(message string) *recurgent.Failure {
	return &recurgent.Failure{Type: agent.ErrDenied, Message: message}
}

// perform asks the host, or fetches. While a program waits for another program or for the network its place among
// the running ones is free for others.
func (x *exchange) perform(ctx context.Context, op string, params json.RawMessage) (json.RawMessage, *recurgent.Failure) {
	switch op {
	case opHistory:
		var q struct {
			All, Page    bool
			After, Limit int
		}
		if json.Unmarshal(params, &q) != nil {
			return nil, denied("history: bad parameters")
		}
		return plain(x.h.History(ctx, q.All, q.Page, q.After, q.Limit))
	case opTools:
		return plain(x.h.Tools(ctx))
	case opContent:
		var q struct{ Ref string }
		if json.Unmarshal(params, &q) != nil {
			return nil, denied("content: bad parameters")
		}
		raw, err := x.h.Content(ctx, q.Ref)
		if err == nil && raw == nil {
			raw = json.RawMessage("null")
		}
		return plain(raw, err)
	case opDelegate:
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
	case opCall:
		return x.call(ctx, params)
	case opFetch:
		return x.fetch(ctx, params)
	}
	return nil, denied("the host knows no " + op)
}

func plain(raw json.RawMessage, err error) (json.RawMessage, *recurgent.Failure) {
	if err != nil {
		var f *recurgent.Failure
		if errors.As(err, &f) {
			return nil, f
		}
		return nil, &recurgent.Failure{Type: agent.ErrExecution, Message: boundText([]byte(err.Error()), maxMessage)}
	}
	return raw, nil
}

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
		return plain(json.Marshal(x.h.Refuse(ctx, q.Role, q.Method, q.Args, q.Kwargs, boundText([]byte(q.Unsafe), maxMessage))))
	}
	x.pool.admission.pause(x.req)
	outcome := x.h.Call(ctx, q.Role, q.Method, q.Args, q.Kwargs)
	x.pool.admission.resume(x.req)
	return plain(json.Marshal(outcome))
}

func (x *exchange) fetch(ctx context.Context, params json.RawMessage) (json.RawMessage, *recurgent.Failure) {
	var q recurgent.Request
	if json.Unmarshal(params, &q) != nil {
		return nil, denied("fetch: bad parameters")
	}
	if len(x.fetches) >= x.pool.opts.MaxFetches {
		return nil, denied("fetch: too many fetches in one call")
	}
	x.pool.admission.pause(x.req)
	response, note, refusal := x.pool.fetcher.fetch(ctx, q)
	x.pool.admission.resume(x.req)
	x.fetches = append(x.fetches, note)
	if refusal != nil {
		return nil, refusal
	}
	return plain(json.Marshal(response))
}

// result makes the Result of an answer.
func (x *exchange) result(a *answer) Result {
	x.journal.clock, x.journal.chance = a.clock, a.chance
	var r Result
	switch a.end {
	case endValue:
		r.Value, r.Context = a.value, a.change
	case endAuthored:
		r.Authored = &AuthoredError{Type: authoredType(a.errType), Message: a.message}
	default:
		r.Failure = &Failure{Type: a.errType, Message: a.message, Detail: a.detail, Hint: a.hint}
		switch a.errType {
		case agent.ErrExecution, agent.ErrNonSerializable, agent.ErrResourceExhausted:
		default:
			r.Failure.Type = agent.ErrExecution
		}
	}
	return r
}

// authoredType returns the type that a program gave its error, when it is one: a lower-case word.
func authoredType(t string) string {
	if len(t) == 0 || len(t) > 64 || t[0] < 'a' || t[0] > 'z' {
		return agent.ErrTool
	}
	for i := range len(t) {
		if c := t[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_') {
			return agent.ErrTool
		}
	}
	return t
}

// effects sums up what the run took from outside.
func (x *exchange) effects(req *Request) Effects {
	raw, truncated := x.journal.encode(req)
	return Effects{Journal: raw, Truncated: truncated, Fetches: x.fetches, Nested: x.nested}
}

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// fetch performs a request for the program.
func (x *exchange) fetch(ctx context.Context, params json.RawMessage) (json.RawMessage, *recurgent.Failure) {
	q, refusal := x.mayFetch(params)
	if refusal != nil {
		return nil, refusal
	}
	var a fetch.Answer
	x.wait(ctx, func() { a = x.pool.opts.Fetch.Do(ctx, x.caller(), q) })
	x.held = a.Release
	x.fetches = append(x.fetches, a.Note)
	if a.Failure != nil {
		return nil, a.Failure
	}
	return plain(encode(a.Response, len(a.Response.Body)+len(a.Response.Raw)*4/3))
}

// mayFetch decodes the request, and refuses one that the run may not make.
func (x *exchange) mayFetch(params json.RawMessage) (q recurgent.Request, refusal *recurgent.Failure) {
	if json.Unmarshal(params, &q) != nil {
		return q, denied("fetch: bad parameters")
	}
	if len(x.fetches) >= x.req.Fetches {
		return q, denied(fmt.Sprintf("fetch: a program may fetch %d times in a call (policy fetches_per_call)",
			x.req.Fetches))
	}
	if x.req.NoFetch || x.pool.opts.Fetch == nil {
		x.fetches = append(x.fetches, fetch.Denied(q))
		return q, denied("fetch: this run may not fetch")
	}
	return q, nil
}

// caller describes on whose behalf requests are made.
func (x *exchange) caller() fetch.Caller {
	return fetch.Caller{Owner: x.req.Owner, Role: x.req.Role, Method: x.req.Method, CallID: x.req.CallID,
		End: x.req.End, Guard: x.req.Guard, Writes: x.req.Writes}
}

// encode is json.Marshal without HTML escapes, which make pages much larger. size is the expected length of the output
// in bytes.
func encode(v any, size int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(size + size/16 + 1<<10) // growing by doubling would hold three times the size
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// release releases the memory held for the last answer.
func (x *exchange) release() {
	if x.held != nil {
		x.held()
		x.held = nil
	}
}

// recordedFetch returns the note of a fetch that was served from a journal.
func recordedFetch(params json.RawMessage, e *journalEntry) Fetch {
	var q recurgent.Request
	var r recurgent.Response
	_ = json.Unmarshal(params, &q) // unreadable parameters leave the address empty
	if e.Error != nil {
		return fetch.Recorded(q, nil, e.Error.Type)
	}
	if json.Unmarshal(e.Result, &r) != nil {
		r = recurgent.Response{}
	}
	return fetch.Recorded(q, &r, "")
}

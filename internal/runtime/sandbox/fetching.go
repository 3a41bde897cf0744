package sandbox

import (
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// fetch performs a request for the program.
func (x *exchange) fetch(ctx context.Context, params json.RawMessage) (json.RawMessage, *recurgent.Failure) {
	var q recurgent.Request
	if json.Unmarshal(params, &q) != nil {
		return nil, denied("fetch: bad parameters")
	}
	if len(x.fetches) >= x.pool.opts.MaxFetches {
		return nil, denied("fetch: too many fetches in one call")
	}
	client := x.pool.opts.Fetch
	if x.req.NoFetch || client == nil {
		x.fetches = append(x.fetches, fetch.Denied(q))
		return nil, denied("fetch: this run may not fetch")
	}
	who := fetch.Caller{Owner: x.req.Owner, Role: x.req.Role, Method: x.req.Method, CallID: x.req.CallID}
	var response *recurgent.Response
	var note Fetch
	var refusal *recurgent.Failure
	x.wait(func() { response, note, refusal = client.Do(ctx, who, q) })
	x.fetches = append(x.fetches, note)
	if refusal != nil {
		return nil, refusal
	}
	return plain(json.Marshal(response))
}

// recordedFetch is the note of a fetch that was served from a journal.
func recordedFetch(params json.RawMessage, e *journalEntry) Fetch {
	var q recurgent.Request
	var r recurgent.Response
	_ = json.Unmarshal(params, &q) // what cannot be read has no address
	if e.Error != nil {
		return fetch.Recorded(q, nil, e.Error.Type)
	}
	if json.Unmarshal(e.Result, &r) != nil {
		r = recurgent.Response{}
	}
	return fetch.Recorded(q, &r, "")
}

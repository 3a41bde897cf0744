package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	openai "github.com/sashabaranov/go-openai"
)

// A Charge gives permission for a request. A Provider calls it before each request that it sends, including retries and
// fallbacks, with an upper estimate of the cost. If it returns an error, the request is not sent and the Provider
// returns that error. Otherwise settle is called exactly once after the request, with what is known of its cost. A nil
// Charge permits every request.
type Charge func(ctx context.Context, most Estimate) (settle func(Bill), err error)

// Estimate is an upper estimate of one request, in tokens. It is zero for a request that costs nothing.
type Estimate struct{ Prompt, Completion int64 }

// Bill is what is known of the cost of one request afterwards. The zero value means that it may have cost the whole
// estimate.
type Bill struct {
	Free bool // no model worked on the request: it was certainly not sent, or the server refused it
	// Reported means that the server reported the figures below. If neither Reported nor Free is set, the request may
	// have cost its whole estimate.
	Reported bool

	Prompt, Cached, Completion int64 // tokens; Cached is the part of Prompt that the server had cached
}

// maxReported bounds a reported figure, so that sums do not overflow.
const maxReported = 1 << 40

// reported returns a server's figure, forced into its bounds.
func reported(tokens int) int { return int(min(max(int64(tokens), 0), maxReported)) }

// billOf returns the Bill of a server's report. A report without a plausible number of prompt tokens counts as none.
func billOf(u openai.Usage) Bill {
	if u.PromptTokens <= 0 || u.CompletionTokens < 0 {
		return Bill{}
	}
	b := Bill{Reported: true, Prompt: int64(reported(u.PromptTokens)), Completion: int64(reported(u.CompletionTokens))}
	if u.PromptTokensDetails != nil {
		b.Cached = min(max(int64(u.PromptTokensDetails.CachedTokens), 0), b.Prompt)
	}
	return b
}

// templateTokens bounds the tokens that a server adds to a conversation. All other tokens take at least one byte of the
// request's body each.
const templateTokens = 256

// errUnbounded means that the request cannot be charged, because the length of its body is unknown.
var errUnbounded = errors.New("a request of unknown length")

// charged is the state of the charge of the current request, as seen by the HTTP client.
type charged struct {
	charge     Charge
	completion int64 // most tokens of the reply

	settle func(Bill)
	unpaid error // why the charge refused the request

	dialed, connected atomic.Bool
}

// reserve asks the charge, if there is one. The body's length must then be known, because it bounds the prompt. The
// returned request records whether it got a connection.
func (c *charged) reserve(r *http.Request) (*http.Request, error) {
	switch {
	case c.charge == nil:
	case r.ContentLength <= 0:
		c.unpaid = errUnbounded
	default:
		c.settle, c.unpaid = c.charge(r.Context(), Estimate{Prompt: r.ContentLength + templateTokens,
			Completion: c.completion})
	}
	if c.unpaid != nil {
		return nil, c.unpaid
	}
	trace := &httptrace.ClientTrace{
		GetConn: func(string) { c.dialed.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.connected.Store(true) },
	}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace)), nil
}

// unsent reports whether the request certainly did not leave: it got no connection.
func (c *charged) unsent() bool { return c.dialed.Load() && !c.connected.Load() }

// bill settles the charge after a request. free means that the server refused it before a model worked on it.
func (c *charged) bill(usage openai.Usage, err error, free bool) {
	switch {
	case c.settle == nil:
	case err == nil:
		c.settle(billOf(usage))
	case c.unsent(), free:
		c.settle(Bill{Free: true})
	default: // a model may have worked on it
		c.settle(Bill{})
	}
}

package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	openai "github.com/sashabaranov/go-openai"
)

// A Charge is asked before each request that a Provider sends, retries and fallbacks included, with an upper estimate of
// what it may cost. On an error the request is not sent, and the Provider returns that error. Otherwise settle is called
// exactly once, with what is known after the request. A nil Charge is not asked.
type Charge func(ctx context.Context, most Estimate) (settle func(Bill), err error)

// Estimate is an upper estimate of one request, in tokens. Of a request that costs nothing it is zero.
type Estimate struct{ Prompt, Completion int64 }

// Bill is what is known of the cost of one request after it. Of its three forms the zero value is the most expensive one.
type Bill struct {
	Free bool // no model worked on the request: it was surely not sent, or the server refused it
	// the server reported the figures below; without that, and if not Free, the request may have cost all of its estimate
	Reported bool

	Prompt, Cached, Completion int64 // tokens; Cached are those of Prompt that the server had cached
}

// maxReported bounds a reported figure, so that sums of them do not overflow.
const maxReported = 1 << 40

// reported is a figure of a server within its bounds.
func reported(tokens int) int { return int(min(max(int64(tokens), 0), maxReported)) }

// billOf reads what a server reported. A reply without a plausible number of prompt tokens reports nothing.
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

// templateTokens bounds what a server adds to a conversation: a token is at least one byte of the request's body, but for these.
const templateTokens = 256

var errUnbounded = errors.New("a request of unknown length")

// charged is the charge of the request in hand, seen by the HTTP client.
type charged struct {
	charge     Charge
	completion int64

	settle func(Bill)
	unpaid error // why the charge refused the request

	dialed, connected atomic.Bool
}

// reserve asks the charge, when the body's length is known. The returned request notes whether it found a connection.
func (c *charged) reserve(r *http.Request) (*http.Request, error) {
	if c.charge == nil {
		return r, nil
	}
	if r.ContentLength <= 0 {
		c.unpaid = errUnbounded
		return nil, errUnbounded
	}
	c.settle, c.unpaid = c.charge(r.Context(), Estimate{Prompt: r.ContentLength + templateTokens,
		Completion: c.completion})
	if c.unpaid != nil {
		return nil, c.unpaid
	}
	trace := &httptrace.ClientTrace{
		GetConn: func(string) { c.dialed.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.connected.Store(true) },
	}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace)), nil
}

// unsent reports whether the request surely did not leave: no connection for it was found.
func (c *charged) unsent() bool { return c.dialed.Load() && !c.connected.Load() }

// bill settles the charge after a request; free says that the server refused it before a model worked on it.
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

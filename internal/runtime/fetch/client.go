// Package fetch performs HTTP requests for programs, under a policy of where they may go, and records what happened. It
// keeps no cookies, no open connections and no credentials; a Connector may add a credential to a request. Every
// received byte is hostile: sizes, headers, redirects and time are bounded, and whatever a host does ends in an answer
// or in a typed refusal.
//
// Reading, decoding, masking and describing a body takes time linear in its size: its shape is found in one pass for
// each of four levels, and the elements and classes of markup that are counted are bounded.
//
// The package knows nothing of programs, models or the store.
package fetch

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch/httpcache"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Bounds of a fetch.
const (
	maxRequestBody    = 1 << 20
	maxFetchHeaders   = 64
	maxFetchHeaderSum = 16 << 10
	maxRedirects      = 3
	maxURL            = 8 << 10
)

// Options configures a Client. Start from DefaultOptions.
type Options struct {
	Timeout time.Duration // of one request with its redirects; waiting for other fetches does not count
	// Parallel is the most concurrent fetches of one owner. All owners together may have a third more. Further fetches
	// wait.
	Parallel  int
	MaxBody   int       // most bytes of an answer, unpacked and as UTF-8
	MaxFile   int64     // most bytes of an answer that becomes a file, as sent and unpacked
	Connector Connector // the source of credentials; nil means none

	Heavy *fair.Heavy[agent.Owner] // admission to scanning long bodies; nil means that nobody waits

	CacheBytes int64               // most bytes of cached answers, for programs that accept them; 0 disables the cache
	OnResult   func(result string) // called with one of Results for each fetch; may be nil
}

// DefaultOptions returns the daemon's defaults.
func DefaultOptions() Options {
	return Options{Timeout: 20 * time.Second, Parallel: 16, MaxBody: 16 << 20, MaxFile: 256 << 20, CacheBytes: 32 << 20}
}

// largeBodies is roughly how many bytes one owner's bodies larger than smallBody may have together. All owners together
// may have a third more.
const largeBodies = 64 << 20

// A Client performs requests for programs. It may be used concurrently.
type Client struct {
	opts      Options
	transport *Transport
	slots     *places
	large     *places          // places for bodies larger than smallBody
	cache     *httpcache.Cache // nil if there is none

	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

// New returns a Client whose requests go through the transport. The caller closes the transport.
func New(t *Transport, o Options) (*Client, error) {
	c := &Client{opts: o, transport: t, slots: fair.NewShare[agent.Owner](int64(o.Parallel)),
		large: fair.NewShare[agent.Owner](int64(largeBodies / max(1, o.MaxBody))), now: time.Now, sleep: sleep}
	if o.CacheBytes > 0 {
		var err error
		if c.cache, err = httpcache.New(o.CacheBytes, func() time.Time { return c.now() }); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Options returns the client's options.
func (c *Client) Options() Options { return c.opts }

// Forget removes the cached answers of the namespace.
func (c *Client) Forget(namespace agent.Namespace) {
	if c.cache != nil {
		c.cache.Forget(string(namespace))
	}
}

// An Answer is the result of a request: either Response, or Failure, which the program sees. Note describes what
// happened in both cases. Failure is denied if policy refused the request, resource_exhausted if the body exceeded its
// bound, and fetch_failed otherwise. The note has the exact kind.
type Answer struct {
	Response *recurgent.Response
	Failure  *recurgent.Failure
	Note     Note

	method string // method of the last hop
	hops   int    // redirects before the last hop
	keyed  bool   // the request carried an idempotency key
	large  *hold
}

// Release must be called once the response is no longer held in memory, because large responses have a limited number
// of places. It may be called more than once.
func (a *Answer) Release() {
	if a.large != nil {
		a.large.release()
	}
}

// Do performs the request, and repeats it after a 429 or 503 if the program asks for that. A writing request goes
// through the caller's Ledger.
func (c *Client) Do(ctx context.Context, who Caller, q recurgent.Request) Answer {
	if len(q.BodyBytes) > 0 {
		q.Body, q.BodyBytes = string(q.BodyBytes), nil
	}
	var a Answer
	if writes(q.Method) {
		a = who.Writes.do(&q, c.through(who, &q),
			func(key string) Answer { return c.do(ctx, q, &hops{who: who, key: key}) })
	} else {
		a = c.do(ctx, q, &hops{who: who})
	}
	c.count(&a)
	return a
}

func (c *Client) count(a *Answer) {
	if c.opts.OnResult != nil {
		c.opts.OnResult(cmp.Or(a.Note.ErrorKind, a.Note.Mode))
	}
}

// through returns the name of the connection with which the request begins, or "".
func (c *Client) through(who Caller, q *recurgent.Request) string {
	at, err := url.Parse(q.URL)
	if err != nil || c.opts.Connector == nil {
		return ""
	}
	if name, ok := agent.ConnectionIn(at); ok {
		return name
	}
	if found := c.opts.Connector.Connect(who, strings.ToUpper(q.Method), at); found != nil {
		return found.Name()
	}
	return ""
}

// do performs the request until it need not be repeated. as holds the caller, the idempotency key of a write, and the
// receiver of a file.
func (c *Client) do(ctx context.Context, q recurgent.Request, as *hops) Answer {
	sent := false
	for retries := 0; ; retries++ {
		a := c.once(ctx, q, *as)
		sent = sent || a.Note.Sent
		a.Note.Retries, a.Note.Sent = retries, sent
		wait, again := c.retry(&a, as.who, q, retries)
		if !again || c.sleep(ctx, wait) != nil {
			return a
		}
		a.Release()
	}
}

// once performs the request once, with its redirects.
func (c *Client) once(ctx context.Context, q recurgent.Request, h hops) Answer {
	a := Answer{Note: Note{Asked: SafeURL(q.URL), Mode: ModeLive}, large: &hold{places: c.large, owner: h.who.Owner}}
	a.Note.URL = a.Note.Asked
	h.client, h.body, h.note, h.cache = c, q.Body, &a.Note, q.Cache && c.cache != nil && q.Body == ""
	response, err := c.attempt(ctx, q, &h, &a)
	if a.Note.FetchedAt == "" {
		a.Note.FetchedAt = c.now().UTC().Format(time.RFC3339Nano)
	}
	if err != nil {
		r := refusalOf(err)
		a.Note.ErrorKind, a.Failure = r.Kind, r.failure()
		a.Release()
		return a
	}
	response.FetchedAt = a.Note.FetchedAt
	a.Response = response
	return a
}

// attempt checks the request, waits for a place, and follows redirects under the time limit. It fills in h and the note
// of a.
func (c *Client) attempt(ctx context.Context, q recurgent.Request, h *hops, a *Answer) (*recurgent.Response, error) {
	var err error
	if h.method, h.header, err = checkRequest(&q); err != nil {
		return nil, err
	}
	if len(q.URL) > maxURL {
		return nil, deny("the address is longer than %d bytes", maxURL)
	}
	if h.at, err = url.Parse(q.URL); err != nil {
		return nil, deny("the address cannot be read")
	}
	h.at.RawQuery = strings.ReplaceAll(h.at.RawQuery, " ", "%20") // url.URL escapes those of the path alone
	if err := h.named(); err != nil {
		return nil, err
	}
	slot := &hold{places: c.slots, owner: h.who.Owner}
	if err := slot.take(ctx); err != nil {
		return nil, err
	}
	defer slot.release()
	ctx, limit := withLimit(ctx, c.opts.Timeout)
	defer limit.stop()
	h.reader = bodyReader{most: c.opts.MaxBody,
		large: func() error { return limit.pause(func() error { return a.large.take(ctx) }) }}
	h.enter = func(bytes int) error {
		return limit.pause(func() error { return c.opts.Heavy.Enter(ctx, h.who.Owner, bytes) })
	}
	h.leave = func(bytes int) { c.opts.Heavy.Leave(h.who.Owner, bytes) }
	h.goesOn = limit.renew
	r, err := h.follow(ctx)
	if at := h.mask(context.Background(), SafeURL(h.at.String())); at != "" && !h.atAddress() {
		a.Note.URL = at
	}
	if h.connection != nil {
		a.Note.Connection, a.keyed = h.connection.Name(), h.connection.IdempotencyHeader() != ""
	}
	if err == nil && h.kept != nil {
		a.Note.Mode, a.Note.FetchedAt = h.kept.Source, h.kept.At.UTC().Format(time.RFC3339Nano)
	}
	a.method, a.hops = h.method, h.hop
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, h.maskError(err)
}

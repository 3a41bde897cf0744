// Package fetch performs HTTP requests for programs, under a policy of where they may go, and notes what happened. It keeps no
// cookies, no connection and no credential of its own; a Connector may put one in. Every byte that comes in is hostile:
// sizes, headers, redirects and time are bounded, and whatever a host does ends in an answer or in a typed refusal.
//
// It knows nothing of programs, of models or of the store.
package fetch

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

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
	Timeout   time.Duration // of one request, redirects included; waiting for other fetches does not count
	Parallel  int           // fetches at once; others wait
	MaxBody   int           // bytes of an answer, unpacked and as UTF-8
	Connector Connector     // where credentials come from; nil: none
}

// DefaultOptions are the daemon's.
func DefaultOptions() Options {
	return Options{Timeout: 20 * time.Second, Parallel: 16, MaxBody: 16 << 20}
}

// largeBodies is how many bytes the bodies larger than smallBody may have together, roughly.
const largeBodies = 64 << 20

// A Client performs requests for programs. It may be used concurrently.
type Client struct {
	opts      Options
	transport *Transport
	slots     places
	large     places // of bodies larger than smallBody

	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

// New returns a client whose requests go through the transport, which stays the caller's.
func New(t *Transport, o Options) *Client {
	return &Client{opts: o, transport: t, slots: make(places, max(1, o.Parallel)), large: make(places, max(1, largeBodies/max(1, o.MaxBody))), now: time.Now, sleep: sleep}
}

// Options returns the client's options.
func (c *Client) Options() Options { return c.opts }

// An Answer is what came of a request: Response, or Failure, which is what the program gets to see. Note says what happened in both
// cases. What policy refuses is denied, a body beyond its bound resource_exhausted, anything else fetch_failed; the note
// has the exact kind.
type Answer struct {
	Response *recurgent.Response
	Failure  *recurgent.Failure
	Note     Note

	method string // of the last hop
	keyed  bool   // it carried an idempotency key
	large  *hold
}

// Release must be called once the response is no longer held in memory: large ones are few at a time. It may be called twice.
func (a *Answer) Release() {
	if a.large != nil {
		a.large.release()
	}
}

// Do performs the request, and performs it again where it was answered 429 or 503 and the program asks for that. A writing one goes
// through the caller's ledger.
func (c *Client) Do(ctx context.Context, who Caller, q recurgent.Request) Answer {
	if Writes(q.Method) {
		return who.Writes.do(&q, func(key string) Answer { return c.do(ctx, who, q, key) })
	}
	return c.do(ctx, who, q, "")
}

// do performs the request until it need not be sent again. A write has the idempotency key.
func (c *Client) do(ctx context.Context, who Caller, q recurgent.Request, key string) Answer {
	sent := false
	for retries := 0; ; retries++ {
		a := c.once(ctx, who, q, key)
		sent = sent || a.Note.Sent
		a.Note.Retries, a.Note.Sent = retries, sent
		wait, again := c.retry(&a, who, q, retries)
		if !again || c.sleep(ctx, wait) != nil {
			return a
		}
		a.Release()
	}
}

// once performs the request.
func (c *Client) once(ctx context.Context, who Caller, q recurgent.Request, key string) Answer {
	a := Answer{Note: Note{Asked: SafeURL(q.URL), Mode: ModeLive}, large: &hold{places: c.large}}
	a.Note.URL = a.Note.Asked
	response, err := c.attempt(ctx, q, &hops{client: c, who: who, body: q.Body, key: key, note: &a.Note}, &a)
	a.Note.FetchedAt = c.now().UTC().Format(time.RFC3339Nano)
	if err != nil {
		r := refusalOf(err)
		a.Note.ErrorKind, a.Failure = r.Kind, r.failure()
		a.Release()
		return a
	}
	response.FetchedAt = a.Note.FetchedAt
	a.Note.describe(response)
	a.Response = response
	return a
}

func (c *Client) attempt(ctx context.Context, q recurgent.Request, h *hops, a *Answer) (*recurgent.Response, error) {
	var err error
	if h.method, h.header, err = checkRequest(&q); err != nil {
		return nil, err
	}
	if len(q.URL) > maxURL {
		return nil, Deny("the address is longer than %d bytes", maxURL)
	}
	if h.at, err = url.Parse(q.URL); err != nil {
		return nil, Deny("the address cannot be read")
	}
	slot := &hold{places: c.slots}
	if err := slot.take(ctx); err != nil {
		return nil, err
	}
	defer slot.release()
	ctx, limit := withLimit(ctx, c.opts.Timeout)
	defer limit.stop()
	h.reader = bodyReader{most: c.opts.MaxBody, large: func() error { return limit.pause(func() error { return a.large.take(ctx) }) }}
	r, err := h.follow(ctx)
	if at := h.mask(SafeURL(h.at.String())); at != "" {
		a.Note.URL = at
	}
	if h.connection != nil {
		a.Note.Connection, a.keyed = h.connection.Name(), h.connection.IdempotencyHeader() != ""
	}
	a.method = h.method
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, h.maskError(err)
}

// hops is the state of one fetch while it follows redirects.
type hops struct {
	client *Client
	who    Caller
	key    string // idempotency key of a write
	note   *Note

	method, body string
	header       http.Header
	at           *url.URL
	hop          int
	reader       bodyReader
	connection   Connection   // of this hop; nil for none
	used         []Connection // that signed a request: their credentials may be echoed from now on
}

// follow sends the request and follows redirects.
func (h *hops) follow(ctx context.Context) (*recurgent.Response, error) {
	for ; ; h.hop++ {
		answer, err := h.send(ctx)
		if err != nil {
			return nil, h.redirected(err)
		}
		next, redirected := redirectTarget(h.at, answer)
		if !redirected {
			return h.read(answer)
		}
		answer.Body.Close()
		if h.hop == maxRedirects {
			return nil, &Refusal{KindRedirects, fmt.Sprintf("more than %d redirects", maxRedirects)}
		}
		if err := h.redirect(next, answer.StatusCode); err != nil {
			return nil, err
		}
	}
}

// redirected distinguishes what the program was denied from what a host led it to, for which the program is not to blame.
func (h *hops) redirected(err error) error {
	r := refusalOf(err)
	if h.hop == 0 || r.Kind != KindDenied {
		return err
	}
	return &Refusal{KindRedirectDenied, "the host redirects to where this daemon may not go: " + r.Message}
}

// send performs one hop: the policy, the connection, the signature, the request. An answer of 401 is asked for once more where the
// connection has another credential.
func (h *hops) send(ctx context.Context) (*http.Response, error) {
	if err := h.client.transport.Permit(h.at); err != nil {
		return nil, err
	}
	h.connection = nil
	if c := h.client.opts.Connector; c != nil {
		h.connection = c.Connect(h.who, h.method, h.at)
	}
	if err := h.allowed(); err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		answer, err := h.sendOnce(ctx)
		if err != nil || answer.StatusCode != http.StatusUnauthorized || h.connection == nil {
			return answer, err
		}
		answer.Body.Close()
		if again || !h.connection.Renew(ctx) {
			return nil, h.rejected()
		}
	}
}

// rejected is the refusal of a host that does not accept the connection's secret. It is not an answer to the program: nothing that a
// program does would change it.
func (h *hops) rejected() error {
	return &Refusal{KindConnection, fmt.Sprintf("%s answered 401: it does not accept the secret of the connection %q", h.at.Host, h.connection.Name())}
}

// redirect prepares the next hop.
func (h *hops) redirect(next *url.URL, status int) error {
	if h.method != http.MethodGet && h.method != http.MethodHead && status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		h.method, h.body = http.MethodGet, ""
		h.header.Del("Content-Type")
	}
	if next.Scheme != h.at.Scheme || next.Host != h.at.Host {
		if h.mask(next.String()) != next.String() {
			return &Refusal{KindRedirectDenied, "the redirect would carry a connection's credential to another host"}
		}
		h.header = ownHeader() // what the program set was meant for the host that it named: any of it may be a secret
	}
	h.at = next
	return nil
}

// read reads the answer of the last hop, without echoes of credentials.
func (h *hops) read(answer *http.Response) (*recurgent.Response, error) {
	body, err := h.reader.read(answer)
	if err != nil {
		return nil, err
	}
	for _, c := range h.used {
		body = c.Mask(body)
	}
	r := response(answer, body)
	header := make(map[string]string, len(r.Header))
	for name, value := range r.Header {
		header[h.mask(name)] = h.mask(value)
	}
	r.Header = header
	return r, nil
}

func (h *hops) mask(s string) string {
	for _, c := range h.used {
		s = string(c.Mask([]byte(s)))
	}
	return s
}

// maskError masks the texts of errors, which may come of what the host sent.
func (h *hops) maskError(err error) error {
	if err == nil || len(h.used) == 0 {
		return err
	}
	r := refusalOf(&maskedError{err, h.mask})
	return &Refusal{r.Kind, h.mask(r.Message)}
}

// A maskedError has its text masked before anybody cuts it, which may leave a part of a secret.
type maskedError struct {
	error
	mask func(string) string
}

func (e *maskedError) Error() string { return e.mask(e.error.Error()) }

func (e *maskedError) Unwrap() error { return e.error }

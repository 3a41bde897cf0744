// Package fetch performs HTTP requests for programs, under a policy of where they may go, and notes what happened. It keeps no
// cookies, no connection and no credential of its own; a Connector may put one in. Every byte that comes in is hostile:
// sizes, headers, redirects and time are bounded, and whatever a host does ends in an answer or in a typed refusal.
//
// It knows nothing of programs, of models or of the store.
package fetch

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Bounds of a fetch.
const (
	maxFetchBody      = 1 << 20 // of an answer, decompressed, and of a request
	maxFetchHeaders   = 64
	maxFetchHeaderSum = 16 << 10
	maxRedirects      = 3
	maxURL            = 8 << 10
)

// Options configures a Client. Start from DefaultOptions.
type Options struct {
	Timeout   time.Duration // of one fetch, redirects included
	Parallel  int           // fetches at once; others wait
	Connector Connector     // where credentials come from; nil: none
}

// DefaultOptions are the daemon's.
func DefaultOptions() Options { return Options{Timeout: 20 * time.Second, Parallel: 16} }

// A Client performs requests for programs. It may be used concurrently.
type Client struct {
	opts      Options
	transport *Transport
	slots     chan struct{}
}

// New returns a client whose requests go through the transport, which stays the caller's.
func New(t *Transport, o Options) *Client {
	return &Client{opts: o, transport: t, slots: make(chan struct{}, max(1, o.Parallel))}
}

// Options returns the client's options.
func (c *Client) Options() Options { return c.opts }

// Do performs the request. The note says what happened, also when there is no answer; the failure is what the program
// gets to see then. What policy refuses is denied, a body beyond its bound resource_exhausted, anything else
// fetch_failed; the note has the exact kind.
func (c *Client) Do(ctx context.Context, who Caller, q recurgent.Request) (*recurgent.Response, Note, *recurgent.Failure) {
	note := Note{Asked: SafeURL(q.URL), Mode: ModeLive}
	note.URL = note.Asked
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	response, err := c.attempt(ctx, who, q, &note)
	note.FetchedAt = time.Now().UTC().Format(time.RFC3339Nano)
	if err != nil {
		r := refusalOf(err)
		note.ErrorKind = r.Kind
		return nil, note, r.failure()
	}
	response.FetchedAt = note.FetchedAt
	note.describe(response)
	return response, note, nil
}

func (c *Client) attempt(ctx context.Context, who Caller, q recurgent.Request, note *Note) (*recurgent.Response, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h := hops{client: c, who: who, body: q.Body}
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
	r, err := h.follow(ctx)
	if at := h.mask(SafeURL(h.at.String())); at != "" {
		note.URL = at
	}
	if n := len(h.used); n > 0 && h.used[n-1] == h.connection {
		note.Connection = h.connection.Name()
	}
	return r, h.maskError(err)
}

// hops is the state of one fetch while it follows redirects.
type hops struct {
	client *Client
	who    Caller

	method, body string
	header       http.Header
	at           *url.URL
	connection   Connection   // of this hop; nil for none
	used         []Connection // that signed a request: their credentials may be echoed from now on
}

// follow sends the request and follows redirects.
func (h *hops) follow(ctx context.Context) (*recurgent.Response, error) {
	for hop := 0; ; hop++ {
		answer, err := h.send(ctx)
		if err != nil {
			return nil, err
		}
		next, redirected := redirectTarget(h.at, answer)
		if !redirected {
			return h.read(answer)
		}
		answer.Body.Close()
		if hop == maxRedirects {
			return nil, Deny("more than %d redirects", maxRedirects)
		}
		if err := h.redirect(next, answer.StatusCode); err != nil {
			return nil, err
		}
	}
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
	for again := false; ; again = true {
		answer, err := h.sendOnce(ctx)
		if err != nil || answer.StatusCode != http.StatusUnauthorized || again || h.connection == nil || !h.connection.Renew(ctx) {
			return answer, err
		}
		answer.Body.Close()
	}
}

func (h *hops) sendOnce(ctx context.Context) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, h.method, h.at.String(), strings.NewReader(h.body))
	if err != nil {
		return nil, Deny("the request is malformed")
	}
	request.Header = h.header.Clone()
	if h.connection != nil {
		h.used = append(h.used, h.connection)
		if err := h.connection.Sign(ctx, request); err != nil {
			return nil, err
		}
	}
	return h.client.transport.RoundTrip(request)
}

// redirect prepares the next hop.
func (h *hops) redirect(next *url.URL, status int) error {
	if h.method != http.MethodGet && h.method != http.MethodHead && status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		h.method, h.body = http.MethodGet, ""
		h.header.Del("Content-Type")
	}
	if next.Scheme != h.at.Scheme || next.Host != h.at.Host {
		if h.mask(next.String()) != next.String() {
			return Deny("the redirect would carry a connection's credential to another host")
		}
		h.header = ownHeader() // what the program set was meant for the host that it named: any of it may be a secret
	}
	h.at = next
	return nil
}

// read reads the answer of the last hop, without echoes of credentials.
func (h *hops) read(answer *http.Response) (*recurgent.Response, error) {
	body, err := readBody(answer)
	if err != nil {
		return nil, err
	}
	for _, c := range h.used {
		body = c.Mask(body)
	}
	r := response(answer, body)
	for name, value := range r.Header {
		r.Header[name] = h.mask(value)
	}
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
	r := refusalOf(err)
	return &Refusal{r.Kind, h.mask(r.Message)}
}

package fetch

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch/httpcache"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

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
	enter        func(bytes int) error // waits for a place for the work over a body
	leave        func(bytes int)       // gives it back
	goesOn       func()                // the time of the request begins anew: something came
	into         Begin                 // of a file; nil: the body is read
	cache        bool                  // kept answers are accepted
	kept         *httpcache.Answer     // of this hop, where they are; nil otherwise
	direct       direct                // the connection that the program named in the place of an address
	connection   Connection            // of this hop; nil for none
	used         []Connection          // that signed a request: their credentials may be echoed from now on

	home    *url.URL // the address that the program named
	asked   string   // the name of its connection; "" for none
	strayed bool     // a redirect led to another host
}

// follow sends the request and follows redirects.
func (h *hops) follow(ctx context.Context) (*recurgent.Response, error) {
	for ; ; h.hop++ {
		answer, err := h.send(ctx)
		if err != nil {
			return nil, h.redirected(err)
		}
		next, redirected := redirectTarget(h.at, answer)
		switch {
		case !redirected && h.into != nil && isGood(answer.StatusCode):
			return h.download(ctx, answer)
		case !redirected:
			return h.read(ctx, answer)
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
	h.connection = h.own(h.connect())
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

// A direct holds a connection whose credential is an address, and that address. The zero value holds neither.
type direct struct {
	connection Connection
	at         *url.URL
}

// named puts the address of a connection in the place of its name, where the program named one.
func (h *hops) named() error {
	if h.at.Scheme != agent.ConnectionScheme {
		return nil
	}
	name, ok := agent.ConnectionIn(h.at)
	if !ok {
		return deny("the address of a connection is %s:NAME, with nothing behind it", agent.ConnectionScheme)
	}
	if h.client.opts.Connector == nil {
		return deny("this daemon has no connections")
	}
	c, at, err := h.client.opts.Connector.Named(h.who, h.method, name)
	if err != nil {
		return err
	}
	h.direct, h.at, h.cache = direct{c, at}, at, false
	h.used = append(h.used, c) // whatever is said of the address from now on is masked
	return nil
}

// atAddress reports whether the hop's host is the one of the connection that the program named.
func (h *hops) atAddress() bool {
	return h.direct.at != nil && h.at.Scheme == h.direct.at.Scheme && h.at.Host == h.direct.at.Host
}

// host is the hop's host as Effects have it: a connection that is an address stands for its own.
func (h *hops) host() string {
	if h.atAddress() {
		return agent.ConnectionScheme + ":" + h.direct.connection.Name()
	}
	return agent.HostOf(h.at)
}

// connect returns the connection that the hop's address goes through, or nil.
func (h *hops) connect() Connection {
	switch c := h.client.opts.Connector; {
	case h.atAddress():
		return h.direct.connection
	case c != nil:
		return c.Connect(h.who, h.method, h.at)
	}
	return nil
}

// own returns the hop's connection as long as the request is the program's own: on the host that the program named, or where the same connection names both
// hosts. After a redirect to any other host nothing is signed, there or later: that host could have the daemon send signed requests to addresses that it chooses.
// Nor is after one from https to http: what the program asked to be sent in secret is not sent in clear.
func (h *hops) own(c Connection) Connection {
	name := ""
	if c != nil {
		name = c.Name()
	}
	if h.hop == 0 {
		h.home, h.asked = h.at, name
	}
	same := h.at.Scheme == h.home.Scheme && h.at.Host == h.home.Host
	bared := h.home.Scheme == "https" && h.at.Scheme == "http"
	if h.strayed = h.strayed || bared || !same && (c == nil || name != h.asked); h.strayed {
		return nil
	}
	return c
}

// rejected is the refusal of a host that does not accept the connection's secret. It is not an answer to the program: nothing that a
// program does would change it.
func (h *hops) rejected() error {
	return &Refusal{KindConnection, fmt.Sprintf("%s answered 401: it does not accept the secret of the connection %q",
		h.at.Host, h.connection.Name())}
}

// redirect prepares the next hop.
func (h *hops) redirect(next *url.URL, status int) error {
	if h.method != http.MethodGet && h.method != http.MethodHead && status != http.StatusTemporaryRedirect &&
		status != http.StatusPermanentRedirect {
		h.method, h.body = http.MethodGet, ""
		h.header.Del("Content-Type")
	}
	if next.Scheme != h.at.Scheme || next.Host != h.at.Host {
		if h.mask(context.Background(), next.String()) != next.String() {
			return &Refusal{KindRedirectDenied, "the redirect would carry a connection's credential to another host"}
		}
		h.header = ownHeader() // what the program set was meant for the host that it named: any of it may be a secret
	}
	h.at = next
	return nil
}

// read reads the answer of the last hop, without echoes of credentials.
func (h *hops) read(ctx context.Context, answer *http.Response) (*recurgent.Response, error) {
	body, raw, err := h.reader.read(answer)
	if err != nil {
		return nil, err
	}
	if h.kept != nil {
		h.kept.Keep()
	}
	size := len(body) + len(raw)
	if err := h.enter(size); err != nil {
		return nil, err
	}
	defer h.leave(size)
	for _, c := range h.used {
		body = c.Mask(ctx, body)
		if raw != nil {
			raw = c.Mask(ctx, raw)
		}
	}
	r := h.response(ctx, answer, body, raw)
	h.note.describe(r)
	return r, nil
}

// response is the answer with a body and without echoes of credentials in the rest.
func (h *hops) response(ctx context.Context, answer *http.Response, body, raw []byte) *recurgent.Response {
	r := response(answer, body, raw)
	header := make(map[string]string, len(r.Header))
	for name, value := range r.Header {
		header[h.mask(ctx, name)] = h.mask(ctx, value)
	}
	r.Header = header
	return r
}

func (h *hops) mask(ctx context.Context, s string) string {
	for _, c := range h.used {
		s = string(c.Mask(ctx, []byte(s)))
	}
	return s
}

// maskError masks the texts of errors, which may come of what the host sent.
func (h *hops) maskError(err error) error {
	if err == nil || len(h.used) == 0 {
		return err
	}
	mask := func(s string) string { return h.mask(context.Background(), s) } // they are short
	r := refusalOf(&maskedError{err, mask})
	return &Refusal{r.Kind, mask(r.Message)}
}

// A maskedError has its text masked before anybody cuts it, which may leave a part of a secret.
type maskedError struct {
	error
	mask func(string) string
}

func (e *maskedError) Error() string { return e.mask(e.error.Error()) }

func (e *maskedError) Unwrap() error { return e.error }

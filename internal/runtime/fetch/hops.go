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

// hops is the state of one fetch as it follows redirects.
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
	enter        func(bytes int) error // waits for admission to process a body
	leave        func(bytes int)       // ends the admission
	goesOn       func()                // restarts the request's timeout, because data arrived
	into         Begin                 // creates the file for the body; nil means that the body is read into memory
	cache        bool                  // cached answers are accepted
	kept         *httpcache.Answer     // this hop's answer from the cache; nil without the cache
	direct       direct                // the connection that the program named in place of an address
	connection   Connection            // of this hop; nil if there is none
	// used lists the connections that signed a request. The host may echo their credentials from then on.
	used []Connection

	home    *url.URL // the address that the program named
	asked   string   // name of the connection of the first hop; "" if there is none
	strayed bool     // a redirect led to another host, or from https to http
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

// redirected distinguishes a denial of the program's own request from one of a redirect, for which the program is not
// to blame.
func (h *hops) redirected(err error) error {
	r := refusalOf(err)
	if h.hop == 0 || r.Kind != KindDenied {
		return err
	}
	return &Refusal{KindRedirectDenied, "the host redirects to where this daemon may not go: " + r.Message}
}

// send performs one hop: it checks the policy, finds the connection, signs and sends. A 401 is retried once if the
// connection can renew its credential.
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

// A direct is a connection whose credential is an address, and that address. The zero value holds neither.
type direct struct {
	connection Connection
	at         *url.URL
}

// named replaces the name of a connection by its address, if the program named one.
func (h *hops) named() error {
	if h.at.Scheme != agent.ConnectionScheme {
		return nil
	}
	name, ok := agent.ConnectionIn(h.at)
	if !ok {
		return deny("the address of a connection is %s:NAME, with nothing after it", agent.ConnectionScheme)
	}
	if h.client.opts.Connector == nil {
		return deny("this daemon has no connections")
	}
	c, at, err := h.client.opts.Connector.Named(h.who, h.method, name)
	if err != nil {
		return err
	}
	h.direct, h.at, h.cache = direct{c, at}, at, false
	h.used = append(h.used, c) // masks the address in everything from now on
	return nil
}

// atAddress reports whether the hop's host is that of the connection that the program named.
func (h *hops) atAddress() bool {
	return h.direct.at != nil && h.at.Scheme == h.direct.at.Scheme && h.at.Host == h.direct.at.Host
}

// host returns the hop's host in the form of Effects. A connection whose credential is an address stands for its host.
func (h *hops) host() string {
	if h.atAddress() {
		return agent.ConnectionScheme + ":" + h.direct.connection.Name()
	}
	return agent.HostOf(h.at)
}

// connect returns the connection for the hop's address, or nil.
func (h *hops) connect() Connection {
	switch c := h.client.opts.Connector; {
	case h.atAddress():
		return h.direct.connection
	case c != nil:
		return c.Connect(h.who, h.method, h.at)
	}
	return nil
}

// own returns c as long as the request stays on the host that the program named, or the same connection names both
// hosts. After a redirect to any other host nothing is signed, on that host or later: it could make the daemon send
// signed requests to addresses of its choice. The same holds after a redirect from https to http, because data that the
// program sent in secret must not be sent in clear.
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

// rejected returns the refusal for a host that does not accept the connection's secret. The program does not get the
// answer, because it cannot change that.
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
		h.header = ownHeader() // the program's headers may be secrets for the host that it named
	}
	h.at = next
	return nil
}

// read reads the answer of the last hop and removes echoes of credentials.
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

// response returns the answer with the given body, and removes echoes of credentials from the header.
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

// maskError masks the texts of errors, which may contain data from the host.
func (h *hops) maskError(err error) error {
	if err == nil || len(h.used) == 0 {
		return err
	}
	mask := func(s string) string { return h.mask(context.Background(), s) } // errors are short
	r := refusalOf(&maskedError{err, mask})
	return &Refusal{r.Kind, mask(r.Message)}
}

// A maskedError masks its text before it is cut, because cutting could leave a part of a secret.
type maskedError struct {
	error
	mask func(string) string
}

func (e *maskedError) Error() string { return e.mask(e.error.Error()) }

func (e *maskedError) Unwrap() error { return e.error }

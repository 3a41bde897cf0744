package fetch

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

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
	cache        bool                  // kept answers are accepted
	kept         *httpcache.Answer     // of this hop, where they are; nil otherwise
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
		if !redirected {
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
	h.connection = nil
	if c := h.client.opts.Connector; c != nil {
		h.connection = h.own(c.Connect(h.who, h.method, h.at))
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
	return &Refusal{KindConnection, fmt.Sprintf("%s answered 401: it does not accept the secret of the connection %q", h.at.Host, h.connection.Name())}
}

// redirect prepares the next hop.
func (h *hops) redirect(next *url.URL, status int) error {
	if h.method != http.MethodGet && h.method != http.MethodHead && status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
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
	r := response(answer, body, raw)
	header := make(map[string]string, len(r.Header))
	for name, value := range r.Header {
		header[h.mask(ctx, name)] = h.mask(ctx, value)
	}
	r.Header = header
	h.note.describe(r)
	return r, nil
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

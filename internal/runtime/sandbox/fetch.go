package sandbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Bounds of a fetch.
const (
	maxFetchBody      = 1 << 20 // of an answer, decompressed, and of a request
	maxFetchHeaders   = 64
	maxFetchHeaderSum = 16 << 10
	maxRedirects      = 3
	maxURL            = 8 << 10
)

// Kinds of a Fetch without a good answer.
const (
	fetchDNS      = "dns"
	fetchRefused  = "refused"
	fetchTimeout  = "timeout"
	fetchDenied   = "denied"
	fetchTooLarge = "too_large"
	fetchNetwork  = "network"
)

// A fetcher performs requests for programs: no proxy, no credentials of ours, no cookies kept, no connection kept. Where
// a connection goes is checked on the address that the dialer is about to use, after resolution, on every hop:
// a name cannot say one thing to the check and another to the connection.
type fetcher struct {
	rules   []hostRule
	timeout time.Duration
	slots   chan struct{}
	client  *http.Transport
}

// dialTo is the context key under which the dialer finds whether the host is a named one.
type dialTo struct{}

func newFetcher(o *Options) (*fetcher, error) {
	f := &fetcher{timeout: o.FetchTimeout, slots: make(chan struct{}, o.Fetches)}
	for _, h := range o.FetchAllow {
		r, err := parseHostRule(h)
		if err != nil {
			return nil, err
		}
		f.rules = append(f.rules, r)
	}
	guard := publicOnly()
	dialer := &net.Dialer{Timeout: 10 * time.Second, ControlContext: func(ctx context.Context, network, address string, c syscall.RawConn) error {
		if named, _ := ctx.Value(dialTo{}).(bool); named {
			return nil
		}
		return guard.Safe(network, address, c)
	}}
	f.client = &http.Transport{
		Proxy:                  nil, // the environment's proxy would make the address check pointless
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  o.FetchTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true,
		ForceAttemptHTTP2:      false,
	}
	return f, nil
}

// A fetchError is a fetch without an answer.
type fetchError struct {
	kind    string
	message string
}

func (e *fetchError) Error() string { return e.message }

func deny(format string, args ...any) *fetchError {
	return &fetchError{fetchDenied, fmt.Sprintf(format, args...)}
}

// fetch performs the request. The note says what happened, also when there is no answer. What was refused by policy
// is denied; an answer beyond the size limit is resource_exhausted; any other failure is fetch_failed. The note
// has the exact kind.
func (f *fetcher) fetch(ctx context.Context, q recurgent.Request) (*recurgent.Response, Fetch, *recurgent.Failure) {
	note := Fetch{URL: safeURL(q.URL), Mode: "live"}
	note.Asked = note.URL
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	response, final, err := f.attempt(ctx, q)
	note.FetchedAt = time.Now().UTC().Format(time.RFC3339Nano)
	if final != "" {
		note.URL = final
	}
	if err != nil {
		e := classifyFetch(err)
		note.ErrorKind = e.kind
		failure := &recurgent.Failure{Type: "fetch_failed", Message: "fetch: " + e.message}
		switch e.kind {
		case fetchDenied:
			failure.Type = agent.ErrDenied
		case fetchTooLarge:
			failure.Type = agent.ErrResourceExhausted
		}
		return nil, note, failure
	}
	response.FetchedAt = note.FetchedAt
	note.describe(response)
	return response, note, nil
}

func (f *fetcher) attempt(ctx context.Context, q recurgent.Request) (*recurgent.Response, string, error) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	method, header, err := checkRequest(&q)
	if err != nil {
		return nil, "", err
	}
	if len(q.URL) > maxURL {
		return nil, "", deny("the address is longer than %d bytes", maxURL)
	}
	at, err := url.Parse(q.URL)
	if err != nil {
		return nil, "", deny("the address cannot be read")
	}
	body := q.Body
	for hop := 0; ; hop++ {
		final := safeURL(at.String())
		named, err := f.permit(at)
		if err != nil {
			return nil, final, err
		}
		request, err := http.NewRequestWithContext(context.WithValue(ctx, dialTo{}, named), method, at.String(), strings.NewReader(body))
		if err != nil {
			return nil, final, deny("the request is malformed")
		}
		request.Header = header.Clone()
		answer, err := f.client.RoundTrip(request)
		if err != nil {
			return nil, final, err
		}
		next, redirected := redirectTarget(at, answer)
		if !redirected {
			r, err := readAnswer(answer)
			return r, final, err
		}
		answer.Body.Close()
		if hop == maxRedirects {
			return nil, final, deny("more than %d redirects", maxRedirects)
		}
		if method != http.MethodGet && method != http.MethodHead && answer.StatusCode != http.StatusTemporaryRedirect && answer.StatusCode != http.StatusPermanentRedirect {
			method, body = http.MethodGet, ""
			header.Del("Content-Type")
		}
		if next.Scheme != at.Scheme || next.Host != at.Host {
			header = ownHeader() // what the program set was meant for the host that it named: any of it may be a secret
		}
		at = next
	}
}

// permit says whether the policy lets programs fetch the address, and whether its host is a named one.
func (f *fetcher) permit(u *url.URL) (named bool, err error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return false, deny("only http and https addresses can be fetched")
	}
	host, port := hostAndPort(u)
	switch {
	case host == "":
		return false, deny("the address has no host")
	case u.User != nil:
		return false, deny("an address must not hold a user or a password: set a header")
	case !isASCII(host):
		return false, deny("write the host in ASCII (punycode)")
	}
	for _, r := range f.rules {
		if r.matches(host, port) {
			return true, nil
		}
	}
	if len(f.rules) > 0 {
		return false, deny("%s is not among the hosts that this daemon may fetch", wire.BoundText([]byte(u.Host), 200))
	}
	if cloudHost(host) {
		return false, deny("the host's address is not public")
	}
	if u.Scheme != "https" {
		return false, deny("only https addresses can be fetched, unless the operator names the host")
	}
	return false, nil
}

// readAnswer reads a body of bounded length; the transport has decompressed it.
func readAnswer(answer *http.Response) (*recurgent.Response, error) {
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxFetchBody+1))
	if len(body) > maxFetchBody {
		return nil, &fetchError{fetchTooLarge, fmt.Sprintf("the answer has more than %d bytes", maxFetchBody)}
	}
	if err != nil {
		return nil, err
	}
	return &recurgent.Response{Status: answer.StatusCode, Header: boundHeader(answer.Header), Body: wire.ValidText(body)}, nil
}

func boundHeader(h http.Header) map[string]string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	sort.Strings(names) // what is cut off is the same at every call
	out := make(map[string]string, len(names))
	sum := 0
	for _, name := range names {
		value := wire.ValidText([]byte(strings.Join(h[name], ", ")))
		sum += len(name) + len(value)
		if len(out) == maxFetchHeaders || sum > maxFetchHeaderSum {
			break
		}
		out[wire.ValidText([]byte(name))] = value
	}
	return out
}

// classifyFetch names what went wrong without revealing more of the network than a program may know.
func classifyFetch(err error) *fetchError {
	var known *fetchError
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork), errors.Is(err, ssrf.ErrProhibitedPort), errors.Is(err, ssrf.ErrInvalidHostPort):
		return deny("the host's address is not public")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &fetchError{fetchTimeout, "no answer in time"}
	case errors.As(err, &dns):
		return &fetchError{fetchDNS, "the host's name cannot be resolved"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &fetchError{fetchRefused, "the host refused the connection"}
	}
	return &fetchError{fetchNetwork, "the connection failed: " + wire.BoundText([]byte(err.Error()), 200)}
}

// close drops what the transport keeps.
func (f *fetcher) close() { f.client.CloseIdleConnections() }

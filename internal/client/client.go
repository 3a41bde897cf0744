// Package client accesses a daemon over HTTP, as any other client would: requests with JSON replies, calls, and event
// streams that resume after each lost connection.
//
// Replies are bounded in size, except for Download. The package stores nothing, knows nothing of terminals, and prints
// nothing.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxReply bounds the size of one reply, in bytes.
const maxReply = 64 << 20

// A Client sends requests to one daemon. It is safe for concurrent use.
type Client struct {
	base      string
	token     string
	namespace string // "" means that of the token
	http      *http.Client
}

// New returns a client of the daemon at the base URL. The access token may be "". One of the roots must have signed the
// daemon's certificate; nil means those of the system.
func New(base, token string, roots *x509.CertPool) *Client {
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: &http.Client{
		// Do not follow redirects: they would send the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     Transport(roots),
	}}
}

// Transport returns a transport to daemons whose certificate one of the roots has signed; nil means those of the
// system.
func Transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment,
		DialContext:     (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
}

// In returns a client whose requests act in the namespace; "" means the namespace of the token.
func (c *Client) In(namespace string) *Client {
	in := *c
	in.namespace = namespace
	return &in
}

// Identify sets the headers of the access token and the namespace. It sets no header for "".
func Identify(h http.Header, token, namespace string) {
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	if namespace != "" {
		h.Set("Recurgent-Namespace", namespace)
	}
}

// URL returns the daemon's base URL without a trailing slash.
func (c *Client) URL() string { return c.base }

// A Refusal is the problem details (RFC 9457) of an error response.
type Refusal struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Hint   string `json:"hint"`

	Errors []FieldError `json:"errors"` // faults of the body
}

// A FieldError is a fault in one place of a request body.
type FieldError struct {
	Pointer string `json:"pointer"` // JSON pointer
	Detail  string `json:"detail"`
	Hint    string `json:"hint"`
}

func (r *Refusal) Error() string {
	text := fmt.Sprintf("the daemon refused: %d %s", r.Status, r.Title)
	if r.Detail != "" && r.Detail != r.Title {
		text += ": " + r.Detail
	}
	if r.Hint != "" {
		text += " (" + r.Hint + ")"
	}
	return text
}

// passing reports whether the same request may succeed later.
func (r *Refusal) passing() bool {
	return r.Status >= 500 || r.Status == http.StatusTooManyRequests || r.Status == http.StatusRequestTimeout
}

// send makes a request and returns the response. The caller closes its body. A status of 300 or more gives a *Refusal.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, body any) (*http.Response, error) {
	r, err := c.request(ctx, method, path, header, body)
	if err != nil {
		return nil, err
	}
	return c.do(r)
}

// do sends the request, with the result of send.
func (c *Client) do(r *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	bad := &Refusal{Title: http.StatusText(resp.StatusCode)}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // without a readable body, only the status is known
	_ = json.Unmarshal(text, bad)
	var rpc struct {
		Error struct{ Data json.RawMessage }
	}
	if json.Unmarshal(text, &rpc) == nil { // the MCP endpoint has it in a JSON-RPC error
		_ = json.Unmarshal(rpc.Error.Data, bad)
	}
	bad.Status = resp.StatusCode
	return nil, bad
}

func (c *Client) request(ctx context.Context, method, path string, header http.Header,
	body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	Identify(r.Header, c.token, c.namespace)
	return r, nil
}

// Do sends a request, with body as JSON unless it is nil, and returns the reply's body, which is non-nil without an
// error. A status of 300 or more gives a *Refusal.
func (c *Client) Do(ctx context.Context, method, path string, body any) ([]byte, error) {
	resp, err := c.send(ctx, method, path, nil, body)
	if err != nil {
		return nil, err
	}
	return c.read(resp, method+" "+path)
}

// DoIf is Do with the condition that the resource has that ETag, given in quotes; "" sets no condition.
func (c *Client) DoIf(ctx context.Context, method, path, etag string, body any) ([]byte, error) {
	header := http.Header{}
	if etag != "" {
		header.Set("If-Match", etag)
	}
	resp, err := c.send(ctx, method, path, header, body)
	if err != nil {
		return nil, err
	}
	return c.read(resp, method+" "+path)
}

// read reads at most maxReply bytes of the body and closes it.
func (c *Client) read(resp *http.Response, what string) ([]byte, error) {
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return nil, c.unreachable(err)
	}
	if len(data) > maxReply {
		return nil, fmt.Errorf("the reply of %s is over %d bytes", what, maxReply)
	}
	return data, nil
}

// plainReply is in the error of net/http for a server without TLS. The error has no type.
const plainReply = "server gave HTTP response to HTTPS client"

// unreachable explains a failed connection, and what to check.
func (c *Client) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if plain, is := strings.CutPrefix(c.base, "https://"); is && strings.Contains(err.Error(), plainReply) {
		return fmt.Errorf("what answers at %s does not speak https; --url or RECURGENT_URL is http://%s", c.base, plain)
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return fmt.Errorf("the daemon at %s is not trusted: %w; --ca-file or RECURGENT_CA_FILE names whom to trust",
			c.base, err)
	}
	return fmt.Errorf("cannot reach the daemon at %s: %w; is recurgentd serve running? --url or RECURGENT_URL says where", c.base, err)
}

// PingMCP checks that the daemon's MCP endpoint answers and accepts the token.
func (c *Client) PingMCP(ctx context.Context) error {
	const path = "/mcp"
	resp, err := c.send(ctx, http.MethodPost, path, http.Header{"Accept": {"application/json, text/event-stream"}},
		json.RawMessage(`{"jsonrpc":"2.0","id":0,"method":"ping"}`))
	if err != nil {
		return err
	}
	_, err = c.read(resp, path)
	return err
}

// Get decodes a JSON reply into v.
func (c *Client) Get(ctx context.Context, path string, v any) error {
	return c.JSON(ctx, http.MethodGet, path, nil, v)
}

// JSON is Do with the reply decoded into v.
func (c *Client) JSON(ctx context.Context, method, path string, body, v any) error {
	data, err := c.Do(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("the reply of %s %s is not in recurgentd's format: %w", method, path, err)
	}
	return nil
}

// Download copies a reply of unbounded size to w.
func (c *Client) Download(ctx context.Context, path string, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

// ToolPath returns the path of a known tool.
func ToolPath(role string) string { return "/v1/tools/" + url.PathEscape(role) }

// MethodPath returns the path of a method's artifact.
func MethodPath(role, method string) string {
	return ToolPath(role) + "/methods/" + url.PathEscape(method)
}

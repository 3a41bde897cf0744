// Package client speaks to a daemon over HTTP, as any other client would: requests with JSON replies, calls, and streams
// of events that resume after each lost connection.
//
// Replies are read within bounds. The package knows nothing of terminals, and it prints nothing.
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

// maxReply bounds what a client reads of one reply.
const maxReply = 64 << 20

// A Client sends requests to one daemon. It is safe for concurrent use.
type Client struct {
	base      string
	token     string
	namespace string // "": that of the token
	http      *http.Client
}

// New makes a client of the daemon at the base URL. The access token may be "". The daemon's certificate must be signed by one
// of the roots; nil stands for those of the system.
func New(base, token string, roots *x509.CertPool) *Client {
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: &http.Client{
		// A redirect would carry the token to another place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     Transport(roots),
	}}
}

// Transport connects to a daemon whose certificate is signed by one of the roots, as New says.
func Transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment,
		DialContext:     (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
}

// In returns a client whose requests act in the namespace; "" is the namespace of the token.
func (c *Client) In(namespace string) *Client {
	in := *c
	in.namespace = namespace
	return &in
}

// Identify sets the headers of the access token and of the namespace to act in; "" sets none.
func Identify(h http.Header, token, namespace string) {
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	if namespace != "" {
		h.Set("Recurgent-Namespace", namespace)
	}
}

// URL is the daemon's base URL, without a slash at its end.
func (c *Client) URL() string { return c.base }

// A Refusal is a problem detail (RFC 9457) that the daemon answered.
type Refusal struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Hint   string `json:"hint"`

	Errors []FieldError `json:"errors"` // of the body
}

// A FieldError is one place of a body that the daemon refuses.
type FieldError struct {
	Pointer string `json:"pointer"` // JSON pointer
	Detail  string `json:"detail"`
	Hint    string `json:"hint"`
}

func (r *Refusal) Error() string {
	text := fmt.Sprintf("the daemon refused: %d %s", r.Status, r.Title)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	if r.Hint != "" {
		text += " (" + r.Hint + ")"
	}
	return text
}

// passing reports whether the same request may be taken later.
func (r *Refusal) passing() bool {
	return r.Status >= 500 || r.Status == http.StatusTooManyRequests || r.Status == http.StatusRequestTimeout
}

// send makes a request and returns the response, whose body the caller closes. A status of 300 and more is a *Refusal.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, body any) (*http.Response, error) {
	r, err := c.request(ctx, method, path, header, body)
	if err != nil {
		return nil, err
	}
	return c.do(r)
}

// do sends the request, as send does.
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
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // of what cannot be read only the status is known
	_ = json.Unmarshal(text, bad)
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

// Do sends the request, with body as JSON unless it is nil, and returns the reply's body, which is nil only with an error. A
// status of 300 and more is a *Refusal.
func (c *Client) Do(ctx context.Context, method, path string, body any) ([]byte, error) {
	resp, err := c.send(ctx, method, path, nil, body)
	if err != nil {
		return nil, err
	}
	return c.read(resp, method+" "+path)
}

// DoIf is Do on the condition that the resource has that ETag, in quotes; "" sets none.
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

// read reads the body to its end and closes it.
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

func (c *Client) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return fmt.Errorf("the daemon at %s is not trusted: %w; --ca-file or RECURGENT_CA_FILE names whom to trust",
			c.base, err)
	}
	return fmt.Errorf("cannot reach the daemon at %s: %w; is recurgentd serve running? --url or RECURGENT_URL says where", c.base, err)
}

// Get reads a JSON reply into v.
func (c *Client) Get(ctx context.Context, path string, v any) error {
	return c.JSON(ctx, http.MethodGet, path, nil, v)
}

// JSON is Do for a reply that is read into v.
func (c *Client) JSON(ctx context.Context, method, path string, body, v any) error {
	data, err := c.Do(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("the reply of %s %s is not what a recurgentd answers: %w", method, path, err)
	}
	return nil
}

// Download copies a reply of any length to w.
func (c *Client) Download(ctx context.Context, path string, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

// ToolPath is the path of a known tool.
func ToolPath(role string) string { return "/v1/tools/" + url.PathEscape(role) }

// MethodPath is the path of an artifact.
func MethodPath(role, method string) string {
	return ToolPath(role) + "/methods/" + url.PathEscape(method)
}

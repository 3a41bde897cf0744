package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime"
)

// maxReply bounds what a client reads of one reply.
const maxReply = 64 << 20

// A client speaks to a daemon as any other HTTP client would.
type client struct {
	base  string
	token string
	http  *http.Client
}

func newClient(o Options) *client {
	return &client{base: strings.TrimSuffix(o.URL, "/"), token: o.Token, http: &http.Client{
		// A redirect would carry the token to another place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext},
	}}
}

// A refusal is a problem detail (RFC 9457) that the daemon answered.
type refusal struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Hint   string `json:"hint"`
}

func (r *refusal) Error() string {
	text := fmt.Sprintf("the daemon refused: %d %s", r.Status, r.Title)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	if r.Hint != "" {
		text += " (" + r.Hint + ")"
	}
	return text
}

// send makes a request and returns the response, whose body the caller closes. A status of 300 and more is a *refusal.
func (c *client) send(ctx context.Context, method, path string, header http.Header, body any) (*http.Response, error) {
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
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	bad := &refusal{Title: http.StatusText(resp.StatusCode)}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what cannot be read has only its status to tell
	_ = json.Unmarshal(text, bad)
	bad.Status = resp.StatusCode
	return nil, bad
}

// do sends the request and reads the reply's body, which is nil only with an error.
func (c *client) do(ctx context.Context, method, path string, body any) ([]byte, error) {
	resp, err := c.send(ctx, method, path, nil, body)
	if err != nil {
		return nil, err
	}
	return c.read(resp, method+" "+path)
}

// read reads the body to its end and closes it.
func (c *client) read(resp *http.Response, what string) ([]byte, error) {
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

func (c *client) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("cannot reach the daemon at %s: %w; is recurgentd serve running? --url or RECURGENT_URL says where", c.base, err)
}

// get reads a JSON reply into v.
func (c *client) get(ctx context.Context, path string, v any) error {
	return c.json(ctx, http.MethodGet, path, nil, v)
}

func (c *client) json(ctx context.Context, method, path string, body, v any) error {
	data, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("the reply of %s %s is not what a recurgentd answers: %w", method, path, err)
	}
	return nil
}

func (c *client) createSession(ctx context.Context, role string, contract map[string]any) (id string, err error) {
	body := map[string]any{"role": role}
	if contract != nil {
		body["contract"] = contract
	}
	var s struct {
		ID string `json:"id"`
	}
	if err := c.json(ctx, http.MethodPost, "/v1/sessions", body, &s); err != nil {
		return "", err
	}
	return s.ID, nil
}

// A callBody is the body of a call request.
type callBody struct {
	Role   string            `json:"role,omitempty"`
	Method string            `json:"method"`
	Args   []json.RawMessage `json:"args"`
	Kwargs json.RawMessage   `json:"kwargs"`
}

func (b callBody) filled() callBody {
	if b.Args == nil {
		b.Args = []json.RawMessage{}
	}
	if b.Kwargs == nil {
		b.Kwargs = json.RawMessage("{}")
	}
	return b
}

func callsURL(session string) string { return "/v1/sessions/" + url.PathEscape(session) + "/calls" }

// call makes one call and returns the reply, read and as it came.
func (c *client) call(ctx context.Context, session string, body callBody) (runtime.Reply, []byte, error) {
	data, err := c.do(ctx, http.MethodPost, callsURL(session), body.filled())
	if err != nil {
		return runtime.Reply{}, nil, err
	}
	reply, err := readReply(data)
	return reply, data, err
}

func readReply(data []byte) (runtime.Reply, error) {
	var reply runtime.Reply
	if err := json.Unmarshal(data, &reply); err != nil {
		return reply, fmt.Errorf("the reply of the call is not what a recurgentd answers: %w", err)
	}
	return reply, nil
}

package recurgent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// errStrange is the error for a reply with a good status and another content.
var errStrange = errors.New("the reply is not what a recurgentd answers")

// strange is the error for such a reply.
func strange(r *http.Response) error {
	return fmt.Errorf("%s: %w", r.Request.URL.Path, errStrange)
}

// Do sends a request of any operation. The path is as the document has it, with its query, such as /v1/policy; escape names in it by
// url.PathEscape. in is sent as JSON, nil is no body. The reply is read into out, a pointer, such as one to a type of package api; nil throws it
// away. A refusal is a *Problem. Do repeats what the methods here repeat.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	r, err := c.send(ctx, method, path, nil, in)
	if err != nil {
		return err
	}
	return read(r, out)
}

// send sends a request with those headers. The caller closes the body of the response, whose status is below 300.
func (c *Client) send(ctx context.Context, method, path string, header map[string]string,
	in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return c.doer.Do(r)
}

// read reads the JSON of a response into out, where that is not nil, and closes its body.
func read(r *http.Response, out any) error {
	defer r.Body.Close()
	if out == nil {
		_, err := io.Copy(io.Discard, r.Body) // so that the connection can be used again
		return err
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return strange(r)
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%w: %w", strange(r), err)
	}
	return nil
}

// baseURL returns the daemon's URL without a slash at its end.
func baseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is not the URL of a daemon, such as http://127.0.0.1:8420", text)
	}
	return strings.TrimRight(text, "/"), nil
}

// after returns the query of the page behind the cursor, nil for the first one.
func after(cursor *string) string {
	if cursor == nil {
		return ""
	}
	return "?after=" + url.QueryEscape(*cursor)
}

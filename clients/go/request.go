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

// errStrange means that a response has a good status but unexpected content.
var errStrange = errors.New("the reply is not in recurgentd's format")

// strange returns errStrange with the path of the request.
func strange(r *http.Response) error {
	return fmt.Errorf("%s: %w", r.Request.URL.Path, errStrange)
}

// Do sends a request of any operation. path is that of the API document with its query, such as /v1/policy; escape
// names in it with url.PathEscape. in is sent as JSON; nil means no body. The reply is decoded into out, a pointer,
// such as one to a type of package api; nil discards it. An error response is a *Problem. Do retries like the other
// methods.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	r, err := c.send(ctx, method, path, nil, in)
	if err != nil {
		return err
	}
	return read(r, out)
}

// send sends a request with these headers and returns a response with a status below 300. The caller closes its body.
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

// read decodes the JSON of a response into out, unless that is nil, and closes the body.
func read(r *http.Response, out any) error {
	defer r.Body.Close()
	if out == nil {
		_, err := io.Copy(io.Discard, r.Body) // drain it so that the connection can be reused
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

// baseURL validates the daemon's URL and removes trailing slashes.
func baseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is not the URL of a daemon, such as http://127.0.0.1:8420", text)
	}
	return strings.TrimRight(text, "/"), nil
}

// after returns the query for the page after the cursor, or "" for the first page.
func after(cursor *string) string {
	if cursor == nil {
		return ""
	}
	return "?after=" + url.QueryEscape(*cursor)
}

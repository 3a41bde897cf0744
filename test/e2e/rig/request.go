package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A Response is a response of the daemon.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Object decodes the body as a JSON object.
func (r Response) Object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	r.Into(t, &v)
	return v
}

// Into decodes the JSON body into v.
func (r Response) Into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, v); err != nil {
		t.Fatalf("status %d, no JSON for a %T: %v: %.300s", r.Status, v, err, r.Body)
	}
}

// Send sends a request with the body unchanged. It fails the test if there is no response; any status is fine.
func (d *Daemon) Send(method, path string, body []byte, header map[string]string) Response {
	d.T.Helper()
	r, err := d.Try(context.Background(), method, path, body, header)
	if err != nil {
		d.T.Fatalf("%s %s: %v\n%s", method, path, err, d.Output)
	}
	return r
}

// Try is Send for requests that may fail or be canceled.
func (d *Daemon) Try(ctx context.Context, method, path string, body []byte,
	header map[string]string) (Response, error) {
	req, err := d.request(ctx, method, path, body, header)
	if err != nil {
		return Response{}, err
	}
	resp, err := d.HTTP.Do(req)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return Response{}, err
	}
	return Response{resp.StatusCode, resp.Header, data}, nil
}

// request creates a request with the headers of this view of the daemon; those in header take precedence. A nil body
// means none.
func (d *Daemon) request(ctx context.Context, method, path string, body []byte,
	header map[string]string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, d.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == nil {
		r.Body = nil
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, list := range []map[string]string{d.header, header} {
		for name, value := range list {
			r.Header.Set(name, value)
		}
	}
	return r, nil
}

// Do sends v as JSON and fails the test if the response has another status than want. A nil v means no body.
func (d *Daemon) Do(want int, method, path string, v any) Response {
	d.T.Helper()
	var body []byte
	if v != nil {
		body = Encode(d.T, v)
	}
	r := d.Send(method, path, body, nil)
	if r.Status != want {
		d.T.Fatalf("%s %s: status %d, want %d: %.500s", method, path, r.Status, want, r.Body)
	}
	return r
}

// Encode encodes v as JSON.
func Encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Get sends a GET request, wants status 200 and returns the object.
func (d *Daemon) Get(path string) map[string]any {
	d.T.Helper()
	return d.Do(http.StatusOK, http.MethodGet, path, nil).Object(d.T)
}

// List returns the items of all pages of a list.
func (d *Daemon) List(path string) []map[string]any {
	d.T.Helper()
	all, sep := []map[string]any{}, "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	for after := ""; ; {
		page := path + sep + "limit=500"
		if after != "" {
			page += "&after=" + url.QueryEscape(after)
		}
		o := d.Get(page)
		data, ok := o["data"].([]any)
		if !ok {
			d.T.Fatalf("GET %s: data is %T, want an array", page, o["data"])
		}
		for _, item := range data {
			all = append(all, item.(map[string]any))
		}
		if after, _ = o["next_cursor"].(string); after == "" {
			return all
		}
	}
}

// CheckProblem checks that an error response has the format that clients rely on: RFC 9457 with a code and a hint.
func CheckProblem(t *testing.T, name string, r Response) {
	t.Helper()
	if ct := r.Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/problem+json") {
		t.Errorf("%s: content type %q", name, ct)
		return
	}
	p := r.Object(t)
	for _, k := range []string{"type", "title", "detail", "code", "hint"} {
		if text, _ := p[k].(string); text == "" {
			t.Errorf("%s: the problem has no %s: %s", name, k, r.Body)
		}
	}
	if p["status"] != float64(r.Status) {
		t.Errorf("%s: status %v in the problem, %d on the wire", name, p["status"], r.Status)
	}
}

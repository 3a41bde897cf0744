// Package recurgent is a client of recurgentd, which answers calls to methods that nobody has written yet.
//
//	client, err := recurgent.New(recurgent.Options{})
//	session, err := client.Session(ctx, "calculator")
//	reply, err := session.Call(ctx, "add", 2, 3)
//	var sum int
//	err = reply.Into(&sum)
//
// Package api holds the types of the REST interface, generated from its document. Client.Do sends a request of any
// operation that has no method here. All types may be used concurrently, except that only one goroutine may read a
// Stream.
package recurgent

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"os"

	"github.com/recurgentd/recurgentd/clients/go/api"
)

// Options configure a Client. The zero value takes everything from the environment.
type Options struct {
	URL     string       // default: RECURGENT_URL, or http://127.0.0.1:8420
	Token   string       // default: RECURGENT_TOKEN, or none
	HTTP    *http.Client // default: a client without timeouts; redirects are never followed
	Retries int          // maximum number of repetitions; 0 means 5, negative means none
}

// A Client accesses one daemon. It holds no resources that need closing.
type Client struct {
	url  string // without a slash at the end
	doer *doer
}

// New returns a client. It does not connect yet.
func New(o Options) (*Client, error) {
	d := &doer{token: cmp.Or(o.Token, os.Getenv("RECURGENT_TOKEN")), retries: max(cmp.Or(o.Retries, 5), 0)}
	if o.HTTP != nil {
		d.http = *o.HTTP
	}
	// Do not follow redirects: they would send the token elsewhere.
	d.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	base, err := baseURL(cmp.Or(o.URL, os.Getenv("RECURGENT_URL"), "http://127.0.0.1:8420"))
	if err != nil {
		return nil, err
	}
	return &Client{url: base, doer: d}, nil
}

// Judge records that a call's answer is right or wrong, and returns the resulting verdict.
func (c *Client) Judge(ctx context.Context, callID string, verdict api.VerdictRequest) (*api.Verdict, error) {
	var v api.Verdict
	if err := c.Do(ctx, http.MethodPost, callPath(callID)+"/verdict", verdict, &v); err != nil {
		return nil, err
	}
	return &v, nil
}

func callPath(id string) string { return "/v1/calls/" + url.PathEscape(id) }

// Cancel asks a running call to end. It has no effect on a call that has ended.
func (c *Client) Cancel(ctx context.Context, callID string) error {
	return c.Do(ctx, http.MethodPost, callPath(callID)+"/cancel", nil, nil)
}

// Tools iterates over the known roles, sorted by name. It ends with the first error.
func (c *Client) Tools(ctx context.Context) iter.Seq2[api.Tool, error] {
	return pages(func(cursor *string) ([]api.Tool, *string, error) {
		var list api.ToolList
		err := c.Do(ctx, http.MethodGet, "/v1/tools"+after(cursor), nil, &list)
		return list.Data, list.NextCursor, err
	})
}

// pages iterates over the entries of all pages. page is called with nil for the first one.
func pages[T any](page func(after *string) ([]T, *string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var after *string
		for {
			entries, next, err := page(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			after = next
		}
	}
}

package rig

import (
	"context"
	"maps"
	"net/http"
)

// As is the daemon as the owner of the token sees it.
func (d *Daemon) As(token string) *Daemon { return d.with("Authorization", "Bearer "+token) }

// In is the daemon as it is seen in the namespace; "" leaves the one in which the requests already are.
func (d *Daemon) In(namespace string) *Daemon {
	if namespace == "" {
		return d
	}
	return d.with("Recurgent-Namespace", namespace)
}

// with is the same daemon, each of whose requests has the header.
func (d *Daemon) with(name, value string) *Daemon {
	view := *d
	view.header = maps.Clone(d.header)
	if view.header == nil {
		view.header = map[string]string{}
	}
	view.header[name] = value
	return &view
}

// Plain is a client whose requests have the headers of this view of the daemon. Its exchanges are not compared with the OpenAPI document: it is for
// streams, of which the comparison would wait for the end, and for other protocols.
func (d *Daemon) Plain() *http.Client { return &http.Client{Transport: adding(d.header)} }

// adding adds headers to each request.
type adding map[string]string

func (a adding) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range a {
		if r.Header.Get(name) == "" {
			r.Header.Set(name, value)
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Stream opens a stream of events, of several replicas at any, which ends with ctx; the caller closes its body.
func (d *Daemon) Stream(ctx context.Context, path string, header map[string]string) *http.Response {
	d.T.Helper()
	at := *d
	at.URL = d.anyURL()
	r, err := at.request(ctx, http.MethodGet, path, nil, header)
	if err != nil {
		d.T.Fatal(err)
	}
	resp, err := d.Plain().Do(r)
	if err != nil {
		d.T.Fatalf("GET %s: %v\n%s", path, err, d.Output)
	}
	return resp
}

package rig

import (
	"context"
	"maps"
	"net/http"
)

// As returns a view of the daemon with the token.
func (d *Daemon) As(token string) *Daemon { return d.with("Authorization", "Bearer "+token) }

// In returns a view of the daemon in the namespace. "" leaves the namespace unchanged.
func (d *Daemon) In(namespace string) *Daemon {
	if namespace == "" {
		return d
	}
	return d.with("Recurgent-Namespace", namespace)
}

// with returns a view of the daemon that sends the header with each request.
func (d *Daemon) with(name, value string) *Daemon {
	view := *d
	view.header = maps.Clone(d.header)
	if view.header == nil {
		view.header = map[string]string{}
	}
	view.header[name] = value
	return &view
}

// Plain returns a client that sends the headers of this view. Its exchanges are not compared with the OpenAPI document.
// It is for streams, where the comparison would wait for the end, and for other protocols.
func (d *Daemon) Plain() *http.Client { return &http.Client{Transport: adding(d.header)} }

// adding is a transport that adds headers to each request.
type adding map[string]string

// RoundTrip implements http.RoundTripper. Headers that the request has already take precedence.
func (a adding) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range a {
		if r.Header.Get(name) == "" {
			r.Header.Set(name, value)
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Stream opens an event stream of a random replica. The stream ends with ctx; the caller must close its body.
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

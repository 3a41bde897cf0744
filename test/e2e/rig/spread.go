package rig

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// all returns the replicas, starting with d itself.
func (d *Daemon) all() []*Daemon { return append([]*Daemon{d}, d.others...) }

// anyURL returns the URL of a random replica.
func (d *Daemon) anyURL() string {
	all := d.all()
	return all[rand.IntN(len(all))].URL
}

// spread is a transport that sends each request for the daemon to a random replica.
type spread struct {
	d    *Daemon
	next *http.Transport
}

// RoundTrip implements http.RoundTripper. It repeats requests for a session that is moving, and waits after a change
// until the replicas agree.
func (s spread) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.once(r)
	for err == nil && moving(r, res) {
		_ = res.Body.Close()
		select {
		case <-time.After(time.Second): // as Retry-After says
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
		if r = r.Clone(r.Context()); r.GetBody != nil {
			r.Body, err = r.GetBody()
		}
		if err == nil {
			res, err = s.once(r)
		}
	}
	if err == nil && r.Method != http.MethodGet && res.StatusCode < 300 &&
		!strings.HasPrefix(r.URL.Path, "/v1/sessions") {
		s.d.agree(r.Header)
	}
	return res, err
}

// once sends the request to a random replica, as a load balancer does.
func (s spread) once(r *http.Request) (*http.Response, error) {
	first, err := url.Parse(s.d.URL)
	if err != nil {
		return nil, err
	}
	other, err := url.Parse(s.d.anyURL())
	if err != nil {
		return nil, err
	}
	if r.URL.Host == first.Host {
		r = r.Clone(r.Context())
		r.URL.Host = other.Host
		if r.Host == first.Host {
			r.Host = other.Host
		}
	}
	return s.next.RoundTrip(r)
}

// moving reports whether the request failed because the replica that owned its session is dead. Nothing was run then,
// and clients retry.
func moving(r *http.Request, res *http.Response) bool {
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" || r.Body != nil &&
		r.GetBody == nil {
		return false
	}
	data, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(data))
	return err == nil && (bytes.Contains(data, []byte(`"replica_unreachable"`)) ||
		bytes.Contains(data, []byte(`"session_moved"`)))
}

// agree waits until all replicas follow the same policy, which they do within a second of a change, so that tests need
// not retry. header is that of the request that may have changed the policy.
func (d *Daemon) agree(header http.Header) {
	d.T.Helper()
	if len(d.others) == 0 {
		return
	}
	asking := map[string]string{}
	for _, name := range []string{"Authorization", "Recurgent-Namespace"} {
		if value := header.Get(name); value != "" {
			asking[name] = value
		}
	}
	Until(d.T, "replicas follow one policy", func() bool {
		seen := map[string]bool{}
		for _, one := range d.Each() {
			r, err := one.Try(d.T.Context(), http.MethodGet, "/v1/policy", nil, asking)
			if err != nil || r.Status != http.StatusOK {
				return true // it is stopping, or wants another token
			}
			seen[string(r.Body)] = true
		}
		return len(seen) == 1
	})
}

// Each returns a view of each replica. What a view sends goes to that replica only. A daemon without other replicas
// returns itself.
func (d *Daemon) Each() []*Daemon {
	if len(d.others) == 0 {
		return []*Daemon{d}
	}
	var each []*Daemon
	for _, one := range d.all() {
		each = append(each, &Daemon{T: d.T, URL: one.URL, Output: d.Output, HTTP: &http.Client{Timeout: Patience},
			header: d.header})
	}
	return each
}

// One returns a view of one replica, for what each of them counts or holds by itself.
func (d *Daemon) One() *Daemon { return d.Each()[0] }

// CloseIdleConnections closes those of the transport, for http.Client.
func (s spread) CloseIdleConnections() { s.next.CloseIdleConnections() }

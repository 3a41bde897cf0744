// Package httpcache caches answers to GET requests in memory for as long as RFC 9111 allows, within a bound of bytes. A
// cached answer serves only requests that equal the original in every byte of address and header, including the
// credential, and that have the same partition. So two credentials never share an answer, and a header that a host
// omitted from Vary cannot select the wrong one.
//
// There is no heuristic freshness: an answer whose host does not specify its lifetime is validated before each use. The
// cache is lost when the process ends.
package httpcache

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/cache"
)

// Values of Answer.Source.
const (
	Live        = "live"        // from the host
	Cached      = "cached"      // from the cache, fresh
	Revalidated = "revalidated" // from the cache, after the host confirmed that it has not changed
	Stale       = "stale"       // from the cache, because the host failed and had allowed that
)

// A Cache caches answers. It may be used concurrently.
type Cache struct {
	most    int64 // bound in bytes
	entries cache.Cache[key, *entry]
	now     func() time.Time
}

// key is a digest, so the cache does not hold request headers.
type key [sha256.Size]byte

// perEntry is roughly how many bytes an entry takes in addition to its body and header.
const perEntry = 512

// New returns a cache bounded to most bytes. A single answer takes at most an eighth of them.
func New(most int64, now func() time.Time) (*Cache, error) {
	entries, err := cache.NewWeighed(uint64(max(0, most)), func(_ key, e *entry) uint32 { return uint32(e.size()) })
	if err != nil {
		return nil, err
	}
	return &Cache{most: most, entries: entries, now: now}, nil
}

// A Partition separates callers that must not share answers.
type Partition struct {
	Scope   string // a write in one scope does not invalidate the answers of another
	Name    string // separates partitions within the scope
	Private bool   // all callers are one user to the host, so answers forbidden to shared caches may be stored
	// Outage reports whether an error of the transport is a fault of the host or the network, for which a stale answer
	// may be used. Nil means never.
	Outage func(error) bool
}

// An Answer is a response and its source.
type Answer struct {
	*http.Response
	Source string    // Live, Cached, Revalidated or Stale
	At     time.Time // when the host sent it, or last confirmed that it has not changed

	keep func()
}

// Keep stores the answer in the cache. The caller must have read the body to its end and found it good. Without Keep,
// nothing is stored.
func (a *Answer) Keep() {
	if a.keep != nil {
		a.keep()
	}
}

// RoundTrip answers the request from the cache or through the transport. Requests with their own conditions or ranges
// bypass the cache. The caller must close the response's body.
func (c *Cache) RoundTrip(r *http.Request, p Partition, t http.RoundTripper) (*Answer, error) {
	if r.Method != http.MethodGet || conditional(r.Header) {
		answer, err := t.RoundTrip(r)
		return &Answer{Response: answer, Source: Live, At: c.now()}, err
	}
	k := keyOf(r, p)
	have, _ := c.entries.GetIfPresent(k)
	now := c.now()
	if have != nil && have.fresh(now) {
		return &Answer{Response: have.response(r, now), Source: Cached, At: have.at.received}, nil
	}
	ask := r
	if have != nil {
		ask = r.Clone(r.Context())
		have.conditions(ask.Header)
	}
	answer, err := t.RoundTrip(ask)
	received := c.now()
	switch {
	case have != nil && (err != nil && p.Outage != nil && p.Outage(err) || err == nil && outage(answer.StatusCode)) &&
		have.standsIn(received):
		if err == nil {
			answer.Body.Close()
		}
		return &Answer{Response: have.response(r, received), Source: Stale, At: have.at.received}, nil
	case err != nil:
		return nil, err
	case have != nil && answer.StatusCode == http.StatusNotModified:
		answer.Body.Close()
		updated := have.freshened(answer.Header, now, received)
		if updated == nil { // the 304 is about another answer
			c.entries.Invalidate(k)
			return c.RoundTrip(r, p, t)
		}
		c.put(k, updated)
		return &Answer{Response: updated.response(r, received), Source: Revalidated, At: received}, nil
	}
	return c.live(r, p, answer, times{now, received}), nil
}

// live returns an answer of the host. Keep stores it if that is allowed.
func (c *Cache) live(r *http.Request, p Partition, answer *http.Response, at times) *Answer {
	a := &Answer{Response: answer, Source: Live, At: at.received}
	e := storable(r, answer, p, at)
	k := keyOf(r, p)
	if e == nil {
		// An answer that is not stored still replaces an earlier one (RFC 9111, section 4).
		if answer.StatusCode < 500 {
			c.entries.Invalidate(k)
		}
		return a
	}
	copied := &tee{ReadCloser: answer.Body, left: int(c.most / 8)}
	answer.Body = copied
	a.keep = func() {
		if copied.left >= 0 && copied.ended {
			e.body = copied.b.Bytes()
			c.put(k, e)
		}
	}
	return a
}

func (c *Cache) put(k key, e *entry) {
	if int64(e.size()) <= c.most/8 {
		c.entries.Set(k, e)
	}
}

// Invalidate removes all answers of the scope for the address of a successful request that may have changed it (RFC
// 9111, section 4.4).
func (c *Cache) Invalidate(r *http.Request, scope string) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return
	}
	at := place{scope, address(r)}
	for k, e := range c.entries.All() {
		if e.place == at {
			c.entries.Invalidate(k)
		}
	}
}

// Forget removes all answers of the scope.
func (c *Cache) Forget(scope string) {
	for k, e := range c.entries.All() {
		if e.scope == scope {
			c.entries.Invalidate(k)
		}
	}
}

// address returns the request's address without its query, which may contain a credential.
func address(r *http.Request) string {
	return strings.ToLower(r.URL.Scheme+"://"+r.URL.Host) + r.URL.EscapedPath()
}

// keyOf returns the digest of the partition, the address and the whole header of the request.
func keyOf(r *http.Request, p Partition) (k key) {
	h := sha256.New()
	write := func(parts ...string) {
		for _, s := range parts {
			_, _ = io.WriteString(h, strconv.Itoa(len(s))+":"+s) // lengths separate the parts
		}
	}
	write(p.Scope, p.Name, strconv.FormatBool(p.Private), address(r), r.URL.RawQuery, r.Host)
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		write(name, strconv.Itoa(len(r.Header[name])))
		write(r.Header[name]...)
	}
	h.Sum(k[:0])
	return k
}

// conditional reports whether the request has conditions or ranges, which the cache does not support.
func conditional(h http.Header) bool {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range",
		"Range", "Cache-Control", "Pragma"} {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// outage reports whether RFC 5861, section 4, allows a stale answer in place of the status.
func outage(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// A tee keeps a copy of what is read, up to a bound.
type tee struct {
	io.ReadCloser
	b     bytes.Buffer
	left  int // negative if the bound was exceeded
	ended bool
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if t.left -= n; t.left >= 0 {
		t.b.Write(p[:n])
	} else {
		t.b = bytes.Buffer{}
	}
	t.ended = err == io.EOF
	return n, err
}

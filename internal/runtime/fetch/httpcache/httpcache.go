// Package httpcache keeps answers to GET requests in memory for as long as RFC 9111 allows, within a bound of bytes. An answer is kept for
// requests that are the same in every byte of address and header, the credential included, and for callers that share the request's
// partition: no two credentials share an answer, and no header that a host forgot in Vary selects the wrong one.
//
// It knows no heuristic freshness: an answer whose host says nothing of its age is validated before each use. It is lost when
// the process ends.
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

// Where an answer came from.
const (
	Live        = "live"        // the host
	Cached      = "cached"      // the cache, fresh
	Revalidated = "revalidated" // the cache, after the host said that it has not changed
	Stale       = "stale"       // the cache, because the host failed and had allowed it for that case
)

// A Cache keeps answers. It may be used concurrently.
type Cache struct {
	most    int64
	entries cache.Cache[key, *entry]
	now     func() time.Time
}

// key is a digest: the cache holds no header of a request.
type key [sha256.Size]byte

// perEntry is roughly what an entry takes beside its body and header, in bytes.
const perEntry = 512

// New returns a cache of at most so many bytes. No answer takes more than an eighth of them.
func New(most int64, now func() time.Time) (*Cache, error) {
	entries, err := cache.NewWeighed(uint64(max(0, most)), func(_ key, e *entry) uint32 { return uint32(e.size()) })
	if err != nil {
		return nil, err
	}
	return &Cache{most: most, entries: entries, now: now}, nil
}

// A Partition is who shares answers.
type Partition struct {
	Scope   string // a write of one scope leaves the answers of another as they are
	Name    string // within the scope
	Private bool   // all its callers are one user to the host: what only a shared cache must not keep may be kept
	// Outage reports whether an error of the transport is one of the host or the network, for which a stale answer may stand in.
	Outage func(error) bool
}

// An Answer is a response and where it came from.
type Answer struct {
	*http.Response
	Source string
	At     time.Time // when the host gave it, or last said that it has not changed

	keep func()
}

// Keep has the cache keep the answer, whose body was read to its end and is good. Without it nothing is kept.
func (a *Answer) Keep() {
	if a.keep != nil {
		a.keep()
	}
}

// RoundTrip answers the request from the cache or through the transport. The request's own conditions and ranges go past the cache.
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
		if updated == nil { // it validates another one
			c.entries.Invalidate(k)
			return c.RoundTrip(r, p, t)
		}
		c.put(k, updated)
		return &Answer{Response: updated.response(r, received), Source: Revalidated, At: received}, nil
	}
	return c.live(r, p, answer, times{now, received}), nil
}

// live returns an answer of the host, which is kept if it may and Keep is called.
func (c *Cache) live(r *http.Request, p Partition, answer *http.Response, at times) *Answer {
	a := &Answer{Response: answer, Source: Live, At: at.received}
	e := storable(r, answer, p, at)
	k := keyOf(r, p)
	if e == nil {
		// RFC 9111, section 4: an answer that is not kept makes one that was kept before no better.
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

// Invalidate forgets all answers of the scope for the address of a request that the host did and that may have changed it (RFC 9111, section 4.4).
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

// Forget forgets all answers of the scope.
func (c *Cache) Forget(scope string) {
	for k, e := range c.entries.All() {
		if e.scope == scope {
			c.entries.Invalidate(k)
		}
	}
}

// address is the request's address without its query: a credential may stand there.
func address(r *http.Request) string {
	return strings.ToLower(r.URL.Scheme+"://"+r.URL.Host) + r.URL.EscapedPath()
}

func keyOf(r *http.Request, p Partition) (k key) {
	h := sha256.New()
	write := func(parts ...string) {
		for _, s := range parts {
			_, _ = io.WriteString(h, strconv.Itoa(len(s))+":"+s) // lengths keep the parts apart
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

// conditional reports whether the request asks for more than the cache understands.
func conditional(h http.Header) bool {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range",
		"Range", "Cache-Control", "Pragma"} {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// outage reports the statuses for which RFC 5861, section 4, lets a stale answer stand in.
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
	left  int // below zero: too much
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

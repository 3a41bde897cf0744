package httpcache

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// times holds the times at which a request was sent and its answer received.
type times struct{ asked, received time.Time }

// A place is an address within a scope.
type place struct{ scope, address string }

// An entry is a cached answer. It is immutable once it is in the cache.
type entry struct {
	place
	status int
	header http.Header
	body   []byte

	private  bool
	at       times
	age      time.Duration // age when it was received: RFC 9111's corrected_initial_age
	lifetime time.Duration
}

// size returns roughly how many bytes the entry takes.
func (e *entry) size() int {
	n := perEntry + len(e.address) + len(e.body)
	for name, values := range e.header {
		for _, v := range values {
			n += len(name) + len(v) + 64
		}
	}
	return n
}

// storable returns the entry for an answer, without its body, or nil if the answer must not be stored (RFC 9111,
// section 3) or no later request could use it.
func storable(r *http.Request, answer *http.Response, p Partition, at times) *entry {
	private := p.Private
	d := directivesOf(answer.Header)
	switch answer.StatusCode {
	case http.StatusOK, http.StatusNonAuthoritativeInfo, http.StatusNoContent, http.StatusNotFound, http.StatusGone:
	default:
		return nil
	}
	switch {
	case d.has("no-store"), slices.Contains(fields(answer.Header["Vary"]), "*"):
		return nil
	case !private && (d.has("private") || len(answer.Header["Set-Cookie"]) > 0):
		return nil
	case !private && (len(r.Header["Authorization"]) > 0 || len(r.Header["Cookie"]) > 0) && !d.has("public") &&
		!d.has("s-maxage") && !d.has("must-revalidate"):
		return nil // section 3.5
	}
	e := newEntry(place{p.Scope, address(r)}, answer.StatusCode, kept(answer.Header), private, at)
	if e.lifetime <= 0 && e.header.Get("Etag") == "" && e.header.Get("Last-Modified") == "" {
		return nil
	}
	return e
}

func newEntry(of place, status int, header http.Header, private bool, at times) *entry {
	e := &entry{place: of, status: status, header: header, private: private, at: at}
	e.age, e.lifetime = initialAge(header, at), lifetime(header, private, at.received)
	return e
}

// kept returns the header without fields that concern a single connection (RFC 9111, section 3.1).
func kept(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range append(fields(h["Connection"]), "connection", "keep-alive", "proxy-connection",
		"transfer-encoding", "te", "upgrade", "trailer",
		"proxy-authenticate", "proxy-authentication-info", "proxy-authorization") {
		h.Del(name)
	}
	return h
}

// lifetime returns how long an answer is fresh (RFC 9111, section 4.2.1). It is zero if the host does not specify it or
// contradicts itself.
func lifetime(h http.Header, private bool, received time.Time) time.Duration {
	d := directivesOf(h)
	if seconds, ok := d.seconds("s-maxage"); ok && !private {
		return seconds
	}
	if seconds, ok := d.seconds("max-age"); ok {
		return seconds
	}
	expires := h["Expires"]
	if len(expires) != 1 {
		return 0
	}
	end, err := http.ParseTime(expires[0])
	if err != nil {
		return 0 // section 5.3: an invalid date such as "0" is in the past
	}
	return min(end.Sub(dateOf(h, received)), longest)
}

// initialAge returns the age of an answer when it was received (RFC 9111, section 4.2.3).
func initialAge(h http.Header, at times) time.Duration {
	apparent := max(0, at.received.Sub(dateOf(h, at.received)))
	said := time.Duration(0)
	if fields := h["Age"]; len(fields) > 0 {
		said, _ = deltaSeconds(strings.TrimSpace(fields[0]))
	}
	return min(max(apparent, said+max(0, at.received.Sub(at.asked))), longest)
}

func dateOf(h http.Header, received time.Time) time.Time {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		return at
	}
	return received
}

func (e *entry) currentAge(now time.Time) time.Duration {
	return e.age + min(max(0, now.Sub(e.at.received)), longest)
}

func (e *entry) fresh(now time.Time) bool {
	return !directivesOf(e.header).has("no-cache") && e.currentAge(now) < e.lifetime
}

// standsIn reports whether the answer may be used although it is stale and could not be validated: the host allowed
// that for some time (RFC 5861, section 4) and did not forbid it (RFC 9111, section 4.2.4).
func (e *entry) standsIn(now time.Time) bool {
	d := directivesOf(e.header)
	if d.has("no-cache") || d.has("must-revalidate") || !e.private && (d.has("proxy-revalidate") || d.has("s-maxage")) {
		return false
	}
	more, ok := d.seconds("stale-if-error")
	return ok && e.currentAge(now)-max(0, e.lifetime) <= more
}

// conditions adds headers that ask the host whether the answer has changed (RFC 9111, section 4.3.1).
func (e *entry) conditions(h http.Header) {
	if tag := e.header.Get("Etag"); tag != "" {
		h.Set("If-None-Match", tag)
	}
	if at := e.header.Get("Last-Modified"); at != "" {
		h.Set("If-Modified-Since", at)
	}
}

// freshened returns the entry updated by a 304 (RFC 9111, sections 3.2 and 4.3.4), or nil if the 304 is about another
// answer.
func (e *entry) freshened(h http.Header, asked, received time.Time) *entry {
	if tag := h.Get("Etag"); tag != "" && strings.TrimPrefix(tag, "W/") != strings.TrimPrefix(e.header.Get("Etag"),
		"W/") {
		return nil
	}
	header := maps.Clone(e.header)
	header.Del("Age")
	header.Del("Date")
	for name, values := range kept(h) {
		if !strings.HasPrefix(name, "Content-") {
			header[name] = values
		}
	}
	updated := newEntry(e.place, e.status, header, e.private, times{asked, received})
	updated.body = e.body
	return updated
}

// response returns the entry as an answer to the request, with its current age (RFC 9111, section 5.1).
func (e *entry) response(r *http.Request, now time.Time) *http.Response {
	header := e.header.Clone()
	header.Set("Age", strconv.FormatInt(int64(e.currentAge(now)/time.Second), 10))
	return &http.Response{Status: strconv.Itoa(e.status) + " " + http.StatusText(e.status), StatusCode: e.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(e.body)), ContentLength: int64(len(e.body)), Request: r}
}

package provider

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// seen carries data between send and the transport of its request, in the context: what to send, and what the transport
// observed.
type seen struct {
	model, trace string
	body         []byte // the body to send
	stream       bool   // the reply is a stream of events

	status     int
	header     http.Header
	retryAfter time.Duration
	location   string // target of a redirect
	refused    []byte // body of a reply with a status from 300 on
	head       []byte // beginning of a success reply
	tooLarge   bool   // the reply exceeded MaxReply
	partial    bool   // part of a reply arrived before the error

	charged
}

type seenKey struct{}

// doer is the HTTP client for go-openai. It sends the body in seen, bounds replies, and records refusals.
type doer struct {
	client *http.Client
	base   base
	header http.Header
	limit  int64
}

var errRefused = errors.New("refused") // the refusal is in seen

// Do sends the request that go-openai has built, with the body in seen. For a refusal, or an error in place of a reply,
// it returns errRefused and records the details in seen. It asks the charge before it sends anything.
func (d *doer) Do(r *http.Request) (*http.Response, error) {
	s, _ := r.Context().Value(seenKey{}).(*seen)
	if s == nil {
		return nil, errors.New("provider: a request that nobody asked for") // go-openai sends none by itself
	}
	d.dress(r, s)
	r, err := s.reserve(r)
	if err != nil {
		return nil, err
	}
	response, err := d.client.Do(r)
	if err != nil {
		return nil, err
	}
	s.status, s.header = response.StatusCode, response.Header
	s.retryAfter = retryAfter(response.Header, time.Now())
	if response.StatusCode < 300 {
		response.Body = &boundedBody{ReadCloser: response.Body, left: d.limit, seen: s}
		if response, err = readReply(response, s); err != nil {
			return nil, err
		}
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	s.location = locationOf(response)
	s.refused, _ = io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // a partial body is used as it is
	return nil, errRefused
}

// dress sets the body, query and headers of the request.
func (d *doer) dress(r *http.Request, s *seen) {
	if s.body != nil {
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = int64(len(s.body))
	}
	r.URL.RawQuery = d.base.query
	if s.stream {
		r.Header.Set("Accept", "text/event-stream")
	}
	if s.trace != "" {
		r.Header.Set("Traceparent", s.trace)
	}
	maps.Copy(r.Header, d.header)
}

// locationOf returns the absolute target of a redirect, or "".
func locationOf(r *http.Response) string {
	if u, err := r.Location(); err == nil {
		return u.String()
	}
	return ""
}

// retryAfter parses Retry-After (seconds or a date) and OpenAI's retry-after-ms. It returns 0 if there is neither.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// A boundedBody reads at most left bytes, and fails with errTooLarge if more follow. It records the beginning in
// seen.head.
type boundedBody struct {
	io.ReadCloser
	left int64
	seen *seen
}

var errTooLarge = errors.New("reply too large")

// maxHead is how many bytes of a reply are kept, to recognize one that cannot be read.
const maxHead = 512

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// A reply of exactly the limit is not too large.
		if n, err := b.ReadCloser.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		b.seen.tooLarge = true
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if missing := maxHead - len(b.seen.head); missing > 0 {
		b.seen.head = append(b.seen.head, p[:min(n, missing)]...)
	}
	return n, err
}

package provider

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// seen is what a request's transport noticed, handed back through the context.
type seen struct {
	trace      string
	status     int
	retryAfter time.Duration
	tooLarge   bool
	partial    bool // part of a reply came before the error

	charged
}

type seenKey struct{}

// doer is the HTTP client that go-openai is given: it bounds replies, and notes status and Retry-After.
type doer struct {
	client *http.Client
	limit  int64
}

func (d *doer) Do(r *http.Request) (*http.Response, error) {
	s, _ := r.Context().Value(seenKey{}).(*seen)
	if s == nil {
		s = &seen{}
	}
	if s.trace != "" {
		r.Header.Set("Traceparent", s.trace)
	}
	r, err := s.reserve(r)
	if err != nil {
		return nil, err
	}
	response, err := d.client.Do(r)
	if err != nil {
		return nil, err
	}
	s.status = response.StatusCode
	s.retryAfter = retryAfter(response.Header, time.Now())
	response.Body = &boundedBody{ReadCloser: response.Body, left: d.limit, seen: s}
	if response.StatusCode >= 300 {
		return response, nil
	}
	return readReply(response, s)
}

// retryAfter reads Retry-After (seconds or a date) and OpenAI's retry-after-ms; 0 when there is none.
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

type boundedBody struct {
	io.ReadCloser
	left int64
	seen *seen
}

var errTooLarge = errors.New("reply too large")

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// Only a reply that goes on is too large.
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
	return n, err
}

package recurgent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/clients/go/api"
)

const (
	firstPause   = 100 * time.Millisecond // before the first retry; each further one waits twice as long
	longestPause = 10 * time.Second
)

// A Problem is an error response of the daemon (RFC 9457). Code is stable and meant for programs. It is "" if something
// other than recurgentd answered.
type Problem struct {
	api.Problem
	RetryAfter time.Duration // 0 if the daemon gave none
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("%d %s", p.Status, p.Title)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	return text
}

// passing reports whether the same request may be accepted later.
func (p *Problem) passing() bool {
	return slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout}, p.Status)
}

// refused reports whether the request had no effect and may be accepted later.
func (p *Problem) refused() bool {
	return p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable
}

// A doer sends requests, with retries. A status of 300 or more gives a *Problem. It is safe for concurrent use.
type doer struct {
	token   string
	retries int
	http    http.Client
}

// Do sends a request. It repeats a request that was refused temporarily, and one whose reply was lost if repeating it
// has no further effect (GET, HEAD, or with an idempotency key).
func (d *doer) Do(r *http.Request) (*http.Response, error) {
	repeatable := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Idempotency-Key") != ""
	pause := firstPause
	for try := 0; ; try++ {
		resp, err := d.once(r)
		if err == nil || try == d.retries || r.Context().Err() != nil {
			return resp, err
		}
		wait := pause
		if p, ok := err.(*Problem); ok { // not wrapped yet
			if !p.refused() && !(repeatable && p.passing()) {
				return nil, err
			}
			wait = max(pause, p.RetryAfter)
		} else if !repeatable {
			return nil, err
		}
		if err := sleep(r.Context(), min(wait, longestPause)); err != nil {
			return nil, err
		}
		pause *= 2
	}
}

// once sends the request a single time. The original keeps its body for a repetition.
func (d *doer) once(r *http.Request) (*http.Response, error) {
	attempt := r.Clone(r.Context())
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		attempt.Body = body
	}
	if d.token != "" {
		attempt.Header.Set("Authorization", "Bearer "+d.token)
	}
	resp, err := d.http.Do(attempt)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	p := &Problem{}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // without a readable body, only the status is known
	if json.Unmarshal(text, &p.Problem) != nil {
		p.Title = http.StatusText(resp.StatusCode)
	}
	p.Status = resp.StatusCode
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return nil, p
}

// sleep waits for d. If ctx ends first, it returns the cause.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// flaky answers with the status a number of times, and then with 200.
type flaky struct {
	status, times int
	after         string
	asked         atomic.Int64
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if int(f.asked.Add(1)) > f.times {
		return
	}
	if f.after != "" {
		w.Header().Set("Retry-After", f.after)
	}
	w.WriteHeader(f.status)
}

// clocked makes the client's waits pass at once on a clock of its own, and returns them.
func clocked(c *Client) *[]time.Duration {
	now, waits := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), &[]time.Duration{}
	c.now = func() time.Time { return now }
	c.sleep = func(_ context.Context, d time.Duration) error {
		*waits, now = append(*waits, d), now.Add(d)
		return nil
	}
	return waits
}

// The daemon waits as long as the host asks, and repeats requests that may be repeated.
func TestRetry(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, c := range map[string]struct {
		f      *flaky
		method string
		retry  int
		end    time.Duration // end of the call; 0 means none
		status int
		waits  []time.Duration
	}{
		"not asked for": {f: &flaky{status: 429, times: 1, after: "1"}, status: 429},
		"seconds": {f: &flaky{status: 429, times: 2, after: "3"}, retry: 3, status: 200,
			waits: []time.Duration{3 * s, 3 * s}},
		"a date": {f: &flaky{status: 503, times: 1, after: "Sun, 22 Nov 2026 12:00:07 GMT"}, retry: 1,
			status: 200, waits: []time.Duration{7 * s}},
		"a date that is over": {f: &flaky{status: 503, times: 1, after: "Sun, 22 Nov 2020 12:00:07 GMT"}, retry: 1,
			status: 200, waits: []time.Duration{leastRetry}},
		"zero": {f: &flaky{status: 429, times: 1, after: "0"}, retry: 1, status: 200,
			waits: []time.Duration{leastRetry}},
		"no word": {f: &flaky{status: 429, times: 3}, retry: 3, status: 200,
			waits: []time.Duration{s, 2 * s, 4 * s}},
		"nonsense": {f: &flaky{status: 429, times: 1, after: "-3"}, retry: 3, status: 200,
			waits: []time.Duration{s}},
		"without end": {f: &flaky{status: 429, times: 99, after: "1"}, retry: 99, status: 429,
			waits: slices.Repeat([]time.Duration{s}, maxRetries)},
		"too long": {f: &flaky{status: 429, times: 1, after: "61"}, retry: 1, status: 429},
		"longer than numbers go": {f: &flaky{status: 429, times: 1, after: "99999999999999999999"}, retry: 1,
			status: 429},
		"not within the call": {f: &flaky{status: 429, times: 9, after: "4"}, retry: 9, end: 10 * s, status: 429,
			waits: []time.Duration{4 * s, 4 * s}},
		"another status":    {f: &flaky{status: 500, times: 1, after: "1"}, retry: 1, status: 500},
		"a negative number": {f: &flaky{status: 429, times: 1}, retry: -1, status: 429},
		"HEAD": {f: &flaky{status: 503, times: 1}, method: "HEAD", retry: 1, status: 200,
			waits: []time.Duration{s}},
		"PUT after 503": {f: &flaky{status: 503, times: 1}, method: "PUT", retry: 1, status: 200,
			waits: []time.Duration{s}},
		"POST that was refused": {f: &flaky{status: 429, times: 1}, method: "POST", retry: 1, status: 200,
			waits: []time.Duration{s}},
		"POST that may have been": {f: &flaky{status: 503, times: 1, after: "1"}, method: "POST", retry: 1,
			status: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.f)
			t.Cleanup(server.Close)
			o := DefaultOptions()
			o.Connector = &fakeConnection{host: strings.TrimPrefix(server.URL, "http://"),
				methods: []string{"GET", "POST", "PUT"}}
			client := clientWith(t, o, strings.TrimPrefix(server.URL, "http://"))
			waits := clocked(client)
			who := Caller{Writes: &Ledger{}}
			if c.end > 0 {
				who.End = client.now().Add(c.end)
			}
			a := client.Do(t.Context(), who, recurgent.Request{URL: server.URL, Method: c.method, Retry: c.retry})
			if a.Failure != nil || a.Response.Status != c.status || !slices.Equal(*waits, c.waits) ||
				a.Note.Retries != len(c.waits) || int(c.f.asked.Load()) != len(c.waits)+1 {
				t.Errorf("got %+v, %+v, waits %v after %d requests, want %d, %v", a.Failure, a.Note, *waits,
					c.f.asked.Load(), c.status, c.waits)
			}
		})
	}
}

// With an idempotency key a POST may be repeated after 503. A call that would end during the wait gets the last answer.
func TestRetryOfKeyedWritesAndEndedCalls(t *testing.T) {
	t.Parallel()
	if !repeatable("POST", true, 503) || repeatable("PATCH", false, 503) || repeatable("GET", true, 500) {
		t.Error("a POST with a key may be sent again after 503, a PATCH without may not, and after 500 nothing may")
	}
	f := &flaky{status: 429, times: 9}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	client := clientWith(t, DefaultOptions(), strings.TrimPrefix(server.URL, "http://"))
	client.sleep = func(context.Context, time.Duration) error { return errors.New("the call is over") }
	a := client.Do(t.Context(), Caller{}, recurgent.Request{URL: server.URL, Retry: 5})
	if a.Failure != nil || a.Response.Status != 429 || f.asked.Load() != 1 {
		t.Errorf("got %+v, %+v after %d requests, want the one answer", a.Failure, a.Response, f.asked.Load())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if err := sleep(ctx, time.Hour); !errors.Is(err, over) {
		t.Errorf("got %v, want %v", err, over)
	}
	if err := sleep(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

// A write that was answered with a redirect is done. If the redirect's target asks to retry, the write is not sent
// again.
func TestRetryDoesNotRepeatAWriteBehindARedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		var posts, gets atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				posts.Add(1)
				http.Redirect(w, r, "/status", http.StatusSeeOther)
				return
			}
			gets.Add(1)
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		host := strings.TrimPrefix(server.URL, "http://")
		o := DefaultOptions()
		o.Connector = &fakeConnection{host: host, methods: []string{"GET", "POST"}}
		client := clientWith(t, o, host)
		clocked(client)
		a := client.Do(t.Context(), Caller{Writes: &Ledger{}}, recurgent.Request{URL: server.URL, Method: "POST",
			Retry: 3})
		if a.Failure != nil || a.Response.Status != status || posts.Load() != 1 || gets.Load() != 1 {
			t.Errorf("%d: %+v %+v after %d POST and %d GET", status, a.Failure, a.Response, posts.Load(), gets.Load())
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{"1", "Sun, 22 Nov 2026 12:00:07 GMT", "Sunday, 22-Nov-26 12:00:07 GMT", "-1", "1e9",
		"٣"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		if wait, named := retryAfter(field, now); wait < 0 || !named && wait != 0 {
			t.Error(fmt.Sprintf("%q", field), wait, named)
		}
	})
}

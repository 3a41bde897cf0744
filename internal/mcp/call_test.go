package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// While a model writes, a client with a progress token gets a message at least every ten seconds, and one without a
// token sees that the stream is alive.
func TestLongCallsAreHeardOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stages progress.Log
		began := time.Now()
		var at []time.Duration
		var said []string
		seen := httptest.NewRecorder()
		quiet := &request{out: &answerWriter{ResponseWriter: seen}}
		done := make(chan struct{}, 2)
		go func() {
			report(t.Context(), &stages, &request{}, func(words string) error {
				at, said = append(at, time.Since(began)), append(said, words)
				return nil
			}, nil)
			done <- struct{}{}
		}()
		go func() {
			report(t.Context(), &stages, quiet, nil, nil)
			done <- struct{}{}
		}()
		stages.Add(progress.Forging, map[string]string{"kind": "forge"})
		time.Sleep(time.Minute)
		stages.Add(progress.Running, struct{}{})
		stages.End()
		<-done
		<-done
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap > 10*time.Second {
				t.Errorf("nothing for %v after %q", gap, said[i-1])
			}
		}
		if want := "a model writes the program (56 s so far)"; said[0] != "a model writes the program" || !slices.Contains(said, want) || said[len(said)-1] != "the program runs" {
			t.Errorf("heard %q, want %q too", said, want)
		}
		if n := strings.Count(seen.Body.String(), ": under way\n\n"); n != 7 {
			t.Errorf("the stream shows %q", seen.Body)
		}
		quiet.out.end()
		quiet.out.live()
		if n := strings.Count(seen.Body.String(), "\n\n"); n != 7 {
			t.Errorf("after its end the stream shows %q", seen.Body)
		}
	})
}

// Only its own client can cancel a request, even if the two arrive in reverse order.
func TestRequestsAreCanceledByTheirClient(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := requests{now: func() time.Time { return now }}
	key := func(session, id string) string {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(headerSession, session)
		return requestKey(r, []byte(id))
	}
	over := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	one, done := q.begin(key("s", "1"))
	other, _ := q.begin(key("t", "1"))
	q.cancel(key("s", "2"))
	if over(one) || over(other) {
		t.Error("another's id has canceled a request")
	}
	if q.cancel(key("s", "1")); !over(one) || over(other) {
		t.Errorf("canceled: %v, another client's: %v", over(one), over(other))
	}
	done()
	if early, _ := q.begin(key("s", "2")); !over(early) {
		t.Error("a request that was canceled before it came is under way")
	}
	q.cancel(key("s", "3"))
	now = now.Add(earlyFor)
	if late, _ := q.begin(key("s", "3")); over(late) {
		t.Error("a request is canceled by what came long before it")
	}
	if nobody, _ := q.begin(key("", "1")); nobody != nil {
		t.Error("a request without a session can be canceled")
	}
	for range 2 * earlyMost {
		q.cancel(key("u", newSession()))
	}
	if len(q.early) > earlyMost {
		t.Errorf("%d early cancellations are remembered", len(q.early))
	}
}

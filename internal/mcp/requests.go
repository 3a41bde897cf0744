package mcp

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// requests are the HTTP requests in progress, so that notifications/cancelled can cancel one. The SDK handles each
// request on its own and cannot relate them. A client is identified by the session id that initialize gave it. The
// methods may be called concurrently.
type requests struct {
	now func() time.Time

	mu    sync.Mutex
	all   map[string]chan struct{} // by requestKey; the channel is closed on cancellation; guarded by mu
	early map[string]time.Time     // requests that were canceled before they arrived; guarded by mu
}

// Bounds of early: a cancellation may overtake its request, since the two are sent separately.
const (
	earlyFor  = 10 * time.Second
	earlyMost = 1000
)

// begin registers a request. canceled is closed when the client cancels it; the caller must call done at its end. A
// request with the key "" cannot be canceled.
func (q *requests) begin(key string) (canceled <-chan struct{}, done func()) {
	if key == "" {
		return nil, func() {}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = map[string]chan struct{}{}
	}
	end := make(chan struct{})
	if at, was := q.early[key]; was {
		delete(q.early, key)
		if q.now().Sub(at) < earlyFor {
			close(end)
			return end, func() {}
		}
	}
	q.all[key] = end
	return end, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.all[key] == end {
			delete(q.all, key)
		}
	}
}

// cancel cancels the request, or marks it as canceled early.
func (q *requests) cancel(key string) {
	if key == "" {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if end := q.all[key]; end != nil {
		delete(q.all, key)
		close(end)
		return
	}
	// dropping all of them bounds the memory; at worst a cancellation is lost
	if q.early == nil || len(q.early) >= earlyMost {
		q.early = map[string]time.Time{}
	}
	q.early[key] = q.now()
}

// newSession returns a random session id, which other clients cannot guess.
func newSession() string { return rand.Text() }

// requestKey identifies a request of a client by owner, session and id. It returns "" if any of them is missing or too
// long.
func requestKey(r *http.Request, id json.RawMessage) string {
	session := r.Header.Get(headerSession)
	if session == "" || len(session) > 128 || len(id) == 0 || len(id) > 128 {
		return ""
	}
	return owner(r.Context()) + "\x00" + session + "\x00" + string(id)
}

// cancelKey returns the requestKey of the request that notifications/cancelled names.
func cancelKey(r *http.Request, params json.RawMessage) string {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	return requestKey(r, p.RequestID)
}

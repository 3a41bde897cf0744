package mcp

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// requests are those under way over HTTP, for clients that cancel one by notifications/cancelled: the protocol's library serves each request
// by itself and knows of no other. A client is known by the session that initialize has given it. Its methods may be called concurrently.
type requests struct {
	now func() time.Time

	mu    sync.Mutex
	all   map[string]chan struct{} // guarded by mu, as early
	early map[string]time.Time     // canceled before they were here
}

// Bounds of what is known of cancellations that came before their request: the two travel apart.
const (
	earlyFor  = 10 * time.Second
	earlyMost = 1000
)

// begin notes a request under way. canceled is closed when its client cancels it; done must be called when it has ended. "" is a request that
// nobody can cancel.
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

// cancel cancels the request.
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
	if q.early == nil || len(q.early) >= earlyMost {
		q.early = map[string]time.Time{}
	}
	q.early[key] = q.now()
}

func newSession() string { return rand.Text() }

// requestKey names a client's request; "" where nobody knows whose it is.
func requestKey(r *http.Request, id json.RawMessage) string {
	session := r.Header.Get(headerSession)
	if session == "" || len(session) > 128 || len(id) == 0 || len(id) > 128 {
		return ""
	}
	return owner(r.Context()) + "\x00" + session + "\x00" + string(id)
}

// cancelKey is requestKey of the request that notifications/cancelled names.
func cancelKey(r *http.Request, params json.RawMessage) string {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	return requestKey(r, p.RequestID)
}

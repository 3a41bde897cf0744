package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
)

// A reply is the answer to a request. status is 0 if none arrived; the request may have been fulfilled or not.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// doubtful reports whether the request may have been fulfilled although the reply does not state it: no answer arrived,
// or the store does not know whether the change is kept.
func (r reply) doubtful() bool {
	return r.status == 0 || r.status >= 500 || r.status == http.StatusConflict
}

// into decodes the body.
func (r reply) into(v any) error {
	if err := json.Unmarshal(r.body, v); err != nil {
		return fmt.Errorf("%d %s: %w", r.status, r.body, err)
	}
	return nil
}

// A client is a client or a person. One goroutine uses it.
type client struct {
	name, token string
	pace        time.Duration // delay until it notices a broken connection; differs between clients
	space       *space
	sessions    []*session
	files       []*kept
	keys        int
	steps       chan Step
}

// patience is how long a client waits for a reply. A request that takes longer fails the life.
const patience = 30 * time.Minute

// A request is what a client sends.
type request struct {
	method, path string
	body         any // sent as JSON; a string is sent unchanged; may be nil
	key          string
	leave        time.Duration // the client hangs up after this time; 0 means patience
}

// send sends a request to the daemon that serves at the moment.
func (w *World) send(c *client, q request) reply {
	body, media := []byte(nil), "application/json"
	switch v := q.body.(type) {
	case nil:
	case string:
		body, media = []byte(v), "text/plain"
	default:
		body, _ = json.Marshal(v) // maps of plain values: cannot fail
	}
	wait := q.leave
	if wait == 0 {
		wait = patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, "http://127.0.0.1:8420"+q.path, bytes.NewReader(body))
	if err != nil {
		panic(err) // paths are made of ids and constants
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		r.Header.Set("Content-Type", media)
	}
	if q.key != "" {
		r.Header.Set("Idempotency-Key", q.key)
	}
	w.line("%s > %s %s %s", c.name, q.method, q.path, body)
	got, err := w.exchange(r)
	w.line("%s < %d %s %v", c.name, got.status, got.body, err)
	if err != nil && q.leave == 0 && ctx.Err() != nil {
		w.fail("%s %s was not answered within %s", q.method, q.path, patience)
	}
	if err != nil {
		time.Sleep(c.pace)
	}
	return got
}

// exchange sends the request. A reply that broke off counts as missing.
func (w *World) exchange(r *http.Request) (reply, error) {
	resp, err := w.reach().Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	return reply{resp.StatusCode, resp.Header, body}, nil
}

// reach returns the way to the daemon that serves at the moment.
func (w *World) reach() *http.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.http
}

// connect returns a client of HTTP that reaches the daemon at the wire.
func connect(wire *apptest.Wire) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: wire.Dial, MaxIdleConnsPerHost: 100,
		DisableCompression: true}}
}

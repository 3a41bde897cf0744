package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// A Call is one call as a client saw it.
type Call struct {
	Session, Method string
	Key             string // all its requests carry it; "" for a single request that is never repeated
	Sent            int    // requests
	Acked           bool   // a reply with an outcome came
	Refused         bool   // it was not acknowledged, and each answer said that nothing ran
	ID              string // of the reply
	OK              bool
	Value           any
	Replica         string // that the reply names, "" where there is one daemon
}

// A Load is a number of clients with sessions, whose calls are recorded. Its methods may be called concurrently.
type Load struct {
	Addresses []string      // of daemons, host and port; each request goes to one of them
	Patience  time.Duration // of one request

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced with each entry
	calls    []*Call
	acked    int
	failures int // requests without a usable answer
	problems []string
	epoch    int // names the methods that are new at the moment
}

// A Session is one that clients of a load call.
type Session struct {
	ID    string
	Keyed bool // calls carry an Idempotency-Key, and are repeated until they are acknowledged
}

// Run has two clients call each session until ctx ends. Calls that are repeated are brought to their end first, so that
// daemons must be within reach then.
func (l *Load) Run(ctx context.Context, seed uint64, sessions []Session) {
	var clients sync.WaitGroup
	for i, s := range sessions {
		for j := range 2 {
			clients.Go(func() {
				c := &client{load: l, session: s, random: rand.New(rand.NewPCG(seed, uint64(2*i+j))), http: &http.Client{Timeout: l.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
				defer c.http.CloseIdleConnections()
				for ctx.Err() == nil {
					c.call(ctx)
				}
			})
		}
	}
	clients.Wait()
}

// NextEpoch makes the methods that clients call now and then new ones, which must be forged.
func (l *Load) NextEpoch() { l.change(func() { l.epoch++ }) }

// Calls returns what was recorded, and what clients were answered that no daemon may answer.
func (l *Load) Calls() (calls []*Call, problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls, l.problems
}

// Acked waits until that many more calls have been acknowledged, and reports whether they were before ctx ended.
func (l *Load) Acked(ctx context.Context, more int) bool {
	return l.await(ctx, more, func() int { return l.acked })
}

// Failed waits until that many more requests had no usable answer.
func (l *Load) Failed(ctx context.Context, more int) bool {
	return l.await(ctx, more, func() int { return l.failures })
}

func (l *Load) await(ctx context.Context, more int, count func() int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for want := count() + more; count() < want; {
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

func (l *Load) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// A client makes one call after the other in a session.
type client struct {
	load    *Load
	session Session
	random  *rand.Rand
	http    *http.Client
	made    int
}

// An answer is what a daemon replied to one request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// call makes one call. When ctx ends a call that may be repeated still is, so that its end is known.
func (c *client) call(ctx context.Context) {
	call, body := c.next()
	c.load.change(func() { c.load.calls = append(c.load.calls, call) })
	refused := true
	for try := 0; ; try++ {
		call.Sent++
		a, err := c.send(call, body)
		switch {
		case err != nil:
			refused = false // nobody knows whether it ran
			c.load.change(func() { c.load.failures++ })
		case a.status == http.StatusOK:
			c.acknowledge(call, body, a)
			return
		case !mayRepeat(a.status):
			c.load.change(func() {
				c.load.problems = append(c.load.problems, fmt.Sprintf("%s %s: %d %s", call.Session, call.Method, a.status, a.body))
			})
		default:
			refused = refused && a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != ""
			c.load.change(func() { c.load.failures++ })
		}
		if call.Key == "" || try > 5000 {
			c.load.change(func() { call.Refused = refused })
			c.pause(ctx, try)
			return
		}
		c.pause(context.Background(), try)
	}
}

// mayRepeat: the daemon, or a proxy before it, is not ready, or the first request with this key still runs.
func mayRepeat(status int) bool {
	switch status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// pause keeps clients from asking daemons that are away as fast as they can.
func (c *client) pause(ctx context.Context, try int) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(min(try+1, 20)) * 10 * time.Millisecond):
	}
}

// next chooses what to call: mostly the counter, which changes the context, sometimes a method that is new at the moment,
// and sometimes one whose first program fails and is repaired.
func (c *client) next() (*Call, []byte) {
	c.load.mu.Lock()
	epoch := c.load.epoch
	c.load.mu.Unlock()
	call, arg := &Call{Session: c.session.ID, Method: "inc"}, any(1)
	switch c.random.IntN(16) {
	case 0:
		call.Method, arg = fmt.Sprintf("make%d", epoch), c.made
	case 1:
		call.Method, arg = fmt.Sprintf("flaky%d", epoch), []any{"good", "bad"}[c.random.IntN(2)]
	}
	if c.made++; c.session.Keyed {
		call.Key = fmt.Sprintf("%s-%d-%d", c.session.ID, c.random.Uint64(), c.made)
	}
	body, _ := json.Marshal(map[string]any{"method": call.Method, "args": []any{arg}}) // numbers and texts
	return call, body
}

func (c *client) send(call *Call, body []byte) (answer, error) {
	address := c.load.Addresses[c.random.IntN(len(c.load.Addresses))]
	req, err := http.NewRequest(http.MethodPost, "http://"+address+"/v1/sessions/"+call.Session+"/calls", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if call.Key == "" {
		req.GetBody = nil // the transport repeats none of these by itself
	} else {
		req.Header.Set("Idempotency-Key", call.Key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, data}, err
}

// acknowledge records the reply. Now and then it asks again with the same key, which must bring the same reply.
func (c *client) acknowledge(call *Call, body []byte, a answer) {
	problem := ""
	if call.Key != "" && c.random.IntN(16) == 0 {
		call.Sent++
		if again, err := c.send(call, body); err == nil && again.status == http.StatusOK && !bytes.Equal(again.body, a.body) {
			problem = fmt.Sprintf("the key %s brought %s, then %s", call.Key, a.body, again.body)
		}
	}
	var reply struct {
		ID      string `json:"call_id"`
		Outcome struct {
			OK    bool
			Value any
		}
	}
	if err := json.Unmarshal(a.body, &reply); err != nil || reply.ID == "" {
		problem = fmt.Sprintf("%s: not a reply: %.300s", call.Session, a.body)
	}
	c.load.change(func() {
		call.Acked, call.ID, call.OK, call.Value, call.Replica = true, reply.ID, reply.Outcome.OK, reply.Outcome.Value, a.header.Get("Recurgent-Replica")
		c.load.acked++
		if problem != "" {
			c.load.problems = append(c.load.problems, problem)
		}
	})
}

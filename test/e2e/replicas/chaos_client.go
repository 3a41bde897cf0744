package replicas

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	role            = "counter"
	namespaceHeader = "Recurgent-Namespace"
)

// capped is the namespace whose tokens have a cap. In it, and nowhere else, clients call methods that cost much to
// forge.
const capped = "capped"

// counter is the method that counts in a session's context.
func counter(namespace string) string {
	if namespace == capped {
		return "add"
	}
	return "inc"
}

// A client makes one call after the other in a session.
type client struct {
	load    *Load
	session Session
	random  *rand.Rand
	http    *http.Client
	made    int
}

func newHTTP(patience time.Duration) *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
}

// An answer is what a daemon replied to one request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// call makes the call that choose fills in, with the argument that it returns. When ctx ends a call that may be
// repeated still is, so that its end is known.
func (c *client) call(ctx context.Context, choose func(*Call) (arg any)) *Call {
	call := &Call{Session: c.session.ID}
	arg := choose(call)
	if c.made++; c.session.Keyed {
		call.Key = fmt.Sprintf("%s-%d-%d", c.session.ID, c.random.Uint64(), c.made)
	}
	body, _ := json.Marshal(map[string]any{"method": call.Method, "args": []any{arg}}) // numbers and texts
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
			return call
		case !mayRepeat(a.status):
			c.load.problem("%s %s: %d %s", call.Session, call.Method, a.status, a.body)
		default:
			refused = refused && a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != ""
			c.load.change(func() { c.load.failures++ })
		}
		if call.Key == "" || try > 5000 {
			c.load.change(func() { call.Refused = refused })
			c.pause(ctx, try)
			return call
		}
		c.pause(context.Background(), try)
	}
}

// mayRepeat: the daemon, or a proxy before it, is not ready, or the first request with this key still runs.
func mayRepeat(status int) bool {
	switch status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
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

// next chooses what to call: mostly the counter, which changes the context, sometimes a method that is new at the
// moment, and sometimes one whose first program fails and is repaired. Where tokens have a cap, it is often one that
// costs much.
func (c *client) next(call *Call) (arg any) {
	c.load.mu.Lock()
	epoch := c.load.epoch
	c.load.mu.Unlock()
	switch n := c.random.IntN(16); {
	case n < 4 && c.session.Namespace == capped && epoch > 0:
		call.Method, arg = fmt.Sprintf("cost%d_%d", epoch, n), fmt.Sprint(c.made)
		call.Want = arg
	case n < 2 && c.session.Namespace == "":
		call.Method, arg = fmt.Sprintf("make%d", epoch), fmt.Sprint(c.made)
		call.Want = arg
	case n < 4 && c.session.Namespace == "":
		call.Method, arg, call.Want = fmt.Sprintf("flaky%d", epoch), "good", "good"
		if c.load.fails(epoch) {
			arg, call.Want = "bad", "fixed"
		}
	default:
		call.Method, arg = counter(c.session.Namespace), 1
	}
	return arg
}

// send makes one request. The transport repeats none of those without a key by itself.
func (c *client) send(call *Call, body []byte) (a answer, err error) {
	address := c.load.Addresses[c.random.IntN(len(c.load.Addresses))]
	began := time.Now()
	defer func() { c.load.Journal.exchange(began, address, call, body, a, err) }()
	req, err := http.NewRequest(http.MethodPost, "http://"+address+"/v1/sessions/"+call.Session+"/calls",
		bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.session.Namespace != "" {
		req.Header.Set(namespaceHeader, c.session.Namespace)
	}
	if call.Key == "" {
		req.GetBody = nil
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
	if call.Key != "" && c.random.IntN(16) == 0 {
		call.Sent++
		if again, err := c.send(call, body); err == nil && again.status == http.StatusOK &&
			!bytes.Equal(again.body, a.body) {
			c.load.problem("the key %s brought %s, then %s", call.Key, a.body, again.body)
		}
	}
	reply, err := readReply(a)
	if err != nil {
		c.load.problem("%s: not a reply: %.300s", call.Session, a.body)
	}
	c.load.change(func() {
		call.Acked, call.Reply = true, reply
		c.load.acked++
	})
}

func readReply(a answer) (Reply, error) {
	var reply struct {
		ID      string `json:"call_id"`
		Outcome struct {
			OK    bool
			Value any
			Error string `json:"error_type"`
		}
		Program struct{ Generation, Checksum string }
	}
	err := json.Unmarshal(a.body, &reply)
	if err == nil && reply.ID == "" {
		err = fmt.Errorf("no id")
	}
	return Reply{ID: reply.ID, OK: reply.Outcome.OK, Value: reply.Outcome.Value, Error: reply.Outcome.Error,
		Generation: reply.Program.Generation, Checksum: reply.Program.Checksum,
		Replica: a.header.Get("Recurgent-Replica")}, err
}

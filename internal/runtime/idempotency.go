package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// claimKey claims the idempotency key for a new call, or returns the answer of the call that used it, marked as
// Replayed. ownSession is set if the call makes its own session. Such a key is not tied to a session with an owning
// replica, and other replicas may receive it too, so it is claimed across replicas as well.
func (r *Runtime) claimKey(ctx context.Context, c *opened, ownSession bool) (CallResult, error) {
	k := c.key
	r.mu.Lock()
	if r.keys[k.Key] {
		r.mu.Unlock()
		return CallResult{}, ErrKeyInUse
	}
	r.keys[k.Key] = true
	r.mu.Unlock()
	if ownSession && r.env.Owners != nil {
		if err := c.shareKey(ctx); err != nil {
			r.releaseKey(c)
			return CallResult{}, err
		}
	}
	was, err := r.env.Store.Replay(ctx, k.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return CallResult{}, nil
	case err == nil && was.BodyHash != k.BodyHash:
		err = ErrKeyReused
	}
	r.releaseKey(c)
	if err != nil {
		return CallResult{}, err
	}
	return replayed(was), nil
}

// replayed returns the stored answer of a call as a CallResult.
func replayed(was store.Idempotent) CallResult {
	var reply struct {
		TraceID string `json:"trace_id"`
		Outcome struct {
			OK bool `json:"ok"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(was.Reply, &reply) // written by the daemon; if it fails, only headers are missing
	return CallResult{Body: was.Reply, CallID: was.CallID, TraceID: reply.TraceID, OK: reply.Outcome.OK, Replayed: true}
}

// releaseKey gives up the call's claim on its idempotency key, if it has one. The stored answer stays.
func (r *Runtime) releaseKey(c *opened) {
	if c.key == nil {
		return
	}
	c.shared.release()
	r.mu.Lock()
	delete(r.keys, c.key.Key)
	r.mu.Unlock()
}

// sharedKeyTTL is how long a key stays in use after the replica that ran a call under it has died.
const sharedKeyTTL = 15 * time.Second

// A sharedKey excludes other replicas from a key.
type sharedKey struct {
	lease store.Lease
	ended chan struct{}
}

// shareKey claims the key for this replica. It returns ErrKeyInUse if another replica runs a call under it.
func (c *opened) shareKey(ctx context.Context) error {
	lease, err := c.Env.Store.Lease(ctx, "idempotency\n"+c.key.Key, store.LeaseOptions{TTL: sharedKeyTTL})
	if errors.Is(err, store.ErrInUse) {
		return ErrKeyInUse
	}
	if err != nil {
		return err
	}
	c.shared = &sharedKey{lease, make(chan struct{})}
	return nil
}

// watchKey cancels the call when its lease on the key is lost, because another replica may then run the call.
func (c *opened) watchKey() {
	if c.shared == nil {
		return
	}
	go func() { // ends with the call
		select {
		case <-c.shared.lease.Lost():
			c.Life.Cancel(interrupt.ErrShutdown)
		case <-c.shared.ended:
		}
	}()
}

func (k *sharedKey) release() {
	if k != nil {
		close(k.ended)
		k.lease.Release()
	}
}

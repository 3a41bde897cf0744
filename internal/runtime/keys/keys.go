// Package keys admits one call per idempotency key at a time, and finds the answer of a call that has used the key. The
// package knows nothing of how calls are answered.
package keys

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
)

// Errors of Claim.
var (
	ErrReused = errors.New("the idempotency key was used with another request")
	ErrInUse  = errors.New("a call with this idempotency key is still running")
)

// Keys are the idempotency keys of the running calls of a namespace. The methods may be called concurrently.
type Keys struct {
	held store.Namespace

	mu   sync.Mutex
	used map[string]bool // guarded by mu
}

// New returns Keys that find answers in the store.
func New(held store.Namespace) *Keys { return &Keys{held: held, used: map[string]bool{}} }

// A Claim holds an idempotency key for a call. The methods of a nil claim do nothing.
type Claim struct {
	Key store.Idempotent

	keys  *Keys
	lease store.Lease // excludes other replicas; nil unless they may receive the same key
	ended chan struct{}
}

// sharedTTL is how long a key stays in use after the replica that ran a call under it has died.
const sharedTTL = 15 * time.Second

// Claim claims the key for a new call. If an earlier call has used it for the same request, Claim returns that call's
// answer and no claim. Calls of one session run on one replica; shared is set if the key is not tied to such a session,
// so that other replicas may receive it, too.
func (k *Keys) Claim(ctx context.Context, key store.Idempotent, shared bool) (*Claim, *store.Idempotent, error) {
	k.mu.Lock()
	if k.used[key.Key] {
		k.mu.Unlock()
		return nil, nil, ErrInUse
	}
	k.used[key.Key] = true
	k.mu.Unlock()
	c := &Claim{Key: key, keys: k}
	was, err := c.find(ctx, shared)
	if was != nil || err != nil {
		c.Release()
		return nil, was, err
	}
	return c, nil, nil
}

// find excludes other replicas from the key if it is shared, and returns the answer of an earlier call.
func (c *Claim) find(ctx context.Context, shared bool) (*store.Idempotent, error) {
	if shared {
		lease, err := c.keys.held.Lease(ctx, "idempotency\n"+c.Key.Key, store.LeaseOptions{TTL: sharedTTL})
		if errors.Is(err, store.ErrInUse) {
			return nil, ErrInUse
		}
		if err != nil {
			return nil, err
		}
		c.lease, c.ended = lease, make(chan struct{})
	}
	switch was, err := c.keys.held.Replay(ctx, c.Key.Key); {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case was.BodyHash != c.Key.BodyHash:
		return nil, ErrReused
	default:
		return &was, nil
	}
}

// Stored returns the key as the call's commit stores it.
func (c *Claim) Stored() *store.Idempotent {
	if c == nil {
		return nil
	}
	return &c.Key
}

// Watch calls lost if this replica loses its lease on the key, because another replica may then run the call. It
// watches until Release.
func (c *Claim) Watch(lost func()) {
	if c == nil || c.lease == nil {
		return
	}
	go func() { // ends with the claim
		select {
		case <-c.lease.Lost():
			lost()
		case <-c.ended:
		}
	}()
}

// Release gives up the claim. The stored answer stays.
func (c *Claim) Release() {
	if c == nil {
		return
	}
	if c.lease != nil {
		close(c.ended)
		c.lease.Release()
	}
	c.keys.mu.Lock()
	delete(c.keys.used, c.Key.Key)
	c.keys.mu.Unlock()
}

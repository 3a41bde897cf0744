package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/store"
)

// claimKey takes the key for a new call, or returns the answer that it was used for, which is Replayed.
func (r *Runtime) claimKey(ctx context.Context, k *store.Idempotent) (CallResult, error) {
	r.mu.Lock()
	if r.keys[k.Key] {
		r.mu.Unlock()
		return CallResult{}, ErrKeyInUse
	}
	r.keys[k.Key] = true
	r.mu.Unlock()
	was, err := r.store.Replay(ctx, k.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return CallResult{}, nil
	case err == nil && was.BodyHash != k.BodyHash:
		err = ErrKeyReused
	}
	r.releaseKey(k)
	if err != nil {
		return CallResult{}, err
	}
	return replayed(was), nil
}

func replayed(was store.Idempotent) CallResult {
	var reply struct {
		TraceID string `json:"trace_id"`
		Outcome struct {
			OK bool `json:"ok"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(was.Reply, &reply) // our own text; without it only headers are missing
	return CallResult{Body: was.Reply, CallID: was.CallID, TraceID: reply.TraceID, OK: reply.Outcome.OK, Replayed: true}
}

func (r *Runtime) releaseKey(k *store.Idempotent) {
	if k == nil {
		return
	}
	r.mu.Lock()
	delete(r.keys, k.Key)
	r.mu.Unlock()
}

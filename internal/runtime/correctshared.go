package runtime

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
)

// correctionTTL is how long the lease on a correction outlives a replica that died during it. It is also the delay
// before a correction is tried again after the store failed.
const correctionTTL = 15 * time.Second

// correctAlone waits until no other replica corrects the method, then excludes them until release is called. It does
// nothing if the store is not shared.
func (r *Runtime) correctAlone(ctx context.Context, k turns.Method) (release func(), err error) {
	if !r.env.Shared {
		return func() {}, nil
	}
	lease, err := r.env.Store.Lease(ctx, "correction:"+k.Role+"\n"+k.Method,
		store.LeaseOptions{TTL: correctionTTL, Wait: true})
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

// Correcting returns a channel that is closed when the running attempt at a correction of the method has ended, in this
// replica or another, or when ctx ends. It returns nil if no attempt is running.
func (r *Runtime) Correcting(ctx context.Context, a *agent.Artifact) (tried <-chan struct{}) {
	k := turns.Method{Role: a.Role, Method: a.MethodName}
	r.corrects.mu.Lock()
	defer r.corrects.mu.Unlock()
	if p := r.corrects.pending[k]; p != nil && p.now != nil {
		return p.now
	}
	if !r.env.Shared || a.Correction == nil || a.Correction.State != agent.CorrectionRunning {
		return nil
	}
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		for now := a; now.Correction != nil && now.Correction.State == a.Correction.State &&
			now.Correction.Attempts == a.Correction.Attempts; {
			select {
			case <-time.After(correctionPoll):
			case <-ctx.Done():
				return
			}
			if read, err := r.env.Store.Artifact(ctx, k.Role, k.Method); err == nil {
				now = read
			}
		}
	}()
	return ended
}

// correctionPoll is the interval of checking whether another replica's attempt has ended.
const correctionPoll = 100 * time.Millisecond

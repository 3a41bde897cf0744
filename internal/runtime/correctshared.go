package runtime

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// correctionTTL is how long a correction outlives a replica that died in it.
const correctionTTL = 15 * time.Second

// correctAlone waits until no other replica corrects the method, and keeps them from it until release is called.
func (r *Runtime) correctAlone(ctx context.Context, k methodKey) (release func(), err error) {
	if !r.o.Shared {
		return func() {}, nil
	}
	lease, err := r.store.Lease(ctx, "correction:"+k.role+"\n"+k.method,
		store.LeaseOptions{TTL: correctionTTL, Wait: true})
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

// Correcting returns a channel that is closed when the running attempt at a correction of the method, here or at another replica, has ended, or ctx
// has; nil if no attempt is running.
func (r *Runtime) Correcting(ctx context.Context, a *agent.Artifact) (tried <-chan struct{}) {
	k := methodKey{a.Role, a.MethodName}
	r.corrects.mu.Lock()
	defer r.corrects.mu.Unlock()
	if p := r.corrects.pending[k]; p != nil && p.now != nil {
		return p.now
	}
	if !r.o.Shared || a.Correction == nil || a.Correction.State != agent.CorrectionRunning {
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
			if read, err := r.store.Artifact(ctx, k.role, k.method); err == nil {
				now = read
			}
		}
	}()
	return ended
}

// correctionPoll is how often is looked whether another replica's attempt has ended.
const correctionPoll = 100 * time.Millisecond

// Package running registers the calls that run in this process. The package knows nothing of how calls are answered.
package running

import (
	"errors"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// ErrDraining means that no new client calls are accepted.
var ErrDraining = errors.New("the daemon is shutting down")

// Calls are the running calls of a namespace, including nested ones. The methods may be called concurrently.
type Calls struct {
	idle chan struct{} // closed, under mu, when draining and no call runs

	mu       sync.Mutex
	calls    map[string]*call.Call // by ID; guarded by mu
	draining bool                  // no new client calls are accepted; guarded by mu
}

// New returns a registry without calls.
func New() *Calls { return &Calls{idle: make(chan struct{}), calls: map[string]*call.Call{}} }

// Enter registers a call as running until Leave. While draining, it accepts only nested calls.
func (r *Calls) Enter(c *call.Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining && c.Depth == 0 {
		return ErrDraining
	}
	r.calls[c.ID] = c
	return nil
}

// Leave ends a call's registration and its progress events. The last call of a draining registry ends the drain.
func (r *Calls) Leave(c *call.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c.ID)
	c.Progress.End()
	if r.draining && len(r.calls) == 0 {
		select {
		case <-r.idle:
		default:
			close(r.idle)
		}
	}
}

// Drain rejects new client calls. idle is closed when no call runs any more. It may be called twice.
func (r *Calls) Drain() (idle <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.draining {
		r.draining = true
		if len(r.calls) == 0 {
			close(r.idle)
		}
	}
	return r.idle
}

// Draining reports whether new client calls are rejected.
func (r *Calls) Draining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// Count returns the number of running calls.
func (r *Calls) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// Cancel cancels the running calls that match.
func (r *Calls) Cancel(match func(*call.Call) bool, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if match(c) {
			c.Life.Cancel(cause)
		}
	}
}

// Running returns the current state of a running call. It returns false if no call with that ID runs.
func (r *Calls) Running(callID string) (agent.LogEntry, bool) {
	if c := r.find(callID); c != nil {
		return c.Entry(), true
	}
	return agent.LogEntry{}, false
}

// RunningCalls returns the running calls in no particular order.
func (r *Calls) RunningCalls() []agent.LogEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]agent.LogEntry, 0, len(r.calls))
	for _, c := range r.calls {
		out = append(out, c.Entry())
	}
	return out
}

// Progress returns the events of a running call, or nil if no call with that ID runs.
func (r *Calls) Progress(callID string) *progress.Log {
	if c := r.find(callID); c != nil {
		return &c.Progress
	}
	return nil
}

// CancelRunning cancels a running call. It returns false if no call with that ID runs.
func (r *Calls) CancelRunning(callID string) bool {
	c := r.find(callID)
	if c != nil {
		c.Life.Cancel(interrupt.ErrCanceled)
	}
	return c != nil
}

// find returns the running call with that ID, or nil.
func (r *Calls) find(callID string) *call.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[callID]
}

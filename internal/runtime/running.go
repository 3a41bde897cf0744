package runtime

import (
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// Idle reports whether nothing runs, waits, or is being forged or corrected, and no failure delays the next forge. An
// idle Runtime can be replaced by a new one without a difference in behaviour.
func (r *Runtime) Idle() bool {
	if running, waiting := r.Load(); running+waiting > 0 {
		return false
	}
	return !r.Corrections.Pending() && !r.forges.UnderWay() && !r.forges.Delayed(r.env.Now())
}

// Load returns the number of running calls, nested ones included, and of calls that wait for their session's turn.
func (r *Runtime) Load() (running, waiting int) {
	waiting = r.sessions.Length()
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(len(r.running)-waiting, 0), waiting
}

// Running returns the current state of a running call. It returns false if no call with that ID runs.
func (r *Runtime) Running(callID string) (agent.LogEntry, bool) {
	if c := r.runningCall(callID); c != nil {
		return c.Entry(), true
	}
	return agent.LogEntry{}, false
}

// RunningCalls returns the running calls in no particular order.
func (r *Runtime) RunningCalls() []agent.LogEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]agent.LogEntry, 0, len(r.running))
	for _, c := range r.running {
		out = append(out, c.Entry())
	}
	return out
}

// Progress returns the events of a running call, or nil if no call with that ID runs.
func (r *Runtime) Progress(callID string) *progress.Log {
	if c := r.runningCall(callID); c != nil {
		return &c.Progress
	}
	return nil
}

// CancelRunning cancels a running call. It returns false if no call with that ID runs.
func (r *Runtime) CancelRunning(callID string) bool {
	c := r.runningCall(callID)
	if c != nil {
		c.Life.Cancel(interrupt.ErrCanceled)
	}
	return c != nil
}

// runningCall returns the running call with that ID, or nil.
func (r *Runtime) runningCall(callID string) *opened {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[callID]
}

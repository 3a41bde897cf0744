package runtime

import (
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// Idle reports whether nothing runs, waits, is forged or corrected, and no failure delays the next forge: a Runtime that is made anew later
// does as this one would.
func (r *Runtime) Idle() bool {
	if running, waiting := r.Load(); running+waiting > 0 {
		return false
	}
	return !r.CorrectionsPending() && !r.flights.underWay() && !r.backoffs.delayed(r.o.Now())
}

// Load counts the running calls, nested ones included, and those that wait for their session's turn.
func (r *Runtime) Load() (running, waiting int) {
	waiting = r.sessions.length()
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(len(r.running)-waiting, 0), waiting
}

// Running returns what is known of a running call; false when no call of that id runs.
func (r *Runtime) Running(callID string) (agent.LogEntry, bool) {
	if c := r.runningCall(callID); c != nil {
		return c.entry(), true
	}
	return agent.LogEntry{}, false
}

// RunningCalls lists the running calls, in no order.
func (r *Runtime) RunningCalls() []agent.LogEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]agent.LogEntry, 0, len(r.running))
	for _, c := range r.running {
		out = append(out, c.entry())
	}
	return out
}

// Progress returns the events of a running call, nil when no call of that id runs.
func (r *Runtime) Progress(callID string) *progress.Log {
	if c := r.runningCall(callID); c != nil {
		return &c.progress
	}
	return nil
}

// CancelRunning ends a running call as canceled; false when no call of that id runs.
func (r *Runtime) CancelRunning(callID string) bool {
	c := r.runningCall(callID)
	if c != nil {
		c.life.cancel(interrupt.ErrCanceled)
	}
	return c != nil
}

func (r *Runtime) runningCall(callID string) *opened {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[callID]
}

// entry is the log entry of a call that still runs.
func (c *opened) entry() agent.LogEntry {
	return agent.LogEntry{Timestamp: agent.FormatTime(c.started), Runtime: "go", SessionID: c.session.ID,
		Owner: agent.LoggedOwner(c.session.Owner), TraceID: c.traceID, CallID: c.id,
		ParentCallID: c.parent, Depth: c.depth, Role: c.role, Model: c.model(), Method: c.method, Args: c.shown().args,
		Kwargs:     c.shown().kwargs,
		DurationMs: agent.Milliseconds(c.r.o.Now().Sub(c.started)), OutcomeStatus: agent.StatusRunning,
		Stage: c.progress.Last(), SandboxLevel: string(c.r.level)}
}

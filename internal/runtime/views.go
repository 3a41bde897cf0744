package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// CallView is a call as GET /v1/calls/{id} tells it: its log entry and, while it is retained, its outcome.
type CallView struct {
	agent.LogEntry
	Outcome *agent.Outcome `json:"outcome"`
}

// CallView returns a call, one under way too. store.ErrNotFound when there is none.
func (r *Runtime) CallView(ctx context.Context, callID string) (CallView, error) {
	r.mu.Lock()
	c := r.running[callID]
	r.mu.Unlock()
	if c != nil {
		return CallView{LogEntry: filled(c.runningEntry())}, nil
	}
	got, err := r.store.Call(ctx, callID)
	if err != nil {
		return CallView{}, err
	}
	if got.Log.Code == "" && got.Log.CodeChecksum != "" {
		got.Log.Code = r.codeOf(ctx, got.Log)
	}
	return CallView{LogEntry: filled(got.Log), Outcome: got.Outcome}, nil
}

// codeOf joins the program to a log entry that holds its checksum only.
func (r *Runtime) codeOf(ctx context.Context, e agent.LogEntry) string {
	a, err := r.store.Artifact(ctx, e.Role, e.Method)
	if err != nil {
		return ""
	}
	for _, g := range a.Generations {
		if g.CodeChecksum == e.CodeChecksum {
			return g.Code
		}
	}
	return ""
}

// runningEntry is what is known of a call before it ends.
func (c *call) runningEntry() agent.LogEntry {
	return agent.LogEntry{Timestamp: agent.FormatTime(c.started), Runtime: "go", SessionID: c.session.ID, TraceID: c.traceID, CallID: c.id,
		ParentCallID: c.parent, Depth: c.depth, Role: c.role, Model: c.model(), Method: c.method, Args: c.maskedArgs, Kwargs: c.maskedKwargs,
		DurationMs: float64(c.r.o.Now().Sub(c.started).Microseconds()) / 1000, OutcomeStatus: agent.StatusRunning, SandboxLevel: string(c.r.level)}
}

// ListCalls returns log entries, newest first; calls under way come first when the query does not exclude them.
func (r *Runtime) ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	var out []agent.LogEntry
	under := q.Before == "" || r.isRunning(q.Before)
	if under && (q.Status == "" || q.Status == agent.StatusRunning) && q.ErrorType == "" && q.WeakSuccess == nil && q.Source == "" {
		out = r.runningEntries(q)
	}
	if under {
		q.Before = "" // all that ended stands behind a call that runs
	}
	if q.Status == agent.StatusRunning {
		return out, nil
	}
	if q.Limit > 0 && len(out) >= q.Limit {
		return out[:q.Limit], nil
	}
	if q.Limit > 0 {
		q.Limit -= len(out)
	}
	ended, err := r.store.ListCalls(ctx, q)
	if err != nil {
		return nil, err
	}
	// A call that ended between the two looks stands in both.
	out = slices.DeleteFunc(out, func(e agent.LogEntry) bool {
		return slices.ContainsFunc(ended, func(d agent.LogEntry) bool { return d.CallID == e.CallID })
	})
	out = append(out, ended...)
	for i := range out {
		out[i] = filled(out[i])
	}
	return out, nil
}

// filled gives lists that the log leaves out where they are empty their form for readers: an empty list.
func filled(e agent.LogEntry) agent.LogEntry {
	for _, list := range []*[]string{&e.HistoryQueryPatterns, &e.CapabilityPatterns, &e.WeakSuccessReasons} {
		if *list == nil {
			*list = []string{}
		}
	}
	if e.AttemptFailures == nil {
		e.AttemptFailures = []agent.AttemptFailure{}
	}
	if e.Args == nil {
		e.Args = []json.RawMessage{}
	}
	if len(e.Kwargs) == 0 {
		e.Kwargs = json.RawMessage("{}")
	}
	return e
}

func (r *Runtime) isRunning(callID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[callID] != nil
}

func (r *Runtime) runningEntries(q store.CallQuery) []agent.LogEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []agent.LogEntry
	is := func(want, got string) bool { return want == "" || want == got }
	for _, c := range r.running {
		if (q.Before == "" || c.id < q.Before) && is(q.SessionID, c.session.ID) && is(q.Role, c.role) && is(q.Method, c.method) && is(q.TraceID, c.traceID) && is(q.ParentCallID, c.parent) &&
			(q.Since.IsZero() || !c.started.Before(q.Since)) && (q.Until.IsZero() || c.started.Before(q.Until)) {
			out = append(out, c.runningEntry())
		}
	}
	slices.SortFunc(out, func(a, b agent.LogEntry) int { return strings.Compare(b.CallID, a.CallID) })
	return out
}

// Cancel ends a call under way as canceled. It returns nil when the call has ended already, store.ErrNotFound when
// there is none.
func (r *Runtime) Cancel(callID string) error {
	r.mu.Lock()
	c := r.running[callID]
	if c != nil {
		c.cancel(errCanceled)
	}
	r.mu.Unlock()
	if c != nil {
		return nil
	}
	_, err := r.store.Call(context.Background(), callID)
	if errors.Is(err, store.ErrGone) {
		return nil
	}
	return err
}

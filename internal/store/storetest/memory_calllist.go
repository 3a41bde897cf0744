package storetest

import (
	"context"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// ListCalls implements Namespace.
func (n *memoryNamespace) ListCalls(_ context.Context, q store.CallQuery) ([]agent.LogEntry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	out := []agent.LogEntry{}
	skip, last := q.Before != "", q.Before
	session := func(id string) (agent.Session, error) {
		if s := n.sessions[id]; s != nil {
			return s.session, nil
		}
		return agent.Session{}, store.ErrNotFound
	}
	for _, c := range slices.Backward(n.calls) {
		if skip {
			skip = c.log.CallID != q.Before
			continue
		}
		if len(out) == q.Limit || q.Scan.Read(last) {
			break
		}
		last = c.log.CallID
		if q.Match(&c.log) && q.Owns(&c.log, session) {
			out = append(out, c.log)
			store.ForgetDebug(&out[len(out)-1], n.policy.Retention.ValueHours, n.now())
		}
	}
	return out, nil
}

// CallsAfter implements Namespace.
func (n *memoryNamespace) CallsAfter(_ context.Context, after string, limit int) ([]agent.LogEntry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	from := 0
	if after != "" {
		if from = 1 + slices.IndexFunc(n.calls, func(c *memoryCall) bool { return c.log.CallID == after }); from == 0 {
			return nil, store.ErrNotFound
		}
	}
	out := []agent.LogEntry{}
	for _, c := range n.calls[from:min(from+limit, len(n.calls))] {
		out = append(out, c.log)
		store.ForgetDebug(&out[len(out)-1], n.policy.Retention.ValueHours, n.now())
	}
	return out, nil
}

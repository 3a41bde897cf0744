package storetest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// CreateSession implements Namespace.
func (n *memoryNamespace) CreateSession(ctx context.Context, s agent.Session,
	sessionContext map[string]json.RawMessage) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	if n.sessions[s.ID] != nil {
		return store.ErrExists
	}
	s.HistorySize, s.Revision = 0, 1
	kept := maps.Clone(sessionContext)
	if kept == nil {
		kept = map[string]json.RawMessage{}
	}
	n.sessions[s.ID] = &memorySession{session: s, context: kept}
	return nil
}

// Session implements Namespace.
func (n *memoryNamespace) Session(_ context.Context, id string) (agent.Session, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.sessions[id]
	if s == nil {
		return agent.Session{}, store.ErrNotFound
	}
	return s.session, nil
}

// ListSessions implements Namespace.
func (n *memoryNamespace) ListSessions(_ context.Context, after string, limit int) ([]agent.Session, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := []agent.Session{}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(n.sessions))) {
		if after != "" && id >= after {
			continue
		}
		if len(out) == limit {
			break
		}
		out = append(out, n.sessions[id].session)
	}
	return out, nil
}

// DeleteSession implements Namespace.
func (n *memoryNamespace) DeleteSession(ctx context.Context, id string, audit *agent.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	err := n.deleteSession(id)
	if err == nil {
		n.appendAudit(ctx, audit)
	}
	return err
}

func (n *memoryNamespace) deleteSession(id string) error {
	if n.sessions[id] == nil {
		return store.ErrNotFound
	}
	delete(n.sessions, id)
	n.members.Forget(n.name, id)
	for _, c := range n.calls {
		if c.log.SessionID == id {
			store.EraseLog(&c.log)
			c.outcome, c.effects = nil, nil
		}
	}
	maps.DeleteFunc(n.replies, func(_ string, k keptReply) bool { return k.session == id })
	for role, events := range n.patterns {
		n.patterns[role] = slices.DeleteFunc(slices.Clone(events),
			func(e agent.PatternEvent) bool { return e.SessionID == id })
	}
	n.content.Forget(id)
	n.forgetAudit(id)
	n.forgetFiles(func(f *agent.File) bool { return f.SessionID == id })
	now := n.now()
	for key, a := range n.artifacts {
		if store.Remembers(a, id) {
			n.setArtifact(a.Apply(agent.ArtifactChange{Role: key.Role, MethodName: key.Method, At: now,
				ForgetSession: id}), false)
		}
	}
	for key, list := range n.archive {
		for i, x := range list {
			if x.artifact != nil && store.Remembers(x.artifact, id) {
				list[i].artifact = x.artifact.Apply(agent.ArtifactChange{Role: key.Role, MethodName: key.Method,
					At: now, ForgetSession: id})
			}
		}
	}
	return nil
}

// Context implements Namespace.
func (n *memoryNamespace) Context(_ context.Context, sessionID string) (map[string]json.RawMessage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.sessions[sessionID]
	if s == nil {
		return nil, store.ErrNotFound
	}
	return maps.Clone(s.context), nil
}

// ChangeContext implements Namespace.
func (n *memoryNamespace) ChangeContext(ctx context.Context, sessionID string, fence int64, c agent.ContextChange,
	audit *agent.AuditEntry) (map[string]json.RawMessage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return nil, err
	}
	s := n.sessions[sessionID]
	if s == nil {
		return nil, store.ErrNotFound
	}
	if err := n.members.Fenced(n.name, sessionID, fence); err != nil {
		return nil, err
	}
	c.Apply(s.context)
	s.session.UpdatedAt = n.now()
	s.session.Revision++
	n.appendAudit(ctx, audit)
	return maps.Clone(s.context), nil
}

// History implements Namespace.
func (n *memoryNamespace) History(_ context.Context, sessionID string, q store.HistoryQuery) (store.HistoryPage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.sessions[sessionID]
	if s == nil {
		return store.HistoryPage{}, store.ErrNotFound
	}
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	page := store.HistoryPage{Records: []json.RawMessage{}, Size: len(s.records)}
	last, looked, size := 0, 0, 0
	add := func(r *memoryRecord) (full bool) {
		if q.Scan > 0 && looked == q.Scan {
			page.Next = r.record.Seq + 1
			if !q.Desc {
				page.Next = r.record.Seq - 1
			}
			return true
		}
		looked++
		if !q.Match(&r.record) {
			return false
		}
		if size += len(r.raw); q.Full(len(page.Records), size) {
			page.Next = last
			return true
		}
		page.Records = append(page.Records, r.raw)
		last = r.record.Seq
		return false
	}
	if q.Desc {
		from := len(s.records)
		if q.After > 0 {
			from = min(from, q.After-1)
		}
		for i := from - 1; i >= 0; i-- {
			if add(&s.records[i]) {
				break
			}
		}
		return page, nil
	}
	for i := max(q.After, 0); i < len(s.records); i++ {
		if add(&s.records[i]) {
			break
		}
	}
	return page, nil
}

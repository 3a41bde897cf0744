package store

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// CreateSession is part of Store.
func (m *Memory) CreateSession(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	if m.sessions[s.ID] != nil {
		return ErrExists
	}
	s.HistorySize, s.Revision = 0, 1
	kept := maps.Clone(sessionContext)
	if kept == nil {
		kept = map[string]json.RawMessage{}
	}
	m.sessions[s.ID] = &memorySession{session: s, context: kept}
	return nil
}

// Session is part of Store.
func (m *Memory) Session(_ context.Context, id string) (agent.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[id]
	if s == nil {
		return agent.Session{}, ErrNotFound
	}
	return s.session, nil
}

// ListSessions is part of Store.
func (m *Memory) ListSessions(_ context.Context, after string, limit int) ([]agent.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []agent.Session{}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(m.sessions))) {
		if after != "" && id >= after {
			continue
		}
		if len(out) == limit {
			break
		}
		out = append(out, m.sessions[id].session)
	}
	return out, nil
}

// DeleteSession is part of Store.
func (m *Memory) DeleteSession(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	return m.deleteSession(id)
}

func (m *Memory) deleteSession(id string) error {
	if m.sessions[id] == nil {
		return ErrNotFound
	}
	delete(m.sessions, id)
	for _, c := range m.calls {
		if c.log.SessionID == id {
			EraseLog(&c.log)
			c.outcome, c.effects = nil, nil
		}
	}
	maps.DeleteFunc(m.replies, func(_ string, k keptReply) bool { return k.session == id })
	for role, events := range m.patterns {
		m.patterns[role] = slices.DeleteFunc(slices.Clone(events), func(e agent.PatternEvent) bool { return e.SessionID == id })
	}
	m.content.Forget(id)
	now := m.now()
	for key, a := range m.artifacts {
		if Remembers(a, id) {
			m.setArtifact(a.Apply(agent.ArtifactChange{Role: key.Role, MethodName: key.Method, At: now, ForgetSession: id}))
		}
	}
	for key, list := range m.archive {
		for i, x := range list {
			if x.artifact != nil && Remembers(x.artifact, id) {
				list[i].artifact = x.artifact.Apply(agent.ArtifactChange{Role: key.Role, MethodName: key.Method, At: now, ForgetSession: id})
			}
		}
	}
	return nil
}

// Remembers reports whether the artifact keeps something of the session.
func Remembers(a *agent.Artifact, session string) bool {
	if slices.Contains(a.Scorecard.Sessions, session) {
		return true
	}
	for _, g := range a.Held() {
		if slices.ContainsFunc(g.Fixtures, func(f agent.Fixture) bool { return f.SessionID == session }) {
			return true
		}
	}
	return false
}

// Context is part of Store.
func (m *Memory) Context(_ context.Context, sessionID string) (map[string]json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[sessionID]
	if s == nil {
		return nil, ErrNotFound
	}
	return maps.Clone(s.context), nil
}

// ChangeContext is part of Store.
func (m *Memory) ChangeContext(ctx context.Context, sessionID string, c agent.ContextChange) (map[string]json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return nil, err
	}
	s := m.sessions[sessionID]
	if s == nil {
		return nil, ErrNotFound
	}
	c.Apply(s.context)
	s.session.UpdatedAt = m.now()
	s.session.Revision++
	return maps.Clone(s.context), nil
}

// History is part of Store.
func (m *Memory) History(_ context.Context, sessionID string, q HistoryQuery) (HistoryPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[sessionID]
	if s == nil {
		return HistoryPage{}, ErrNotFound
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	page := HistoryPage{Records: []json.RawMessage{}, Size: len(s.records)}
	last, looked := 0, 0
	add := func(r *memoryRecord) (full bool) {
		if q.Look > 0 && looked == q.Look {
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
		if len(page.Records) == q.Limit {
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

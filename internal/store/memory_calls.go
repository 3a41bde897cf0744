package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// CommitCall is part of Store.
func (m *Memory) CommitCall(ctx context.Context, c *CallCommit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	var s *memorySession
	if c.Record.CallID != "" || !c.Context.Empty() {
		if s = m.sessions[c.SessionID]; s == nil {
			return ErrNotFound
		}
	}
	if c.Record.CallID != "" {
		c.Record.Seq = len(s.records) + 1
		c.Log.ConversationHistorySize = c.Record.Seq
	}
	raw, err := json.Marshal(c.Record)
	if err != nil {
		return err
	}
	if err := compactAll(c); err != nil {
		return err
	}
	now := m.now()
	if s != nil {
		if c.Record.CallID != "" {
			s.records = append(s.records, memoryRecord{c.Record, raw})
		}
		c.Context.Apply(s.context)
		s.session.HistorySize = len(s.records)
		s.session.UpdatedAt = now
		s.session.Revision++
	}
	for _, change := range c.Artifacts {
		m.changeArtifact(change)
	}
	FillLog(&c.Log, m.artifacts[Target{Role: c.Log.Role, Method: c.Log.Method}])
	for _, t := range c.Tools {
		m.changeTool(t)
	}
	if p := c.Pattern; p != nil {
		events := append(slices.Clone(m.patterns[p.Role]), *p)
		m.patterns[p.Role] = events[max(0, len(events)-PatternsKept):]
	}
	if c.Log.CallID != "" {
		kept := &memoryCall{log: c.Log, effects: c.Effects, at: now}
		if c.Outcome.Status != "" {
			o := c.Outcome
			kept.outcome = &o
		}
		m.calls = append(m.calls, kept)
		m.byID[c.Log.CallID] = kept
		if corrected := m.byID[c.Log.UserCorrectionReferenceCallID]; corrected != nil {
			corrected.log.CorrectedBy = c.Log.CallID
		}
	}
	if c.Content != nil {
		m.content.Put(*c.Content, c.SessionID, m.policy.Retention)
	}
	if c.Key != nil {
		k := *c.Key
		k.Reply = c.Reply
		m.replies[k.Key] = keptReply{k, c.SessionID, now}
	}
	m.stats.Commits++
	return nil
}

// compactAll refuses a commit that holds something which is not JSON, before anything is changed.
func compactAll(c *CallCommit) error {
	check := func(what string, raw json.RawMessage) error {
		if raw != nil && !json.Valid(raw) {
			return fmt.Errorf("%s of call %s is not JSON", what, c.Log.CallID)
		}
		return nil
	}
	if err := check("effects", c.Effects); err != nil {
		return err
	}
	if err := check("reply", c.Reply); err != nil {
		return err
	}
	if c.Content != nil {
		if err := check("content", c.Content.Value); err != nil {
			return err
		}
	}
	if c.Context != nil {
		for k, v := range c.Context.Set {
			if err := check("context key "+k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Memory) changeArtifact(c agent.ArtifactChange) *agent.Artifact {
	old := m.artifacts[Target{Role: c.Role, Method: c.MethodName}]
	if old == nil && c.Generation == nil {
		return nil // deleted meanwhile: counts of nothing
	}
	a := old.Apply(c)
	m.setArtifact(a)
	return a
}

func (m *Memory) setArtifact(a *agent.Artifact) {
	m.artifacts[Target{Role: a.Role, Method: a.MethodName}] = a
	for _, g := range a.Generations {
		m.programs[g.CodeChecksum] = g.Code
	}
	m.ranking.SetArtifact(a.Role, a.MethodName, FiguresOf(a))
	m.tell(Change{Kind: "artifact", Role: a.Role, Method: a.MethodName, Revision: a.Revision})
}

func (m *Memory) changeTool(c ToolChange) {
	if t, ok := c.Apply(m.ranking.Tool(c.Role)); ok {
		m.setTool(t)
	}
}

func (m *Memory) setTool(t *agent.Tool) {
	m.ranking.SetTool(t)
	m.tell(Change{Kind: "tool", Role: t.Role, Revision: t.Revision})
}

// Call is part of Store.
func (m *Memory) Call(_ context.Context, callID string) (Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.byID[callID]
	if c == nil {
		return Call{}, ErrNotFound
	}
	out := Call{Log: c.log}
	if h := m.policy.Retention.ValueHours; h == 0 || m.now().Sub(c.at) < time.Duration(h)*time.Hour {
		out.Outcome, out.Effects = c.outcome, c.effects
	}
	return out, nil
}

// ListCalls is part of Store.
func (m *Memory) ListCalls(_ context.Context, q CallQuery) ([]agent.LogEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	out := []agent.LogEntry{}
	skip := q.Before != ""
	for _, c := range slices.Backward(m.calls) {
		if skip {
			skip = c.log.CallID != q.Before
			continue
		}
		if len(out) == q.Limit {
			break
		}
		if q.Match(&c.log) {
			out = append(out, c.log)
		}
	}
	return out, nil
}

// Replay is part of Store.
func (m *Memory) Replay(_ context.Context, key string) (Idempotent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.replies[key]
	if !ok || m.now().Sub(k.at) >= KeyLife {
		return Idempotent{}, ErrNotFound
	}
	return k.reply, nil
}

// Content is part of Store.
func (m *Memory) Content(_ context.Context, ref string) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.content.Get(ref); ok {
		return v, nil
	}
	return nil, ErrNotFound
}

// Patterns is part of Store.
func (m *Memory) Patterns(_ context.Context, role string) ([]agent.PatternEvent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]agent.PatternEvent{}, m.patterns[role]...), nil
}

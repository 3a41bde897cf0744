package store

import (
	"context"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Tool is part of Store.
func (m *Memory) Tool(_ context.Context, role string) (agent.Tool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.ranking.Tool(role); t != nil {
		return *t, nil
	}
	return agent.Tool{}, ErrNotFound
}

// ListTools is part of Store.
func (m *Memory) ListTools(_ context.Context, after string, limit int) ([]agent.Tool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	roles := m.ranking.Roles()
	slices.Sort(roles)
	out := []agent.Tool{}
	for _, role := range roles {
		if t := m.ranking.Tool(role); t != nil && role > after && len(out) < limit {
			out = append(out, *t)
		}
	}
	return out, nil
}

// RankTools is part of Store.
func (m *Memory) RankTools(_ context.Context, now time.Time, limit int) ([]RankedTool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ranking.Top(now, limit), nil
}

// PutTool is part of Store.
func (m *Memory) PutTool(ctx context.Context, t agent.Tool, revision int64, audit *agent.AuditEntry) (agent.Tool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return agent.Tool{}, err
	}
	next, err := ReplaceTool(m.ranking.Tool(t.Role), t, revision, m.now())
	if err != nil {
		return agent.Tool{}, err
	}
	m.setTool(next)
	m.note(audit)
	return *next, nil
}

// ReplaceTool returns what PutTool makes of the stored tool (nil: there is none): t's contracts with the stored
// tool's usage. ErrConflict when the revision is not the stored one's.
func ReplaceTool(old *agent.Tool, t agent.Tool, revision int64, now time.Time) (*agent.Tool, error) {
	have := int64(0)
	if old != nil {
		have = old.Revision
	}
	if revision != AnyRevision && revision != have {
		return nil, ErrConflict
	}
	if old != nil {
		t.CreatedAt, t.LastUsedAt, t.UsageCount = old.CreatedAt, old.LastUsedAt, old.UsageCount
	} else {
		if t.CreatedAt.IsZero() {
			t.CreatedAt = now
		}
		if t.LastUsedAt.IsZero() {
			t.LastUsedAt = t.CreatedAt
		}
	}
	t.Revision = have + 1
	return &t, nil
}

// Policy is part of Store.
func (m *Memory) Policy(context.Context) (agent.Policy, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policy, nil
}

// SetPolicy is part of Store.
func (m *Memory) SetPolicy(ctx context.Context, p agent.Policy, audit *agent.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.policy = p
	m.policyRev++
	m.note(audit)
	m.tell(Change{Kind: "policy", Revision: m.policyRev})
	return nil
}

// Audit is part of Store.
func (m *Memory) Audit(_ context.Context, before string, limit int) ([]agent.AuditEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []agent.AuditEntry{}
	skip := before != ""
	for _, e := range slices.Backward(m.audit) {
		if skip {
			skip = e.ID != before
			continue
		}
		if len(out) == limit {
			break
		}
		out = append(out, e)
	}
	return out, nil
}

// AppendAudit is part of Store.
func (m *Memory) AppendAudit(ctx context.Context, e agent.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.note(&e)
	return nil
}

func (m *Memory) note(e *agent.AuditEntry) {
	if e != nil {
		m.audit = append(m.audit, *e)
	}
}

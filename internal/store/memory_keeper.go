package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// splitTargets gives the artifacts that the targets name, and the roles whose tools they name.
func (m *Memory) splitTargets(targets []Target) (artifacts []Target, roles []string) {
	for _, t := range targets {
		if t.Method != "" {
			artifacts = append(artifacts, Target{Role: t.Role, Method: t.Method})
			continue
		}
		roles = append(roles, t.Role)
		if t.ToolOnly {
			continue
		}
		for _, method := range m.ranking.Methods(t.Role) {
			artifacts = append(artifacts, Target{Role: t.Role, Method: method})
		}
	}
	return artifacts, roles
}

// Stale is part of Store.
func (m *Memory) Stale(_ context.Context, before time.Time) ([]Target, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ranking.Stale(before), nil
}

// Archive is part of Store.
func (m *Memory) Archive(ctx context.Context, targets []Target, audit agent.AuditEntry) error {
	return m.takeAway(ctx, targets, audit, true)
}

// Remove is part of Store.
func (m *Memory) Remove(ctx context.Context, targets []Target, audit agent.AuditEntry) error {
	return m.takeAway(ctx, targets, audit, false)
}

func (m *Memory) takeAway(ctx context.Context, targets []Target, audit agent.AuditEntry, keep bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	artifacts, roles := m.splitTargets(targets)
	for _, t := range artifacts {
		a := m.artifacts[t]
		if a == nil {
			continue
		}
		if keep {
			m.archive[t] = append(m.archive[t], archived{artifact: a})
		}
		delete(m.artifacts, t)
		m.ranking.DropArtifact(t.Role, t.Method)
		m.tell(Change{Kind: "artifact", Role: t.Role, Method: t.Method})
	}
	for _, role := range roles {
		t := m.ranking.Tool(role)
		if t == nil {
			continue
		}
		if keep {
			key := Target{Role: role}
			m.archive[key] = append(m.archive[key], archived{tool: t})
		}
		m.ranking.DropTool(role)
		m.tell(Change{Kind: "tool", Role: role})
	}
	m.note(&audit)
	return nil
}

// Restore is part of Store.
func (m *Memory) Restore(ctx context.Context, targets []Target, audit agent.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	back := []Target{}
	for _, t := range targets {
		found := false
		for key := range m.archive {
			if key.Role == t.Role && (t.Method == "" && !t.ToolOnly || key.Method == t.Method) {
				found = true
				if m.artifacts[key] != nil || key.Method == "" && m.ranking.Tool(key.Role) != nil {
					return fmt.Errorf("%w: %s", ErrExists, strings.TrimSuffix(key.Role+"."+key.Method, "."))
				}
				back = append(back, key)
			}
		}
		if !found {
			return fmt.Errorf("%w in the archive: %s", ErrNotFound, strings.TrimSuffix(t.Role+"."+t.Method, "."))
		}
	}
	for _, key := range back {
		list := m.archive[key]
		if len(list) == 0 {
			continue // named twice
		}
		last := list[len(list)-1]
		if m.archive[key] = list[:len(list)-1]; len(list) == 1 {
			delete(m.archive, key)
		}
		if last.tool != nil {
			m.setTool(last.tool)
		} else {
			m.setArtifact(last.artifact)
		}
	}
	m.note(&audit)
	return nil
}

// Expire is part of Store.
func (m *Memory) Expire(ctx context.Context, now time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return 0, err
	}
	r := m.policy.Retention
	gone := []string{}
	ids := slices.Sorted(maps.Keys(m.sessions))
	for i, id := range ids {
		old := r.SessionDays > 0 && now.Sub(m.sessions[id].session.UpdatedAt) > time.Duration(r.SessionDays)*24*time.Hour
		if old || r.MaxSessions > 0 && len(ids)-i > r.MaxSessions {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		if err := m.deleteSession(id); err != nil {
			return 0, err
		}
	}
	maps.DeleteFunc(m.replies, func(_ string, k keptReply) bool { return now.Sub(k.at) >= KeyLife })
	return len(gone), nil
}

var _ Store = (*Memory)(nil)

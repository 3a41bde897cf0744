package store

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Artifact is part of Store.
func (m *Memory) Artifact(_ context.Context, role, method string) (*agent.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.artifacts[Target{Role: role, Method: method}]; a != nil {
		return a, nil
	}
	return nil, ErrNotFound
}

// ChangeArtifact is part of Store.
func (m *Memory) ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange, audit *agent.AuditEntry) (*agent.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return nil, err
	}
	old := m.artifacts[Target{Role: c.Role, Method: c.MethodName}]
	switch {
	case old == nil && c.Generation == nil:
		return nil, ErrNotFound
	case old == nil && revision > 0, old != nil && revision != AnyRevision && revision != old.Revision:
		return nil, ErrConflict
	}
	a := m.changeArtifact(c)
	m.note(audit)
	return a, nil
}

// ListArtifacts is part of Store.
func (m *Memory) ListArtifacts(_ context.Context, role string) ([]*agent.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []*agent.Artifact{}
	for _, method := range m.ranking.Methods(role) {
		out = append(out, m.artifacts[Target{Role: role, Method: method}])
	}
	return out, nil
}

// ArtifactStates is part of Store.
func (m *Memory) ArtifactStates(context.Context) (map[string]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ranking.States(), nil
}

// Program is part of Store.
func (m *Memory) Program(_ context.Context, checksum string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if code, ok := m.programs[checksum]; ok {
		return code, nil
	}
	return "", ErrNotFound
}

// Lease is part of Store.
func (m *Memory) Lease(_ context.Context, key string, ttl time.Duration) (release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if end, held := m.leases[key]; held && now.Before(end) {
		return nil, ErrInUse
	}
	end := now.Add(ttl)
	m.leases[key] = end
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.leases[key].Equal(end) {
			delete(m.leases, key)
		}
	}, nil
}

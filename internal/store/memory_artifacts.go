package store

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Artifact is part of Namespace.
func (n *memoryNamespace) Artifact(_ context.Context, role, method string) (*agent.Artifact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.artifacts[Target{Role: role, Method: method}]; a != nil {
		return a, nil
	}
	return nil, ErrNotFound
}

// ChangeArtifact is part of Namespace.
func (n *memoryNamespace) ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange, audit *agent.AuditEntry) (*agent.Artifact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return nil, err
	}
	old := n.artifacts[Target{Role: c.Role, Method: c.MethodName}]
	switch {
	case old == nil && !c.Creates():
		return nil, ErrNotFound
	case old == nil && revision > 0, old != nil && revision != AnyRevision && revision != old.Revision:
		return nil, ErrConflict
	}
	a := n.changeArtifact(c)
	n.appendAudit(audit)
	return a, nil
}

// ListArtifacts is part of Namespace.
func (n *memoryNamespace) ListArtifacts(_ context.Context, role string) ([]*agent.Artifact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := []*agent.Artifact{}
	for _, method := range n.ranking.Methods(role) {
		out = append(out, n.artifacts[Target{Role: role, Method: method}])
	}
	return out, nil
}

// Program is part of Namespace.
func (n *memoryNamespace) Program(_ context.Context, checksum string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if code, ok := n.programs[checksum]; ok {
		return code, nil
	}
	return "", ErrNotFound
}

// Lease is part of Namespace.
func (n *memoryNamespace) Lease(_ context.Context, key string, ttl time.Duration) (release func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	if end, held := n.leases[key]; held && now.Before(end) {
		return nil, ErrInUse
	}
	end := now.Add(ttl)
	n.leases[key] = end
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.leases[key].Equal(end) {
			delete(n.leases, key)
		}
	}, nil
}

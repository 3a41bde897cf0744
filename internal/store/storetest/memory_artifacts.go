package storetest

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Artifact implements Namespace.
func (n *memoryNamespace) Artifact(_ context.Context, role, method string) (*agent.Artifact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.artifacts[store.Target{Role: role, Method: method}]; a != nil {
		return a, nil
	}
	return nil, store.ErrNotFound
}

// ChangeArtifact implements Namespace.
func (n *memoryNamespace) ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange,
	audit *agent.AuditEntry) (*agent.Artifact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return nil, err
	}
	old := n.artifacts[store.Target{Role: c.Role, Method: c.MethodName}]
	if err := store.CheckChange(old, revision, &c); err != nil {
		return nil, err
	}
	a := n.changeArtifact(c, audit != nil && c.Renews())
	n.appendAudit(ctx, audit)
	return a, nil
}

// ListArtifacts implements Namespace.
func (n *memoryNamespace) ListArtifacts(_ context.Context, role string) ([]*agent.Artifact, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := []*agent.Artifact{}
	for _, method := range n.ranking.Methods(role) {
		out = append(out, n.artifacts[store.Target{Role: role, Method: method}])
	}
	return out, nil
}

// Program implements Namespace.
func (n *memoryNamespace) Program(_ context.Context, checksum string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if code, ok := n.programs[checksum]; ok {
		return code, nil
	}
	return "", store.ErrNotFound
}

package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// ListConnections implements Namespace.
func (n *memoryNamespace) ListConnections(context.Context) ([]agent.Connection, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return SortedConnections(n.conns), nil
}

// SortedConnections returns connections sorted by name.
func SortedConnections(all map[string]agent.Connection) []agent.Connection {
	return slices.SortedFunc(maps.Values(all), func(a, b agent.Connection) int { return cmp.Compare(a.Name, b.Name) })
}

// PutConnection implements Namespace.
func (n *memoryNamespace) PutConnection(ctx context.Context, c agent.Connection, revision int64,
	audit *agent.AuditEntry) (agent.Connection, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return agent.Connection{}, err
	}
	old, found := n.conns[c.Name]
	if !found && len(n.conns) >= MaxConnections {
		return agent.Connection{}, ErrTooMany
	}
	next, err := ReplaceConnection(old, c, revision, n.now())
	if err != nil {
		return agent.Connection{}, err
	}
	n.conns[c.Name] = next
	n.appendAudit(ctx, audit)
	n.changed(Change{Kind: ChangedConnection, Name: c.Name, Revision: next.Revision})
	return next, nil
}

// ReplaceConnection returns the connection that PutConnection stores in place of old. old is zero if there is none.
// ErrConflict if old has another revision.
func ReplaceConnection(old, c agent.Connection, revision int64, now time.Time) (agent.Connection, error) {
	if !Matches(revision, old.Revision) {
		return c, ErrConflict
	}
	c.CreatedAt, c.UpdatedAt, c.Revision = old.CreatedAt, now.UTC(), old.Revision+1
	if c.CreatedAt.IsZero() {
		c.CreatedAt = c.UpdatedAt
	}
	return c, nil
}

// DeleteConnection implements Namespace.
func (n *memoryNamespace) DeleteConnection(ctx context.Context, name string, revision int64,
	audit *agent.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	old, found := n.conns[name]
	if !found {
		return ErrNotFound
	}
	if !Matches(revision, old.Revision) {
		return ErrConflict
	}
	delete(n.conns, name)
	n.appendAudit(ctx, audit)
	n.changed(Change{Kind: ChangedConnection, Name: name})
	return nil
}

package storetest

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// ListConnections implements Namespace.
func (n *memoryNamespace) ListConnections(context.Context) ([]agent.Connection, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return store.SortedConnections(n.conns), nil
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
	if !found && len(n.conns) >= store.MaxConnections {
		return agent.Connection{}, store.ErrTooMany
	}
	next, err := store.ReplaceConnection(old, c, revision, n.now())
	if err != nil {
		return agent.Connection{}, err
	}
	n.conns[c.Name] = next
	n.appendAudit(ctx, audit)
	n.changed(store.Change{Kind: store.ChangedConnection, Name: c.Name, Revision: next.Revision})
	return next, nil
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
		return store.ErrNotFound
	}
	if !store.Matches(revision, old.Revision) {
		return store.ErrConflict
	}
	delete(n.conns, name)
	n.appendAudit(ctx, audit)
	n.changed(store.Change{Kind: store.ChangedConnection, Name: name})
	return nil
}

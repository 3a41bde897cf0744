package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

var errErased = fmt.Errorf("%w: the namespace was deleted", store.ErrGone)

// ListNamespaces implements Store.
func (m *Memory) ListNamespaces(_ context.Context, after agent.Namespace, limit int) ([]store.NamespaceInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.namespace(agent.DefaultNamespace)
	out := []store.NamespaceInfo{}
	for _, name := range slices.Sorted(maps.Keys(m.namespaces)) {
		if n := m.namespaces[name]; name > after && n.there() && len(out) < limit {
			out = append(out, n.info())
		}
	}
	return out, nil
}

func (n *memoryNamespace) there() bool { return n.exists || n.name == agent.DefaultNamespace }

func (n *memoryNamespace) info() store.NamespaceInfo {
	return store.NamespaceInfo{Name: n.name, CreatedAt: n.created, Due: n.due}
}

// NamespaceInfo implements Store.
func (m *Memory) NamespaceInfo(_ context.Context, name agent.Namespace) (store.NamespaceInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.namespaces[name]; n != nil && n.there() {
		return n.info(), nil
	}
	if name == agent.DefaultNamespace {
		return store.NamespaceInfo{Name: name}, nil
	}
	return store.NamespaceInfo{}, fmt.Errorf("%w: namespace %s", store.ErrNotFound, name)
}

// CreateNamespace implements Store.
func (m *Memory) CreateNamespace(ctx context.Context, name agent.Namespace,
	audit *agent.AuditEntry) (store.NamespaceInfo, error) {
	if err := name.Validate(); err != nil {
		return store.NamespaceInfo{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.namespace(name)
	if n.there() {
		return store.NamespaceInfo{}, fmt.Errorf("%w: namespace %s", store.ErrExists, name)
	}
	if err := m.namespace(agent.DefaultNamespace).writable(ctx); err != nil {
		return store.NamespaceInfo{}, err
	}
	n.exists, n.created = true, m.now()
	m.namespace(agent.DefaultNamespace).appendAudit(ctx, audit)
	return n.info(), nil
}

// EraseNamespace implements Store.
func (m *Memory) EraseNamespace(ctx context.Context, name agent.Namespace, audit *agent.AuditEntry) error {
	if name == agent.DefaultNamespace {
		return store.ErrDefault
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.namespaces[name]
	if n == nil || !n.there() {
		return fmt.Errorf("%w: namespace %s", store.ErrNotFound, name)
	}
	if err := m.namespace(agent.DefaultNamespace).writable(ctx); err != nil {
		return err
	}
	today := agent.DayOf(m.now())
	use := n.ledger.Use(&store.Cap{Scope: store.ScopeNamespace, First: today, Last: today})
	m.gone = map[agent.Day]int64{today: m.gone[today] + use.Used + use.Reserved}
	delete(m.namespaces, name)
	*n = *newMemoryNamespace(m, name) // clears it for those who still hold a reference
	n.erased = true
	n.members.Erase(n.name)
	m.namespace(agent.DefaultNamespace).appendAudit(ctx, audit)
	n.changed(store.Change{Kind: store.ChangedNamespace})
	return nil
}

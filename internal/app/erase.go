package app

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Actions in the audit trail.
const (
	opNamespaceCreate = "namespace.create"
	opNamespaceDelete = "namespace.delete"
)

// ListNamespaces is part of api.Namespaces.
func (n *namespaces) ListNamespaces(ctx context.Context, after agent.Namespace,
	limit int) ([]store.NamespaceInfo, error) {
	return n.parts.memory.ListNamespaces(ctx, after, limit)
}

// Namespace is part of api.Namespaces.
func (n *namespaces) Namespace(ctx context.Context, name agent.Namespace) (store.NamespaceInfo, error) {
	return n.parts.memory.NamespaceInfo(ctx, name)
}

// CreateNamespace is part of api.Namespaces.
func (n *namespaces) CreateNamespace(ctx context.Context, name agent.Namespace, reason,
	actor string) (store.NamespaceInfo, error) {
	free, err := n.claim(ctx, name)
	if err != nil {
		return store.NamespaceInfo{}, err
	}
	defer free()
	return n.parts.memory.CreateNamespace(ctx, name, n.audit(actor, opNamespaceCreate, name, reason))
}

// EraseNamespace is part of api.Namespaces. It first ends calls and streams, then deletes what is kept outside the
// store, then the stored data. After a crash in between, the namespace exists with empty caches, or is gone completely.
func (n *namespaces) EraseNamespace(ctx context.Context, name agent.Namespace, reason, actor string) error {
	if name == agent.DefaultNamespace {
		return store.ErrDefault
	}
	free, err := n.claim(ctx, name) // no one can open it until it is gone
	if err != nil {
		return err
	}
	defer free()
	if _, err := n.parts.memory.NamespaceInfo(ctx, name); err != nil {
		return err
	}
	n.letGo(name)
	if err := n.parts.compiler.erase(ctx, name); err != nil {
		return err
	}
	// before the store announces the erasure, so that follow recognizes it
	n.erasedHere.Add(name)
	if err := n.parts.memory.EraseNamespace(context.WithoutCancel(ctx), name,
		n.audit(actor, opNamespaceDelete, name, reason)); err != nil {
		n.erasedHere.Take(name)
		return err
	}
	n.forget(name)
	n.log.Info().Str("namespace", string(name)).Str("actor", actor).Msg("a namespace was deleted")
	return nil
}

// letGo ends calls and streams of a namespace, closes its services, and drops its caches. The caller has claimed it.
func (n *namespaces) letGo(name agent.Namespace) {
	if s := n.get(name); s != nil {
		s.users.Add(closed)
		n.mu.Lock()
		n.put(name, nil)
		n.mu.Unlock()
		s.erase(errErased)
		if err := s.stopNow(); err != nil {
			n.log.Warn().Err(err).Str("namespace",
				string(name)).Msg("calls of a namespace that is deleted did not end in time")
		}
	}
	n.parts.fetch.Forget(name)
	n.parts.pool.Forget(name)
}

// forget drops the remaining state of a namespace that is gone.
func (n *namespaces) forget(name agent.Namespace) {
	n.parts.spend.Forget(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.begun, name)
}

// audit returns an audit entry about a namespace.
func (n *namespaces) audit(actor, action string, name agent.Namespace, reason string) *agent.AuditEntry {
	return &agent.AuditEntry{ID: ids.New("aud"), Timestamp: agent.FormatTime(n.parts.runtime.Now()), Actor: actor,
		Action: action, Target: string(name), Reason: reason}
}

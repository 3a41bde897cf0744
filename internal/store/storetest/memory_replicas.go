package storetest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Join implements Store.
func (m *Memory) Join(_ context.Context, r store.Replica, ttl time.Duration) error {
	return m.members.Join(r, ttl)
}

// Renew implements Store.
func (m *Memory) Renew(_ context.Context, r store.Replica, ttl time.Duration) error {
	return m.members.Renew(r, ttl)
}

// Leave implements Store.
func (m *Memory) Leave(_ context.Context, id string) error {
	m.members.Leave(id)
	return nil
}

// ListReplicas implements Store.
func (m *Memory) ListReplicas(context.Context) ([]store.Replica, error) { return m.members.List(), nil }

// Own implements Namespace.
func (n *memoryNamespace) Own(_ context.Context, sessionID, replica string) (store.Ownership, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sessions[sessionID] == nil {
		return store.Ownership{}, store.ErrNotFound
	}
	return n.members.Own(n.name, sessionID, replica)
}

// CreateOwned implements Namespace.
func (n *memoryNamespace) CreateOwned(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage,
	replica string) (store.Ownership, error) {
	if err := n.members.Alive(replica); err != nil {
		return store.Ownership{}, err
	}
	if err := n.CreateSession(ctx, s, sessionContext); err != nil {
		return store.Ownership{}, err
	}
	return n.Own(ctx, s.ID, replica)
}

// Disown implements Namespace.
func (n *memoryNamespace) Disown(_ context.Context, owned map[string]store.Ownership) error {
	n.members.Disown(n.name, owned)
	return nil
}

// Lease implements Namespace.
func (n *memoryNamespace) Lease(ctx context.Context, key string, o store.LeaseOptions) (store.Lease, error) {
	if err := n.alive(); err != nil {
		return nil, err
	}
	return n.members.Lease(ctx, n.name, key, o)
}

// PutCandidate implements Namespace.
func (n *memoryNamespace) PutCandidate(ctx context.Context, key string, c []byte, life time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.erased {
		return errErased
	}
	if err := n.Memory.writable(ctx); err != nil {
		return err
	}
	n.members.PutCandidate(n.name, key, c, life)
	n.changed(store.Change{Kind: store.ChangedCandidate, Name: key})
	return nil
}

// Candidate implements Namespace.
func (n *memoryNamespace) Candidate(_ context.Context, key string) ([]byte, error) {
	return n.members.Candidate(n.name, key)
}

// alive returns an error if the namespace was erased.
func (n *memoryNamespace) alive() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.erased {
		return errErased
	}
	return nil
}

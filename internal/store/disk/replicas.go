package disk

import (
	"context"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Join is part of store.Store. Only one process uses the directory, so all replicas live in it.
func (s *Store) Join(_ context.Context, r store.Replica, ttl time.Duration) error {
	return s.members.Join(r, ttl)
}

// Renew is part of store.Store.
func (s *Store) Renew(_ context.Context, r store.Replica, ttl time.Duration) error {
	return s.members.Renew(r, ttl)
}

// Leave is part of store.Store.
func (s *Store) Leave(_ context.Context, id string) error {
	s.members.Leave(id)
	return nil
}

// ListReplicas is part of store.Store.
func (s *Store) ListReplicas(context.Context) ([]store.Replica, error) { return s.members.List(), nil }

// Own is part of store.Namespace. It waits for the current batch, so the new owner sees every call of the previous one.
func (n *namespace) Own(_ context.Context, sessionID, replica string) (store.Ownership, error) {
	if _, err := n.sessions.get(sessionID); err != nil {
		return store.Ownership{}, err
	}
	n.sequencer.mu.Lock()
	defer n.sequencer.mu.Unlock()
	return n.members.Own(n.name, sessionID, replica)
}

// CreateOwned is part of store.Namespace.
func (n *namespace) CreateOwned(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage,
	replica string) (store.Ownership, error) {
	if err := n.members.Alive(replica); err != nil {
		return store.Ownership{}, err
	}
	if err := n.CreateSession(ctx, s, sessionContext); err != nil {
		return store.Ownership{}, err
	}
	return n.Own(ctx, s.ID, replica)
}

// Disown is part of store.Namespace.
func (n *namespace) Disown(_ context.Context, owned map[string]store.Ownership) error {
	n.members.Disown(n.name, owned)
	return nil
}

// Lease is part of store.Namespace.
func (n *namespace) Lease(ctx context.Context, key string, o store.LeaseOptions) (store.Lease, error) {
	if err := n.broken(); err != nil {
		return nil, err
	}
	return n.members.Lease(ctx, n.name, key, o)
}

// PutCandidate is part of store.Namespace.
func (n *namespace) PutCandidate(_ context.Context, key string, c []byte, life time.Duration) error {
	if err := n.broken(); err != nil {
		return err
	}
	n.members.PutCandidate(n.name, key, c, life)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed(store.Change{Kind: store.ChangedCandidate, Name: key})
	n.feed.send()
	return nil
}

// Candidate is part of store.Namespace.
func (n *namespace) Candidate(_ context.Context, key string) ([]byte, error) {
	return n.members.Candidate(n.name, key)
}

package store

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Members keeps the replicas of a store within one process, with their sessions, leases and candidates. It keeps them
// in memory only, because everybody who could hold them ends with the process. It is safe for concurrent use and makes
// no callbacks while it holds its lock.
type Members struct {
	now func() time.Time

	mu         sync.Mutex
	replicas   map[string]Replica // guarded by mu, as is everything below
	owned      map[spaceKey]Ownership
	epoch      int64
	leases     map[spaceKey]*memberLease
	candidates map[spaceKey]keptCandidate
	closed     bool
}

// spaceKey is a lease key or a session id in a namespace.
type spaceKey struct {
	namespace agent.Namespace
	key       string
}

// NewMembers returns the members of a store that was just opened. now is the clock.
func NewMembers(now func() time.Time) *Members {
	return &Members{now: now, replicas: map[string]Replica{}, owned: map[spaceKey]Ownership{},
		leases: map[spaceKey]*memberLease{},
		// higher than any epoch issued before a restart
		candidates: map[spaceKey]keptCandidate{}, epoch: time.Now().UnixNano()}
}

// Join implements Replicas.
func (m *Members) Join(r Replica, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.alive(r.ID) {
		return ErrExists
	}
	m.drop(r.ID)
	r.StartedAt = m.now()
	r.ExpiresAt = r.StartedAt.Add(ttl)
	m.replicas[r.ID] = r
	return nil
}

// Renew implements Replicas.
func (m *Members) Renew(r Replica, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.alive(r.ID) {
		return ErrFenced
	}
	r.StartedAt = m.replicas[r.ID].StartedAt
	r.ExpiresAt = m.now().Add(ttl)
	m.replicas[r.ID] = r
	return nil
}

// Leave implements Replicas.
func (m *Members) Leave(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(id)
	for _, l := range m.leases {
		if id != "" && l.holder == id {
			l.lose()
		}
	}
}

// List implements Replicas.
func (m *Members) List() []Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []Replica{}
	for _, id := range slices.Sorted(maps.Keys(m.replicas)) {
		if m.alive(id) {
			out = append(out, m.replicas[id])
		} else {
			m.drop(id)
		}
	}
	return out
}

// Alive returns ErrFenced if the replica is unknown or its time is over.
func (m *Members) Alive(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.alive(id) {
		return ErrFenced
	}
	return nil
}

// alive reports whether the replica is known and its time is not over. The caller holds mu.
func (m *Members) alive(id string) bool {
	r, known := m.replicas[id]
	return known && m.now().Before(r.ExpiresAt)
}

// drop removes a replica and its ownerships. The caller holds mu.
func (m *Members) drop(id string) {
	delete(m.replicas, id)
	maps.DeleteFunc(m.owned, func(_ spaceKey, o Ownership) bool { return o.Replica == id })
}

// Own implements Owners. The caller has checked that the session exists.
func (m *Members) Own(ns agent.Namespace, session, replica string) (Ownership, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.alive(replica) {
		return Ownership{}, ErrFenced
	}
	k := spaceKey{ns, session}
	o, owned := m.owned[k]
	owner, asks := m.replicas[o.Replica], m.replicas[replica]
	if !owned || !m.alive(o.Replica) || owner.YieldsTo(&asks) {
		m.epoch++
		o = Ownership{Replica: replica, Epoch: m.epoch}
		m.owned[k] = o
	}
	o.Address = m.replicas[o.Replica].Address
	return o, nil
}

// Disown implements Owners.
func (m *Members) Disown(ns agent.Namespace, owned map[string]Ownership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for session, o := range owned {
		if k := (spaceKey{ns, session}); m.owned[k].Epoch == o.Epoch {
			delete(m.owned, k)
		}
	}
}

// Fenced returns ErrFenced unless the session is owned under that epoch. Epoch 0 always passes.
func (m *Members) Fenced(ns agent.Namespace, session string, epoch int64) error {
	if epoch == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owned[spaceKey{ns, session}].Epoch != epoch {
		return ErrFenced
	}
	return nil
}

// Forget drops the ownership of a deleted session.
func (m *Members) Forget(ns agent.Namespace, session string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.owned, spaceKey{ns, session})
}

// Erase drops everything of an erased namespace. Its leases are lost.
func (m *Members) Erase(ns agent.Namespace) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := func(k spaceKey) bool { return k.namespace == ns }
	maps.DeleteFunc(m.owned, func(k spaceKey, _ Ownership) bool { return of(k) })
	maps.DeleteFunc(m.candidates, func(k spaceKey, _ keptCandidate) bool { return of(k) })
	for k, l := range m.leases {
		if of(k) {
			l.lose()
		}
	}
}

// Close ends all leases, which are lost, and refuses new ones.
func (m *Members) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, l := range m.leases {
		l.lose()
	}
}

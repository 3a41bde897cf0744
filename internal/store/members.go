package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// memberLease is the Lease that Members gives out. It is in Members.leases until it ends.
type memberLease struct {
	m      *Members
	key    spaceKey
	holder string
	ttl    time.Duration

	until time.Time     // guarded by Members.mu
	timer *time.Timer   // renews the lease
	lost  chan struct{} // closed if the lease is lost
	over  chan struct{} // closed when the lease ends, for any reason
}

// Lease implements Leases.
func (m *Members) Lease(ctx context.Context, ns agent.Namespace, key string, o LeaseOptions) (Lease, error) {
	if o.TTL <= 0 {
		return nil, errors.New("a lease needs a TTL above 0")
	}
	k := spaceKey{ns, key}
	for {
		l, held, left, err := m.take(k, o)
		if l != nil || err != nil {
			return l, err
		}
		if !o.Wait {
			return nil, fmt.Errorf("%w: the lease %s", ErrInUse, key)
		}
		expires := time.NewTimer(left)
		select {
		case <-held:
		case <-expires.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if expires.Stop(); err != nil {
			return nil, err
		}
	}
}

// take takes the lease. If somebody holds it, l is nil, held is closed when the lease ends, and left is the time until
// it expires. Leases expire only when somebody asks for them.
func (m *Members) take(k spaceKey,
	o LeaseOptions) (l *memberLease, held <-chan struct{}, left time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, nil, 0, fmt.Errorf("%w: the store is closed", ErrReadOnly)
	}
	now := m.now()
	if was := m.leases[k]; was != nil {
		if now.Before(was.until) {
			return nil, was.over, was.until.Sub(now), nil
		}
		was.lose()
	}
	l = &memberLease{m: m, key: k, holder: o.Holder, ttl: o.TTL, until: now.Add(o.TTL), lost: make(chan struct{}),
		over: make(chan struct{})}
	l.timer = time.AfterFunc(l.ttl/3, l.renew)
	m.leases[k] = l
	return l, nil, 0, nil
}

func (l *memberLease) renew() {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.leases[l.key] != l {
		return
	}
	now := l.m.now()
	if !now.Before(l.until) {
		l.lose()
		return
	}
	l.until = now.Add(l.ttl)
	l.timer.Reset(l.ttl / 3)
}

// lose ends the lease against its holder's will. The caller holds Members.mu.
func (l *memberLease) lose() {
	close(l.lost)
	l.end()
}

// end makes room for another holder. The caller holds Members.mu.
func (l *memberLease) end() {
	l.timer.Stop()
	delete(l.m.leases, l.key)
	close(l.over)
}

// Lost implements Lease.
func (l *memberLease) Lost() <-chan struct{} { return l.lost }

// Release implements Lease.
func (l *memberLease) Release() {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.leases[l.key] == l {
		l.end()
	}
}

// keptCandidate is a candidate kept by Members.
type keptCandidate struct {
	text  []byte
	until time.Time
}

// Limits on the candidates of Members. Beyond them, the candidates that expire first are dropped.
const (
	maxCandidates     = 1024
	maxCandidateBytes = 32 << 20
)

// PutCandidate implements Leases.
func (m *Members) PutCandidate(ns agent.Namespace, key string, c []byte, life time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	maps.DeleteFunc(m.candidates, func(_ spaceKey, k keptCandidate) bool { return !now.Before(k.until) })
	m.candidates[spaceKey{ns, key}] = keptCandidate{bytes.Clone(c), now.Add(life)}
	for m.tooMany() {
		var first spaceKey
		var until time.Time
		for k, kept := range m.candidates {
			if until.IsZero() || kept.until.Before(until) {
				first, until = k, kept.until
			}
		}
		delete(m.candidates, first)
	}
}

func (m *Members) tooMany() bool {
	size := 0
	for _, kept := range m.candidates {
		size += len(kept.text)
	}
	return len(m.candidates) > maxCandidates || size > maxCandidateBytes
}

// Candidate implements Leases.
func (m *Members) Candidate(ns agent.Namespace, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, ok := m.candidates[spaceKey{ns, key}]
	if !ok || !m.now().Before(kept.until) {
		return nil, ErrNotFound
	}
	return bytes.Clone(kept.text), nil
}

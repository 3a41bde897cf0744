package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// memberLease is a Lease of Members.
type memberLease struct {
	m      *Members
	key    spaceKey
	holder string
	ttl    time.Duration

	until time.Time     // guarded by Members.mu, as below
	timer *time.Timer   // renews it
	lost  chan struct{} // closed when it was lost
	over  chan struct{} // closed when it ended, in whatever way
}

// Lease is as in Leases.
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

// take takes the lease, or returns what is closed when it is free, and the time until then at most.
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

// lose ends it against its holder's will. The caller holds Members.mu.
func (l *memberLease) lose() {
	close(l.lost)
	l.end()
}

// end makes room for another. The caller holds Members.mu.
func (l *memberLease) end() {
	l.timer.Stop()
	delete(l.m.leases, l.key)
	close(l.over)
}

// Lost is part of Lease.
func (l *memberLease) Lost() <-chan struct{} { return l.lost }

// Release is part of Lease.
func (l *memberLease) Release() {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.leases[l.key] == l {
		l.end()
	}
}

// keptCandidate is a candidate of Members.
type keptCandidate struct {
	text  []byte
	until time.Time
}

// Bounds of the candidates of Members; beyond them those that end first go.
const (
	maxCandidates     = 1024
	maxCandidateBytes = 32 << 20
)

// PutCandidate is as in Leases.
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

// Candidate is as in Leases.
func (m *Members) Candidate(ns agent.Namespace, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, ok := m.candidates[spaceKey{ns, key}]
	if !ok || !m.now().Before(kept.until) {
		return nil, ErrNotFound
	}
	return bytes.Clone(kept.text), nil
}

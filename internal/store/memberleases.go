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

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Options configures a Memory.
type Options struct {
	Now func() time.Time // the clock; required
}

// DefaultOptions returns the options of a daemon.
func DefaultOptions() Options { return Options{Now: time.Now} }

// Memory is a Store which forgets everything with the process: for tests, and the measure of what a Store does. One
// lock guards all of it.
type Memory struct {
	now func() time.Time

	mu        sync.Mutex
	closed    bool
	sessions  map[string]*memorySession
	calls     []*memoryCall // in the order of their commits
	byID      map[string]*memoryCall
	replies   map[string]keptReply
	artifacts map[Target]*agent.Artifact // by role and method
	programs  map[string]string
	archive   map[Target][]archived // newest last
	ranking   *Ranking
	policy    agent.Policy
	policyRev int64
	audit     []agent.AuditEntry
	patterns  map[string][]agent.PatternEvent
	content   Contents
	leases    map[string]time.Time
	stats     Stats
	watchers  map[int]func(Change)
	nextWatch int
}

type memorySession struct {
	session agent.Session
	context map[string]json.RawMessage
	records []memoryRecord
}

type memoryRecord struct {
	record agent.Record
	raw    json.RawMessage
}

type memoryCall struct {
	log     agent.LogEntry
	outcome *agent.Outcome
	effects json.RawMessage
	at      time.Time
}

type keptReply struct {
	reply   Idempotent
	session string
	at      time.Time
}

type archived struct {
	tool     *agent.Tool
	artifact *agent.Artifact
}

// NewMemory returns an empty store.
func NewMemory(o Options) *Memory {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Memory{
		now: o.Now, sessions: map[string]*memorySession{}, byID: map[string]*memoryCall{}, replies: map[string]keptReply{},
		artifacts: map[Target]*agent.Artifact{}, programs: map[string]string{}, archive: map[Target][]archived{},
		ranking: NewRanking(), policy: agent.DefaultPolicy(), patterns: map[string][]agent.PatternEvent{},
		leases: map[string]time.Time{}, watchers: map[int]func(Change){},
	}
}

// Ready is part of Store.
func (m *Memory) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writable(context.Background())
}

// Stats is part of Store.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.Sessions, s.Tools = int64(len(m.sessions)), int64(m.ranking.Tools())
	return s
}

// Watch is part of Store.
func (m *Memory) Watch(changed func(Change)) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.nextWatch
	m.nextWatch++
	m.watchers[id] = changed
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, id)
	}
}

// Close is part of Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

func (m *Memory) writable(ctx context.Context) error {
	if m.closed {
		return fmt.Errorf("%w: the store is closed", ErrReadOnly)
	}
	return context.Cause(ctx)
}

func (m *Memory) tell(c Change) {
	for _, changed := range m.watchers {
		changed(c)
	}
}

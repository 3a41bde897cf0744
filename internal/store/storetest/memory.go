package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Memory is a Store that forgets everything when the process ends. It is for tests, and it is the reference for the
// behaviour of other stores. One lock guards all of it.
type Memory struct {
	now func() time.Time

	mu         sync.Mutex
	closed     bool // guarded by mu, as is everything below
	namespaces map[agent.Namespace]*memoryNamespace
	commits    int64
	feed       store.Feed
	members    *store.Members
	// tokens of erased namespaces, which still count for ScopeDaemon caps; only the latest day with an erasure
	gone map[agent.Day]int64
}

// memoryNamespace is one namespace of a Memory. The Memory's lock guards all of it.
type memoryNamespace struct {
	*Memory
	name    agent.Namespace
	exists  bool
	created time.Time
	due     time.Time
	erased  bool

	sessions  map[string]*memorySession
	calls     []*memoryCall // in commit order
	byID      map[string]*memoryCall
	replies   map[string]keptReply
	artifacts map[store.Target]*agent.Artifact // by role and method
	programs  map[string]string
	archive   map[store.Target][]archived // newest last
	ranking   *store.Ranking
	policy    agent.Policy
	policyRev int64
	audit     []agent.AuditEntry
	head      chain.Head // of audit
	patterns  map[string][]agent.PatternEvent
	evidence  *store.Evidence
	content   store.Contents
	files     map[string]*memoryFile
	fileSums  store.FileSums              // of files
	conns     map[string]agent.Connection // by name
	ledger    *store.Ledger
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
	reply   store.Idempotent
	session string
	at      time.Time
}

type archived struct {
	tool     *agent.Tool
	artifact *agent.Artifact
	by       string // the audit id of the operation
	at       time.Time
	deleted  bool
}

// NewMemory returns an empty store with that clock.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, namespaces: map[agent.Namespace]*memoryNamespace{}, members: store.NewMembers(now)}
}

// Namespace implements Store.
func (m *Memory) Namespace(name agent.Namespace) (store.Namespace, error) {
	if err := name.Validate(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.namespace(name), nil
}

// namespace returns the namespace with that name and adds it if needed. The caller holds mu.
func (m *Memory) namespace(name agent.Namespace) *memoryNamespace {
	n := m.namespaces[name]
	if n == nil {
		n = newMemoryNamespace(m, name)
		m.namespaces[name] = n
	}
	return n
}

func newMemoryNamespace(m *Memory, name agent.Namespace) *memoryNamespace {
	return &memoryNamespace{
		Memory: m, name: name, sessions: map[string]*memorySession{}, byID: map[string]*memoryCall{},
		replies:   map[string]keptReply{},
		artifacts: map[store.Target]*agent.Artifact{}, programs: map[string]string{}, archive: map[store.Target][]archived{},
		ranking: store.NewRanking(), policy: agent.DefaultPolicy(), patterns: map[string][]agent.PatternEvent{},
		evidence: store.NewEvidence(nil), files: map[string]*memoryFile{},
		conns: map[string]agent.Connection{}, ledger: store.NewLedger(store.Spent{}),
	}
}

// Ready implements Store.
func (m *Memory) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writable(context.Background())
}

// Settled implements Store. A commit lasts as long as the process, so there is nothing to wait for.
func (m *Memory) Settled() error { return nil }

// Stats implements Store.
func (m *Memory) Stats() store.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := store.Stats{Commits: m.commits, Artifacts: map[string]int{}}
	for _, n := range m.namespaces {
		s.Sessions += int64(len(n.sessions))
		s.Tools += int64(n.ranking.Tools())
		for state, count := range n.ranking.States() {
			s.Artifacts[state] += count
		}
		stored := n.stored()
		s.Stored.Add(stored.All)
	}
	return s
}

// Watch implements Store.
func (m *Memory) Watch(from store.Cursor, changed func(store.Change)) (stop func(), err error) {
	return m.feed.Watch(&m.mu, from, changed)
}

// Close implements Store.
func (m *Memory) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.members.Close()
	return nil
}

func (m *Memory) writable(ctx context.Context) error {
	if m.closed {
		return fmt.Errorf("%w: the store is closed", store.ErrReadOnly)
	}
	return context.Cause(ctx)
}

// writable starts a change: it returns an error if the namespace cannot be written. The first change creates the
// namespace.
func (n *memoryNamespace) writable(ctx context.Context) error {
	if n.erased {
		return errErased
	}
	if err := n.Memory.writable(ctx); err != nil {
		return err
	}
	n.exists, n.due = true, time.Time{}
	return nil
}

// changed sends a change to the watchers.
func (n *memoryNamespace) changed(c store.Change) {
	c.Namespace = n.name
	n.feed.Send(c)
}

package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

// CreateSession implements Namespace.
func (n *memoryNamespace) CreateSession(ctx context.Context, s agent.Session,
	sessionContext map[string]json.RawMessage) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	if n.sessions[s.ID] != nil {
		return store.ErrExists
	}
	s.HistorySize, s.Revision = 0, 1
	kept := maps.Clone(sessionContext)
	if kept == nil {
		kept = map[string]json.RawMessage{}
	}
	n.sessions[s.ID] = &memorySession{session: s, context: kept}
	return nil
}

// Session implements Namespace.
func (n *memoryNamespace) Session(_ context.Context, id string) (agent.Session, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.sessions[id]
	if s == nil {
		return agent.Session{}, store.ErrNotFound
	}
	return s.session, nil
}

// ListSessions implements Namespace.
func (n *memoryNamespace) ListSessions(_ context.Context, after string, limit int) ([]agent.Session, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := []agent.Session{}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(n.sessions))) {
		if after != "" && id >= after {
			continue
		}
		if len(out) == limit {
			break
		}
		out = append(out, n.sessions[id].session)
	}
	return out, nil
}

// DeleteSession implements Namespace.
func (n *memoryNamespace) DeleteSession(ctx context.Context, id string, audit *agent.AuditEntry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return err
	}
	err := n.deleteSession(id)
	if err == nil {
		n.appendAudit(ctx, audit)
	}
	return err
}

func (n *memoryNamespace) deleteSession(id string) error {
	if n.sessions[id] == nil {
		return store.ErrNotFound
	}
	delete(n.sessions, id)
	n.members.Forget(n.name, id)
	for _, c := range n.calls {
		if c.log.SessionID == id {
			store.EraseLog(&c.log)
			c.outcome, c.effects = nil, nil
		}
	}
	maps.DeleteFunc(n.replies, func(_ string, k keptReply) bool { return k.session == id })
	for role, events := range n.patterns {
		n.patterns[role] = slices.DeleteFunc(slices.Clone(events),
			func(e agent.PatternEvent) bool { return e.SessionID == id })
	}
	n.content.Forget(id)
	n.forgetAudit(id)
	n.forgetFiles(func(f *agent.File) bool { return f.SessionID == id })
	now := n.now()
	for key, a := range n.artifacts {
		if store.Remembers(a, id) {
			n.setArtifact(a.Apply(agent.ArtifactChange{Role: key.Role, MethodName: key.Method, At: now,
				ForgetSession: id}), false)
		}
	}
	for key, list := range n.archive {
		for i, x := range list {
			if x.artifact != nil && store.Remembers(x.artifact, id) {
				list[i].artifact = x.artifact.Apply(agent.ArtifactChange{Role: key.Role, MethodName: key.Method,
					At: now, ForgetSession: id})
			}
		}
	}
	return nil
}

// Context implements Namespace.
func (n *memoryNamespace) Context(_ context.Context, sessionID string) (map[string]json.RawMessage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.sessions[sessionID]
	if s == nil {
		return nil, store.ErrNotFound
	}
	return maps.Clone(s.context), nil
}

// ChangeContext implements Namespace.
func (n *memoryNamespace) ChangeContext(ctx context.Context, sessionID string, fence int64, c agent.ContextChange,
	audit *agent.AuditEntry) (map[string]json.RawMessage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.writable(ctx); err != nil {
		return nil, err
	}
	s := n.sessions[sessionID]
	if s == nil {
		return nil, store.ErrNotFound
	}
	if err := n.members.Fenced(n.name, sessionID, fence); err != nil {
		return nil, err
	}
	c.Apply(s.context)
	s.session.UpdatedAt = n.now()
	s.session.Revision++
	n.appendAudit(ctx, audit)
	return maps.Clone(s.context), nil
}

// History implements Namespace.
func (n *memoryNamespace) History(_ context.Context, sessionID string, q store.HistoryQuery) (store.HistoryPage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.sessions[sessionID]
	if s == nil {
		return store.HistoryPage{}, store.ErrNotFound
	}
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	page := store.HistoryPage{Records: []json.RawMessage{}, Size: len(s.records)}
	last, looked, size := 0, 0, 0
	add := func(r *memoryRecord) (full bool) {
		if q.Scan > 0 && looked == q.Scan {
			page.Next = r.record.Seq + 1
			if !q.Desc {
				page.Next = r.record.Seq - 1
			}
			return true
		}
		looked++
		if !q.Match(&r.record) {
			return false
		}
		if size += len(r.raw); q.Full(len(page.Records), size) {
			page.Next = last
			return true
		}
		page.Records = append(page.Records, r.raw)
		last = r.record.Seq
		return false
	}
	if q.Desc {
		from := len(s.records)
		if q.After > 0 {
			from = min(from, q.After-1)
		}
		for i := from - 1; i >= 0; i-- {
			if add(&s.records[i]) {
				break
			}
		}
		return page, nil
	}
	for i := max(q.After, 0); i < len(s.records); i++ {
		if add(&s.records[i]) {
			break
		}
	}
	return page, nil
}

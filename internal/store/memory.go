package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// CreateSession is part of Store.
func (m *Memory) CreateSession(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	if m.sessions[s.ID] != nil {
		return ErrExists
	}
	s.HistorySize, s.Revision = 0, 1
	kept := maps.Clone(sessionContext)
	if kept == nil {
		kept = map[string]json.RawMessage{}
	}
	m.sessions[s.ID] = &memorySession{session: s, context: kept}
	return nil
}

// Session is part of Store.
func (m *Memory) Session(_ context.Context, id string) (agent.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[id]
	if s == nil {
		return agent.Session{}, ErrNotFound
	}
	return s.session, nil
}

// ListSessions is part of Store.
func (m *Memory) ListSessions(_ context.Context, after string, limit int) ([]agent.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []agent.Session{}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(m.sessions))) {
		if after != "" && id >= after {
			continue
		}
		if len(out) == limit {
			break
		}
		out = append(out, m.sessions[id].session)
	}
	return out, nil
}

// DeleteSession is part of Store.
func (m *Memory) DeleteSession(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	return m.deleteSession(id)
}

func (m *Memory) deleteSession(id string) error {
	if m.sessions[id] == nil {
		return ErrNotFound
	}
	delete(m.sessions, id)
	for _, c := range m.calls {
		if c.log.SessionID == id {
			EraseLog(&c.log)
			c.outcome, c.effects = nil, nil
		}
	}
	maps.DeleteFunc(m.replies, func(_ string, k keptReply) bool { return k.session == id })
	for role, events := range m.patterns {
		m.patterns[role] = slices.DeleteFunc(slices.Clone(events), func(e agent.PatternEvent) bool { return e.SessionID == id })
	}
	m.content.Forget(id)
	now := m.now()
	for key, a := range m.artifacts {
		if Remembers(a, id) {
			m.setArtifact(a.Apply(agent.ArtifactChange{Role: key.Role, MethodName: key.Method, At: now, ForgetSession: id}))
		}
	}
	for key, list := range m.archive {
		for i, x := range list {
			if x.artifact != nil && Remembers(x.artifact, id) {
				list[i].artifact = x.artifact.Apply(agent.ArtifactChange{Role: key.Role, MethodName: key.Method, At: now, ForgetSession: id})
			}
		}
	}
	return nil
}

// Remembers reports whether the artifact keeps something of the session.
func Remembers(a *agent.Artifact, session string) bool {
	if slices.Contains(a.Scorecard.Sessions, session) {
		return true
	}
	for _, g := range a.Generations {
		if slices.ContainsFunc(g.Fixtures, func(f agent.Fixture) bool { return f.SessionID == session }) {
			return true
		}
	}
	return false
}

// Context is part of Store.
func (m *Memory) Context(_ context.Context, sessionID string) (map[string]json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[sessionID]
	if s == nil {
		return nil, ErrNotFound
	}
	return maps.Clone(s.context), nil
}

// ChangeContext is part of Store.
func (m *Memory) ChangeContext(ctx context.Context, sessionID string, c agent.ContextChange) (map[string]json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return nil, err
	}
	s := m.sessions[sessionID]
	if s == nil {
		return nil, ErrNotFound
	}
	c.Apply(s.context)
	s.session.UpdatedAt = m.now()
	s.session.Revision++
	return maps.Clone(s.context), nil
}

// History is part of Store.
func (m *Memory) History(_ context.Context, sessionID string, q HistoryQuery) (HistoryPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[sessionID]
	if s == nil {
		return HistoryPage{}, ErrNotFound
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	page := HistoryPage{Records: []json.RawMessage{}, Size: len(s.records)}
	last := 0
	add := func(r *memoryRecord) (full bool) {
		if !q.Match(&r.record) {
			return false
		}
		if len(page.Records) == q.Limit {
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

// CommitCall is part of Store.
func (m *Memory) CommitCall(ctx context.Context, c *CallCommit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	var s *memorySession
	if c.Record.CallID != "" || !c.Context.Empty() {
		if s = m.sessions[c.SessionID]; s == nil {
			return ErrNotFound
		}
	}
	if c.Record.CallID != "" {
		c.Record.Seq = len(s.records) + 1
		c.Log.ConversationHistorySize = c.Record.Seq
	}
	raw, err := json.Marshal(c.Record)
	if err != nil {
		return err
	}
	if err := compactAll(c); err != nil {
		return err
	}
	now := m.now()
	if s != nil {
		if c.Record.CallID != "" {
			s.records = append(s.records, memoryRecord{c.Record, raw})
		}
		c.Context.Apply(s.context)
		s.session.HistorySize = len(s.records)
		s.session.UpdatedAt = now
		s.session.Revision++
	}
	for _, change := range c.Artifacts {
		m.changeArtifact(change)
	}
	FillLog(&c.Log, m.artifacts[Target{Role: c.Log.Role, Method: c.Log.Method}])
	for _, t := range c.Tools {
		m.changeTool(t)
	}
	if p := c.Pattern; p != nil {
		events := append(slices.Clone(m.patterns[p.Role]), *p)
		m.patterns[p.Role] = events[max(0, len(events)-PatternsKept):]
	}
	if c.Log.CallID != "" {
		kept := &memoryCall{log: c.Log, effects: c.Effects, at: now}
		if c.Outcome.Status != "" {
			o := c.Outcome
			kept.outcome = &o
		}
		m.calls = append(m.calls, kept)
		m.byID[c.Log.CallID] = kept
	}
	if c.Content != nil {
		m.content.Put(*c.Content, c.SessionID, m.policy.Retention)
	}
	if c.Key != nil {
		k := *c.Key
		k.Reply = c.Reply
		m.replies[k.Key] = keptReply{k, c.SessionID, now}
	}
	m.stats.Commits++
	return nil
}

// compactAll refuses a commit that holds something which is not JSON, before anything is changed.
func compactAll(c *CallCommit) error {
	check := func(what string, raw json.RawMessage) error {
		if raw != nil && !json.Valid(raw) {
			return fmt.Errorf("%s of call %s is not JSON", what, c.Log.CallID)
		}
		return nil
	}
	if err := check("effects", c.Effects); err != nil {
		return err
	}
	if err := check("reply", c.Reply); err != nil {
		return err
	}
	if c.Content != nil {
		if err := check("content", c.Content.Value); err != nil {
			return err
		}
	}
	if c.Context != nil {
		for k, v := range c.Context.Set {
			if err := check("context key "+k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Memory) changeArtifact(c agent.ArtifactChange) *agent.Artifact {
	old := m.artifacts[Target{Role: c.Role, Method: c.MethodName}]
	if old == nil && c.Generation == nil {
		return nil // deleted meanwhile: counts of nothing
	}
	a := old.Apply(c)
	m.setArtifact(a)
	return a
}

func (m *Memory) setArtifact(a *agent.Artifact) {
	m.artifacts[Target{Role: a.Role, Method: a.MethodName}] = a
	for _, g := range a.Generations {
		m.programs[g.CodeChecksum] = g.Code
	}
	m.ranking.SetArtifact(a.Role, a.MethodName, FiguresOf(a))
	m.tell(Change{Kind: "artifact", Role: a.Role, Method: a.MethodName, Revision: a.Revision})
}

func (m *Memory) changeTool(c ToolChange) {
	if t, ok := c.Apply(m.ranking.Tool(c.Role)); ok {
		m.setTool(t)
	}
}

func (m *Memory) setTool(t *agent.Tool) {
	m.ranking.SetTool(t)
	m.tell(Change{Kind: "tool", Role: t.Role, Revision: t.Revision})
}

// Call is part of Store.
func (m *Memory) Call(_ context.Context, callID string) (Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.byID[callID]
	if c == nil {
		return Call{}, ErrNotFound
	}
	out := Call{Log: c.log}
	if h := m.policy.Retention.ValueHours; h == 0 || m.now().Sub(c.at) < time.Duration(h)*time.Hour {
		out.Outcome, out.Effects = c.outcome, c.effects
	}
	return out, nil
}

// ListCalls is part of Store.
func (m *Memory) ListCalls(_ context.Context, q CallQuery) ([]agent.LogEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	out := []agent.LogEntry{}
	skip := q.Before != ""
	for _, c := range slices.Backward(m.calls) {
		if skip {
			skip = c.log.CallID != q.Before
			continue
		}
		if len(out) == q.Limit {
			break
		}
		if q.Match(&c.log) {
			out = append(out, c.log)
		}
	}
	return out, nil
}

// Replay is part of Store.
func (m *Memory) Replay(_ context.Context, key string) (Idempotent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.replies[key]
	if !ok || m.now().Sub(k.at) >= KeyLife {
		return Idempotent{}, ErrNotFound
	}
	return k.reply, nil
}

// Content is part of Store.
func (m *Memory) Content(_ context.Context, ref string) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.content.Get(ref); ok {
		return v, nil
	}
	return nil, ErrNotFound
}

// Patterns is part of Store.
func (m *Memory) Patterns(_ context.Context, role string) ([]agent.PatternEvent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]agent.PatternEvent{}, m.patterns[role]...), nil
}

// Artifact is part of Store.
func (m *Memory) Artifact(_ context.Context, role, method string) (*agent.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.artifacts[Target{Role: role, Method: method}]; a != nil {
		return a, nil
	}
	return nil, ErrNotFound
}

// ChangeArtifact is part of Store.
func (m *Memory) ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange, audit *agent.AuditEntry) (*agent.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return nil, err
	}
	old := m.artifacts[Target{Role: c.Role, Method: c.MethodName}]
	switch {
	case old == nil && c.Generation == nil:
		return nil, ErrNotFound
	case old == nil && revision > 0, old != nil && revision != AnyRevision && revision != old.Revision:
		return nil, ErrConflict
	}
	a := m.changeArtifact(c)
	m.note(audit)
	return a, nil
}

// ListArtifacts is part of Store.
func (m *Memory) ListArtifacts(_ context.Context, role string) ([]*agent.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []*agent.Artifact{}
	for _, method := range m.ranking.Methods(role) {
		out = append(out, m.artifacts[Target{Role: role, Method: method}])
	}
	return out, nil
}

// ArtifactStates is part of Store.
func (m *Memory) ArtifactStates(context.Context) (map[string]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ranking.States(), nil
}

// Program is part of Store.
func (m *Memory) Program(_ context.Context, checksum string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if code, ok := m.programs[checksum]; ok {
		return code, nil
	}
	return "", ErrNotFound
}

// Lease is part of Store.
func (m *Memory) Lease(_ context.Context, key string, ttl time.Duration) (release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if end, held := m.leases[key]; held && now.Before(end) {
		return nil, ErrInUse
	}
	end := now.Add(ttl)
	m.leases[key] = end
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.leases[key].Equal(end) {
			delete(m.leases, key)
		}
	}, nil
}

// Tool is part of Store.
func (m *Memory) Tool(_ context.Context, role string) (agent.Tool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.ranking.Tool(role); t != nil {
		return *t, nil
	}
	return agent.Tool{}, ErrNotFound
}

// ListTools is part of Store.
func (m *Memory) ListTools(_ context.Context, after string, limit int) ([]agent.Tool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	roles := m.ranking.Roles()
	slices.Sort(roles)
	out := []agent.Tool{}
	for _, role := range roles {
		if t := m.ranking.Tool(role); t != nil && role > after && len(out) < limit {
			out = append(out, *t)
		}
	}
	return out, nil
}

// RankTools is part of Store.
func (m *Memory) RankTools(_ context.Context, now time.Time, limit int) ([]RankedTool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ranking.Top(now, limit), nil
}

// PutTool is part of Store.
func (m *Memory) PutTool(ctx context.Context, t agent.Tool, revision int64, audit *agent.AuditEntry) (agent.Tool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return agent.Tool{}, err
	}
	next, err := ReplaceTool(m.ranking.Tool(t.Role), t, revision, m.now())
	if err != nil {
		return agent.Tool{}, err
	}
	m.setTool(next)
	m.note(audit)
	return *next, nil
}

// ReplaceTool returns what PutTool makes of the stored tool (nil: there is none): t's contracts with the stored
// tool's usage. ErrConflict when the revision is not the stored one's.
func ReplaceTool(old *agent.Tool, t agent.Tool, revision int64, now time.Time) (*agent.Tool, error) {
	have := int64(0)
	if old != nil {
		have = old.Revision
	}
	if revision != AnyRevision && revision != have {
		return nil, ErrConflict
	}
	if old != nil {
		t.CreatedAt, t.LastUsedAt, t.UsageCount = old.CreatedAt, old.LastUsedAt, old.UsageCount
	} else {
		if t.CreatedAt.IsZero() {
			t.CreatedAt = now
		}
		if t.LastUsedAt.IsZero() {
			t.LastUsedAt = t.CreatedAt
		}
	}
	t.Revision = have + 1
	return &t, nil
}

// Policy is part of Store.
func (m *Memory) Policy(context.Context) (agent.Policy, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policy, nil
}

// SetPolicy is part of Store.
func (m *Memory) SetPolicy(ctx context.Context, p agent.Policy, audit *agent.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.policy = p
	m.policyRev++
	m.note(audit)
	m.tell(Change{Kind: "policy", Revision: m.policyRev})
	return nil
}

// Audit is part of Store.
func (m *Memory) Audit(_ context.Context, before string, limit int) ([]agent.AuditEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []agent.AuditEntry{}
	skip := before != ""
	for _, e := range slices.Backward(m.audit) {
		if skip {
			skip = e.ID != before
			continue
		}
		if len(out) == limit {
			break
		}
		out = append(out, e)
	}
	return out, nil
}

// AppendAudit is part of Store.
func (m *Memory) AppendAudit(ctx context.Context, e agent.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.note(&e)
	return nil
}

func (m *Memory) note(e *agent.AuditEntry) {
	if e != nil {
		m.audit = append(m.audit, *e)
	}
}

// splitTargets gives the artifacts that the targets name, and the roles whose tools they name.
func (m *Memory) splitTargets(targets []Target) (artifacts []Target, roles []string) {
	for _, t := range targets {
		if t.Method != "" {
			artifacts = append(artifacts, Target{Role: t.Role, Method: t.Method})
			continue
		}
		roles = append(roles, t.Role)
		for _, method := range m.ranking.Methods(t.Role) {
			artifacts = append(artifacts, Target{Role: t.Role, Method: method})
		}
	}
	return artifacts, roles
}

// Stale is part of Store.
func (m *Memory) Stale(_ context.Context, before time.Time) ([]Target, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ranking.Stale(before), nil
}

// Archive is part of Store.
func (m *Memory) Archive(ctx context.Context, targets []Target, audit agent.AuditEntry) error {
	return m.takeAway(ctx, targets, audit, true)
}

// Remove is part of Store.
func (m *Memory) Remove(ctx context.Context, targets []Target, audit agent.AuditEntry) error {
	return m.takeAway(ctx, targets, audit, false)
}

func (m *Memory) takeAway(ctx context.Context, targets []Target, audit agent.AuditEntry, keep bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	artifacts, roles := m.splitTargets(targets)
	for _, t := range artifacts {
		a := m.artifacts[t]
		if a == nil {
			continue
		}
		if keep {
			m.archive[t] = append(m.archive[t], archived{artifact: a})
		}
		delete(m.artifacts, t)
		m.ranking.DropArtifact(t.Role, t.Method)
		m.tell(Change{Kind: "artifact", Role: t.Role, Method: t.Method})
	}
	for _, role := range roles {
		t := m.ranking.Tool(role)
		if t == nil {
			continue
		}
		if keep {
			key := Target{Role: role}
			m.archive[key] = append(m.archive[key], archived{tool: t})
		}
		m.ranking.DropTool(role)
		m.tell(Change{Kind: "tool", Role: role})
	}
	m.note(&audit)
	return nil
}

// Restore is part of Store.
func (m *Memory) Restore(ctx context.Context, targets []Target, audit agent.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	back := []Target{}
	for _, t := range targets {
		found := false
		for key := range m.archive {
			if key.Role == t.Role && (t.Method == "" || key.Method == t.Method) {
				found = true
				if m.artifacts[key] != nil || key.Method == "" && m.ranking.Tool(key.Role) != nil {
					return fmt.Errorf("%w: %s", ErrExists, strings.TrimSuffix(key.Role+"."+key.Method, "."))
				}
				back = append(back, key)
			}
		}
		if !found {
			return fmt.Errorf("%w in the archive: %s", ErrNotFound, strings.TrimSuffix(t.Role+"."+t.Method, "."))
		}
	}
	for _, key := range back {
		list := m.archive[key]
		if len(list) == 0 {
			continue // named twice
		}
		last := list[len(list)-1]
		if m.archive[key] = list[:len(list)-1]; len(list) == 1 {
			delete(m.archive, key)
		}
		if last.tool != nil {
			m.setTool(last.tool)
		} else {
			m.setArtifact(last.artifact)
		}
	}
	m.note(&audit)
	return nil
}

// Expire is part of Store.
func (m *Memory) Expire(ctx context.Context, now time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return 0, err
	}
	r := m.policy.Retention
	gone := []string{}
	ids := slices.Sorted(maps.Keys(m.sessions))
	for i, id := range ids {
		old := r.SessionDays > 0 && now.Sub(m.sessions[id].session.UpdatedAt) > time.Duration(r.SessionDays)*24*time.Hour
		if old || r.MaxSessions > 0 && len(ids)-i > r.MaxSessions {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		if err := m.deleteSession(id); err != nil {
			return 0, err
		}
	}
	maps.DeleteFunc(m.replies, func(_ string, k keptReply) bool { return now.Sub(k.at) >= KeyLife })
	return len(gone), nil
}

var _ Store = (*Memory)(nil)

package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// CreateSession is part of store.Store.
func (s *Store) CreateSession(ctx context.Context, meta agent.Session, sessionContext map[string]json.RawMessage) error {
	if !validID(meta.ID) {
		return fmt.Errorf("session id %q cannot be stored", meta.ID)
	}
	meta.HistorySize, meta.Revision = 0, 1
	kept := make(map[string]json.RawMessage, len(sessionContext))
	for k, v := range sessionContext {
		kept[k] = bytes.Clone(v)
	}
	e := s.newEntry()
	e.Session, e.Create = meta.ID, &created{meta, kept}
	return s.commit(ctx, &commit{entry: e, check: func(b *batch) error {
		_, err := s.session(meta.ID)
		if err == nil || slices.Contains(b.created, meta.ID) {
			return store.ErrExists
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		b.created = append(b.created, meta.ID)
		return nil
	}})
}

// Session is part of store.Store.
func (s *Store) Session(_ context.Context, id string) (agent.Session, error) {
	x, err := s.session(id)
	if err != nil {
		return agent.Session{}, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.meta, nil
}

// Context is part of store.Store.
func (s *Store) Context(_ context.Context, sessionID string) (map[string]json.RawMessage, error) {
	x, err := s.session(sessionID)
	if err != nil {
		return nil, err
	}
	return x.values(), nil
}

// ChangeContext is part of store.Store.
func (s *Store) ChangeContext(ctx context.Context, sessionID string, c agent.ContextChange) (map[string]json.RawMessage, error) {
	if _, err := s.session(sessionID); err != nil {
		return nil, err
	}
	e := s.newEntry()
	e.Session, e.Context = sessionID, &c
	if err := s.commit(ctx, &commit{entry: e}); err != nil {
		return nil, err
	}
	return e.planned.session.values(), nil
}

// ListSessions is part of store.Store. It reads the directory once, when it is first asked.
func (s *Store) ListSessions(_ context.Context, after string, limit int) ([]agent.Session, error) {
	if err := s.loadIDs(); err != nil {
		return nil, err
	}
	out := []agent.Session{}
	for len(out) < limit {
		s.mu.RLock()
		end := len(s.ids)
		if after != "" {
			end, _ = slices.BinarySearch(s.ids, after)
		}
		part := slices.Clone(s.ids[max(0, end-limit):end])
		s.mu.RUnlock()
		if len(part) == 0 {
			break
		}
		for _, id := range slices.Backward(part) {
			x, err := s.session(id)
			if errors.Is(err, store.ErrNotFound) {
				continue // deleted meanwhile, or unreadable
			}
			if err != nil {
				return nil, err
			}
			if len(out) < limit {
				x.mu.RLock()
				out = append(out, x.meta)
				x.mu.RUnlock()
			}
		}
		after = part[0]
	}
	return out, nil
}

// loadIDs reads the ids of all sessions.
func (s *Store) loadIDs() error {
	s.mu.RLock()
	loaded := s.ids != nil
	s.mu.RUnlock()
	if loaded {
		return nil
	}
	s.seq.Lock() // so that none is made or deleted meanwhile
	defer s.seq.Unlock()
	names, err := s.fs.List("sessions")
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids != nil {
		return nil
	}
	ids := make([]string, 0, len(names)+len(s.touched))
	for _, name := range names {
		if _, gone := s.gone[name]; validID(name) && !gone {
			ids = append(ids, name)
		}
	}
	for id := range s.touched {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	s.ids = slices.Compact(ids)
	s.sessionCount = int64(len(s.ids))
	return nil
}

// Artifact is part of store.Store.
func (s *Store) Artifact(_ context.Context, role, method string) (*agent.Artifact, error) {
	x, err := s.artifact(artifactKey{role, method})
	if err != nil {
		return nil, err
	}
	return x.a, nil
}

// ChangeArtifact is part of store.Store.
func (s *Store) ChangeArtifact(ctx context.Context, revision int64, c agent.ArtifactChange, audit *agent.AuditEntry) (*agent.Artifact, error) {
	k := artifactKey{c.Role, c.MethodName}
	e := s.newEntry()
	e.Artifacts, e.Audit = []agent.ArtifactChange{c}, audit
	err := s.commit(ctx, &commit{entry: e, check: func(b *batch) error {
		x, err := s.artifactIn(b, k)
		switch {
		case errors.Is(err, store.ErrNotFound) && c.Generation == nil:
			return err
		case errors.Is(err, store.ErrNotFound) && revision > 0:
			return store.ErrConflict
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		case err == nil && revision != store.AnyRevision && revision != x.a.Revision:
			return store.ErrConflict
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return e.artifacts[0].a, nil
}

// ListArtifacts is part of store.Store.
func (s *Store) ListArtifacts(_ context.Context, role string) ([]*agent.Artifact, error) {
	s.mu.RLock()
	methods := s.ranking.Methods(role)
	s.mu.RUnlock()
	out := []*agent.Artifact{}
	for _, m := range methods {
		x, err := s.artifact(artifactKey{role, m})
		if errors.Is(err, store.ErrNotFound) {
			continue // taken away meanwhile, or set aside
		}
		if err != nil {
			return nil, err
		}
		out = append(out, x.a)
	}
	return out, nil
}

// Program is part of store.Store.
func (s *Store) Program(_ context.Context, checksum string) (string, error) {
	return s.program(checksum)
}

// Lease is part of store.Store: leases of this process are all there are, as it holds the directory.
func (s *Store) Lease(_ context.Context, key string, ttl time.Duration) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if end, held := s.leases[key]; held && now.Before(end) {
		return nil, store.ErrInUse
	}
	end := now.Add(ttl)
	s.leases[key] = end
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.leases[key].Equal(end) {
			delete(s.leases, key)
		}
	}, nil
}

// Tool is part of store.Store.
func (s *Store) Tool(_ context.Context, role string) (agent.Tool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.ranking.Tool(role); t != nil {
		return *t, nil
	}
	return agent.Tool{}, store.ErrNotFound
}

// ListTools is part of store.Store.
func (s *Store) ListTools(_ context.Context, after string, limit int) ([]agent.Tool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, found := slices.BinarySearch(s.roles, after)
	if found {
		i++
	}
	out := []agent.Tool{}
	for ; i < len(s.roles) && len(out) < limit; i++ {
		out = append(out, *s.ranking.Tool(s.roles[i]))
	}
	return out, nil
}

// RankTools is part of store.Store.
func (s *Store) RankTools(_ context.Context, now time.Time, limit int) ([]store.RankedTool, error) {
	s.mu.Lock() // to ask is to let tools grow stale
	defer s.mu.Unlock()
	return s.ranking.Top(now, limit), nil
}

// PutTool is part of store.Store.
func (s *Store) PutTool(ctx context.Context, t agent.Tool, revision int64, audit *agent.AuditEntry) (agent.Tool, error) {
	e := s.newEntry()
	e.Audit = audit
	err := s.commit(ctx, &commit{entry: e, check: func(b *batch) (err error) {
		e.Put, err = store.ReplaceTool(s.toolIn(b, t.Role), t, revision, s.now())
		return err
	}})
	if err != nil {
		return agent.Tool{}, err
	}
	return *e.Put, nil
}

// Policy is part of store.Store.
func (s *Store) Policy(context.Context) (agent.Policy, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return *s.policy, nil
}

// SetPolicy is part of store.Store.
func (s *Store) SetPolicy(ctx context.Context, p agent.Policy, audit *agent.AuditEntry) error {
	e := s.newEntry()
	e.Policy, e.Audit = &p, audit
	return s.commit(ctx, &commit{entry: e})
}

// AppendAudit is part of store.Store.
func (s *Store) AppendAudit(ctx context.Context, a agent.AuditEntry) error {
	e := s.newEntry()
	e.Audit = &a
	return s.commit(ctx, &commit{entry: e})
}

// Audit is part of store.Store.
func (s *Store) Audit(ctx context.Context, before string, limit int) ([]agent.AuditEntry, error) {
	s.mu.RLock()
	pending, end := s.audits, s.auditBytes
	s.mu.RUnlock()
	out := []agent.AuditEntry{}
	skip := before != ""
	add := func(a agent.AuditEntry) (full bool) {
		if skip {
			skip = a.ID != before
			return false
		}
		if len(out) < limit {
			out = append(out, a)
		}
		return len(out) >= limit
	}
	for _, a := range slices.Backward(pending) {
		if add(*a) {
			return out, nil
		}
	}
	if end == 0 {
		return out, nil
	}
	f, err := s.fs.Open(auditFile, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = jsonl.Backward(ctx, f, end, func(line []byte, _ int64) (bool, error) {
		var a agent.AuditEntry
		if json.Unmarshal(line, &a) != nil {
			s.reportDamage(auditFile) // a line that somebody damaged does not hide the others
			return false, nil
		}
		return add(a), nil
	})
	return out, err
}

// DeleteSession is part of store.Store. The deletion is durable before anything is erased, and everything is erased
// when it returns; a crash in between erases the rest at the next start.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	if err := s.deleteSessions(ctx, []string{id}); err != nil {
		return err
	}
	return nil
}

func (s *Store) deleteSessions(ctx context.Context, ids []string) error {
	e := s.newEntry()
	e.Delete = ids
	err := s.commit(ctx, &commit{entry: e, alone: true, check: func(*batch) error {
		for _, id := range ids {
			x, err := s.session(id)
			if err != nil {
				return err
			}
			changes, err := s.forgetting(ctx, x, e.at())
			if err != nil {
				return err
			}
			e.Artifacts = append(e.Artifacts, changes...)
		}
		return nil
	}})
	if err != nil {
		return err
	}
	if err := s.checkpoint(); err != nil { // also takes the session out of the journal
		s.fail(err)
	}
	return nil
}

// forgetting finds the artifacts which keep something of a session: those that its calls ran.
func (s *Store) forgetting(ctx context.Context, x *session, at time.Time) ([]agent.ArtifactChange, error) {
	seen := map[artifactKey]bool{}
	note := func(line []byte) (bool, error) {
		m := recordMeta{}
		if err := json.Unmarshal(line, &m); err == nil {
			seen[artifactKey{m.Role, m.MethodName}] = true
		}
		return false, nil
	}
	x.mu.RLock()
	v := view{x.id, x.size, x.bytes, x.pending}
	x.mu.RUnlock()
	if v.bytes > 0 {
		f, err := s.fs.Open(historyFile(x.id), false)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if _, err := jsonl.Forward(ctx, f, 0, v.bytes, note); err != nil {
			return nil, err
		}
	}
	for _, line := range v.pending {
		_, _ = note(line)
	}
	changes := []agent.ArtifactChange{}
	for k := range seen {
		a, err := s.artifact(k)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if store.Remembers(a.a, x.id) {
			changes = append(changes, agent.ArtifactChange{Role: k.role, MethodName: k.method, At: at, ForgetSession: x.id})
		}
	}
	return changes, nil
}

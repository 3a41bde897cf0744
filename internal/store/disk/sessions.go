package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// sessions is the part that holds the sessions with their contexts and histories.
type sessions struct {
	n *namespace

	changed map[string]*session  // sessions that changed since the last checkpoint; guarded by shared.mu, as all below
	unread  map[string]unread    // sessions that the replayed journal creates
	gone    map[string]time.Time // deleted sessions whose files may still exist, with their time of creation or zero
	ids     []string             // of all sessions, sorted; nil until they are listed
	count   int64                // number of sessions; -1 if it is not known
}

// sessionKey is a session's key in the cache.
type sessionKey struct {
	namespace *namespace
	id        string
}

func (p *sessions) key(id string) sessionKey { return sessionKey{p.n, id} }

// get returns the live session from memory or from its file, or store.ErrNotFound.
func (p *sessions) get(id string) (*session, error) {
	if err := p.n.broken(); err != nil {
		return nil, err
	}
	if x := p.cached(id); x != nil {
		return x, nil
	}
	if !validID(id) {
		return nil, store.ErrNotFound
	}
	lock := p.n.stripe("session", string(p.n.name), id)
	lock.Lock()
	defer lock.Unlock()
	if err := p.lookUp(id); err != nil {
		return nil, err
	}
	// lookUp or another goroutine may have put it into memory.
	if x := p.cached(id); x != nil {
		return x, nil
	}
	if p.isErased(id) {
		return nil, store.ErrNotFound
	}
	x, err := p.load(id)
	if err != nil {
		return nil, err
	}
	p.n.sessionCache.Set(p.key(id), x)
	return x, nil
}

// isErased reports whether the session was deleted and its files may still exist.
func (p *sessions) isErased(id string) bool {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	_, gone := p.gone[id]
	return gone
}

// cached returns the session if it is in memory, and nil otherwise.
func (p *sessions) cached(id string) *session {
	p.n.mu.RLock()
	x := p.changed[id]
	p.n.mu.RUnlock()
	if x != nil {
		return x
	}
	if x, ok := p.n.sessionCache.GetIfPresent(p.key(id)); ok && !x.isGone() {
		return x
	}
	return nil
}

// applyCreate applies the creation of a session. The caller holds sequencer.mu and shared.mu, as in applyChange and
// applyDelete.
func (p *sessions) applyCreate(e *entry) {
	p.addNew(e.Create, e.lsn)
	p.count++
	// ids stays nil until somebody lists the sessions.
	if p.ids != nil {
		if i, found := slices.BinarySearch(p.ids, e.Session); !found {
			p.ids = slices.Insert(p.ids, i, e.Session)
		}
	}
}

// addNew adds a session without files. The caller holds shared.mu.
func (p *sessions) addNew(c *created, lsn uint64) {
	x := newSession(p.n.shared, c.Session, c.Context)
	x.lsn, x.behind = lsn, true
	p.changed[x.id] = x
}

// applyChange applies a record and a change of the context, except for what the session has already.
func (p *sessions) applyChange(e *entry) {
	x := e.planned.session
	x.mu.Lock()
	defer x.mu.Unlock()
	// A replay also brings records and changes that the files have already.
	if e.record != nil && e.Seq == x.size+1 {
		x.size++
		x.pending = append(x.pending, e.record)
		x.remember(&e.meta, e.record)
		x.meta.HistorySize = x.size
	}
	if e.lsn > x.lsn {
		if e.Context != nil {
			next := maps.Clone(x.context)
			e.Context.Apply(next)
			x.context = next
		}
		x.meta.UpdatedAt = e.at()
		x.meta.Revision++
		x.lsn = e.lsn
	}
	x.behind = true
	p.changed[x.id] = x
}

// applyDelete removes a session from memory and marks its files to be erased.
func (p *sessions) applyDelete(id string) {
	x := p.changed[id]
	if x == nil {
		x, _ = p.n.sessionCache.GetIfPresent(p.key(id))
	}
	created := time.Time{}
	if u, waits := p.unread[id]; waits {
		created = u.Session.CreatedAt
		delete(p.unread, id)
	}
	if x != nil {
		x.mu.Lock()
		x.gone, x.pending = true, nil
		created = x.meta.CreatedAt
		x.mu.Unlock()
	}
	delete(p.changed, id)
	p.n.sessionCache.Invalidate(p.key(id))
	p.gone[id] = created
	p.count--
	if i, found := slices.BinarySearch(p.ids, id); found {
		p.ids = slices.Delete(p.ids, i, i+1)
	}
}

// CreateSession is part of store.Namespace.
func (p *sessions) CreateSession(ctx context.Context, meta agent.Session,
	sessionContext map[string]json.RawMessage) error {
	if !validID(meta.ID) {
		return fmt.Errorf("session id %q cannot be stored", meta.ID)
	}
	meta.HistorySize, meta.Revision = 0, 1
	kept := make(map[string]json.RawMessage, len(sessionContext))
	for k, v := range sessionContext {
		kept[k] = bytes.Clone(v)
	}
	e := p.n.newEntry()
	e.Session, e.Create = meta.ID, &created{meta, kept}
	return p.n.commit(ctx, &commit{entry: e, check: func() error {
		_, err := p.get(meta.ID)
		if err == nil || slices.Contains(p.n.batch.created, meta.ID) {
			return store.ErrExists
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		p.n.batch.created = append(p.n.batch.created, meta.ID)
		return nil
	}})
}

// Session is part of store.Namespace.
func (p *sessions) Session(_ context.Context, id string) (agent.Session, error) {
	x, err := p.get(id)
	if err != nil {
		return agent.Session{}, err
	}
	return x.metadata(), nil
}

// Context is part of store.Namespace.
func (p *sessions) Context(_ context.Context, sessionID string) (map[string]json.RawMessage, error) {
	x, err := p.get(sessionID)
	if err != nil {
		return nil, err
	}
	return x.values(), nil
}

// ChangeContext is part of store.Namespace.
func (p *sessions) ChangeContext(ctx context.Context, sessionID string, fence int64, c agent.ContextChange,
	audit *agent.AuditEntry) (map[string]json.RawMessage, error) {
	if _, err := p.get(sessionID); err != nil {
		return nil, err
	}
	e := p.n.newEntry()
	e.Session, e.Context, e.Audit = sessionID, &c, audit
	if err := p.n.commit(ctx, &commit{entry: e,
		check: func() error { return p.n.members.Fenced(p.n.name, sessionID, fence) }}); err != nil {
		return nil, err
	}
	return e.planned.session.values(), nil
}

// DeleteSession is part of store.Namespace. The deletion is durable before anything is erased. Everything has been
// erased when DeleteSession returns, unless the files cannot be written. After a crash, the next start erases the rest.
func (p *sessions) DeleteSession(ctx context.Context, id string, audit *agent.AuditEntry) error {
	return p.delete(ctx, []string{id}, audit)
}

// delete deletes sessions in one commit, which is alone in its batch, and then erases their files. It returns
// store.ErrNotFound if one of them does not exist.
func (p *sessions) delete(ctx context.Context, ids []string, audit *agent.AuditEntry) error {
	e := p.n.newEntry()
	e.Delete, e.Audit = ids, audit
	err := p.n.commit(ctx, &commit{entry: e, alone: true, check: func() error {
		for _, id := range ids {
			x, err := p.get(id)
			if err != nil {
				return err
			}
			changes, err := p.forgetting(ctx, x, e.at())
			if err != nil {
				return err
			}
			e.Artifacts = append(e.Artifacts, changes...)
			e.shrink(x.metadata().Owner, x.taken())
		}
		return nil
	}})
	if err != nil {
		return err
	}
	// The checkpoint also removes the session from the journal.
	if err := p.n.flusher.writeCheckpoint(); err != nil {
		p.n.health.fail(err)
	}
	return nil
}

// forgetting returns the changes that make artifacts forget a session. They affect artifacts whose programs ran for its
// calls.
func (p *sessions) forgetting(ctx context.Context, x *session, at time.Time) ([]agent.ArtifactChange, error) {
	ran := map[artifactKey]bool{}
	err := p.eachRecord(ctx, x, func(line []byte) {
		m := recordMeta{}
		if err := json.Unmarshal(line, &m); err == nil {
			ran[p.n.artifactKey(m.Role, m.MethodName)] = true
		}
	})
	if err != nil {
		return nil, err
	}
	changes := []agent.ArtifactChange{}
	for _, k := range slices.SortedFunc(maps.Keys(ran), artifactKey.compare) {
		a, err := p.n.artifacts.get(k)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if store.Remembers(a.a, x.id) {
			changes = append(changes, agent.ArtifactChange{Role: k.role, MethodName: k.method, At: at,
				ForgetSession: x.id})
		}
	}
	return changes, nil
}

var _ store.Sessions = (*sessions)(nil)

// allIDs returns the ids of all sessions, sorted. Only the first call reads the directory.
func (p *sessions) allIDs() ([]string, error) {
	if err := p.loadIDs(); err != nil {
		return nil, err
	}
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	return slices.Clone(p.ids), nil
}

// loadIDs reads the ids of all sessions into p.ids, unless they are loaded.
func (p *sessions) loadIDs() error {
	p.n.mu.RLock()
	loaded := p.ids != nil
	p.n.mu.RUnlock()
	if loaded {
		return nil
	}
	p.n.sequencer.mu.Lock() // no session is created or deleted meanwhile
	defer p.n.sequencer.mu.Unlock()
	names, err := p.n.files.list("sessions")
	if err != nil {
		return err
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.ids != nil {
		return nil
	}
	ids := make([]string, 0, len(names)+len(p.changed)+len(p.unread))
	for _, name := range names {
		if _, gone := p.gone[name]; validID(name) && !gone {
			ids = append(ids, name)
		}
	}
	for id := range p.changed {
		ids = append(ids, id)
	}
	for id := range p.unread {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	p.ids = slices.Compact(ids)
	p.count = int64(len(p.ids))
	return nil
}

// ListSessions is part of store.Namespace.
func (p *sessions) ListSessions(_ context.Context, after string, limit int) ([]agent.Session, error) {
	if err := p.loadIDs(); err != nil {
		return nil, err
	}
	out := []agent.Session{}
	for len(out) < limit {
		part := p.idsBefore(after, limit)
		if len(part) == 0 {
			break
		}
		for _, id := range slices.Backward(part) {
			x, err := p.get(id)
			if errors.Is(err, store.ErrNotFound) {
				continue // deleted meanwhile, or not readable
			}
			if err != nil {
				return nil, err
			}
			if len(out) < limit {
				out = append(out, x.metadata())
			}
		}
		after = part[0]
	}
	return out, nil
}

// idsBefore returns up to limit ids that come before id, or the last ones if id is "".
func (p *sessions) idsBefore(id string, limit int) []string {
	p.n.mu.RLock()
	defer p.n.mu.RUnlock()
	end := len(p.ids)
	if id != "" {
		end, _ = slices.BinarySearch(p.ids, id)
	}
	return slices.Clone(p.ids[max(0, end-limit):end])
}

// unread is a session that the replayed journal creates. Its files may exist already. Opening the files of many
// sessions takes long, so this is looked up when the session is first needed, or before files are next written.
type unread struct {
	*created
	lsn uint64
}

// lookUp finds out whether an unread session has files, which may include later entries, or exists only in the journal.
// The caller holds the session's stripe.
func (p *sessions) lookUp(id string) error {
	p.n.mu.RLock()
	u, waits := p.unread[id]
	p.n.mu.RUnlock()
	if !waits {
		return nil
	}
	stored, err := p.isStored(id)
	if err != nil {
		return err
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if _, waits := p.unread[id]; !waits {
		return nil // deleted meanwhile
	}
	delete(p.unread, id)
	if !stored {
		p.addNew(u.created, u.lsn)
	}
	return nil
}

// isStored reports whether the session's document exists.
func (p *sessions) isStored(id string) (bool, error) {
	data, err := p.n.files.ReadFile(sessionFile(id))
	if err == nil && holdsSession(data, id) {
		return true, nil
	}
	if vfs.NotExist(err) {
		// Anything else in its directory, such as a history, comes again from the journal.
		return false, nil
	}
	x, err := p.load(id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.n.sessionCache.Set(p.key(id), x)
	return true, nil
}

// lookUpAll looks up all unread sessions. Those without files are among the changed ones afterwards.
func (p *sessions) lookUpAll() error {
	p.n.mu.RLock()
	var ids []string
	if len(p.unread) > 0 { // usually none are
		ids = slices.Sorted(maps.Keys(p.unread))
	}
	p.n.mu.RUnlock()
	for _, id := range ids {
		if err := p.lookUpLocked(id); err != nil {
			return err
		}
	}
	return nil
}

// lookUpLocked calls lookUp with the session's stripe held.
func (p *sessions) lookUpLocked(id string) error {
	lock := p.n.stripe("session", string(p.n.name), id)
	lock.Lock()
	defer lock.Unlock()
	return p.lookUp(id)
}

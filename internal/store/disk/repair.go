package disk

import (
	"context"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Repair opens a stopped store, which replays its journal, moves aside what cannot be read, and rebuilds what is
// derived: the index of artifacts, the program texts and the indexes of the logs. Then it verifies the store. audit is
// the entry for the audit trail of the default namespace; nil means none.
func Repair(ctx context.Context, dir string, o Options, audit *agent.AuditEntry) (Report, error) {
	s, err := Open(dir, o)
	if err != nil {
		return Report{}, err
	}
	err = s.loadAll()
	for _, n := range s.all() {
		err = errors.Join(err, n.repair(ctx))
	}
	if err == nil {
		err = s.note(ctx, audit)
	}
	if err := errors.Join(err, s.close()); err != nil {
		return Report{}, err
	}
	return Verify(ctx, dir, o)
}

func (n *namespace) repair(ctx context.Context) error {
	for _, step := range []func(context.Context) error{n.repairIndex, n.repairPrograms, n.repairSessions,
		n.repairLines} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// repairIndex rebuilds the index of artifacts from their files.
func (n *namespace) repairIndex(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ranking := n.catalog.ranking
	for _, role := range ranking.Roles() {
		for _, m := range ranking.Methods(role) {
			ranking.DropArtifact(role, m)
		}
	}
	return n.catalog.rebuildIndex()
}

// repairPrograms marks the program texts of all artifacts to be written, and moves aside files with a wrong checksum.
func (n *namespace) repairPrograms(ctx context.Context) error {
	n.mu.RLock()
	roles := n.catalog.ranking.Roles()
	n.mu.RUnlock()
	for _, role := range roles {
		list, err := n.ListArtifacts(ctx, role)
		if err != nil {
			return err
		}
		n.mu.Lock()
		for _, a := range list {
			for _, g := range a.Held() {
				n.artifacts.programs[g.CodeChecksum] = g.Code
			}
		}
		n.mu.Unlock()
	}
	return n.files.eachProgram(func(name, _ string, intact bool) error {
		if intact {
			return nil
		}
		return n.files.moveAside(name, errWrongChecksum)
	})
}

// repairSessions repairs all sessions.
func (n *namespace) repairSessions(ctx context.Context) error {
	ids, err := n.sessions.allIDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := n.sessions.repair(id); err != nil {
			return err
		}
	}
	return nil
}

// repair checks the history of a session line by line, as recovery does, and marks its document to be written if
// something was wrong.
func (p *sessions) repair(id string) error {
	x, err := p.get(id)
	if errors.Is(err, store.ErrNotFound) {
		if info, err := p.n.files.Stat(sessionDir(id)); err == nil && info.Dir {
			return p.n.files.moveAside(sessionDir(id), errors.New("holds no session"))
		}
		return nil
	}
	if err != nil {
		return err
	}
	info, err := p.n.files.Stat(historyFile(id))
	if err != nil && !vfs.NotExist(err) {
		return err
	}
	x.mu.Lock()
	changed, err := p.repairEnd(x, info.Size)
	x.mu.Unlock()
	if err != nil || !changed {
		return err
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.changed[id] = x
	return nil
}

// repairEnd checks all lines of a history. It reports whether the session's document must be written. The caller holds
// the session's lock.
func (p *sessions) repairEnd(x *session, fileSize int64) (changed bool, err error) {
	if len(x.pending) > 0 {
		return false, nil
	}
	size, bytes := x.size, x.bytes
	// Check each line as if it were known to be on disk, so damage is not taken for a torn end.
	x.synced = fileSize
	err = p.findEnd(x, fileSize)
	if x.size != size || x.bytes != bytes {
		x.behind = true
	}
	if x.behind {
		x.synced, x.syncedRecords = 0, 0 // sync all of it again
		x.meta.HistorySize = x.size
	}
	return x.behind, err
}

// repairLines replaces lines of the logs that do not parse, after moving the damaged files aside. It also drops the
// logs' indexes, which are rebuilt when needed.
func (n *namespace) repairLines(context.Context) error {
	n.flusher.mu.Lock()
	defer n.flusher.mu.Unlock()
	n.flusher.forced = true
	n.stored.unsure.Store(true)
	aside := func(name string) error { return n.files.moveAside(name, errors.New("lines that do not parse")) }
	for _, l := range []*jsonl.Log{n.calls.entries, n.calls.values} {
		if err := l.Repair(aside); err != nil {
			return err
		}
	}
	return n.auditTrail.repair()
}

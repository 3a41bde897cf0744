package disk

import (
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// sessionState is the state of a session at one moment, to be written. Later changes may not be durable in the journal
// yet.
type sessionState struct {
	*session
	document sessionDoc // without the synced bytes and records
	lines    [][]byte   // lines that the history's file lacks
}

// gather returns the states of the sessions to write: those whose document lacks something, or all changed ones if full
// is set. The caller holds shared.mu.
func (p *sessions) gather(full bool) []sessionState {
	out := make([]sessionState, 0, len(p.changed))
	for _, x := range p.changed {
		if s, behind := x.state(); full || behind {
			out = append(out, s)
		}
	}
	return out
}

// state returns the current state of the session and whether its document lacks something.
func (x *session) state() (s sessionState, behind bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sessionState{x, sessionDoc{head: head{agent.SchemaVersion, x.lsn}, Session: x.meta, Context: x.context},
		x.pending}, x.behind
}

// doc returns the session's document with the current ends of its synced history.
func (s *sessionState) doc() sessionDoc {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.document.SyncedBytes, s.document.SyncedRecords = s.synced, s.syncedRecords
	return s.document
}

// written records that the document was written. The document still lacks something if the session has changed since.
func (s *sessionState) written() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = s.behind && s.lsn != s.document.LSN
}

// write writes what the files of sessions lack. If full is set, it also syncs their histories.
func (p *sessions) write(list []sessionState, full bool) error {
	list = slices.DeleteFunc(list, func(s sessionState) bool { return s.isGone() })
	for len(list) >= leastBatch {
		n := min(len(list), mostBatch)
		if err := p.writeBatch(list[:n], full); errors.Is(err, errors.ErrUnsupported) {
			// The sessions that are left are written one by one.
			break
		} else if err != nil {
			return err
		}
		list = list[n:]
	}
	for i := range list {
		if err := p.writeOne(&list[i], full); err != nil {
			return err
		}
		if full {
			p.handToCache(list[i].session)
		}
	}
	return nil
}

// Bounds of writeBatch, in sessions. From leastBatch sessions on, a few syncs of the whole file system are cheaper than
// several for each session.
const (
	leastBatch = 32
	mostBatch  = 4096
)

// writeBatch is writeOne for many sessions. It needs three syncs in all: after the histories, after the documents and
// after renaming the documents.
func (p *sessions) writeBatch(list []sessionState, full bool) error {
	reached := make([]historyEnd, len(list))
	for i := range list {
		s := &list[i]
		if err := p.n.files.Mkdir(sessionDir(s.id)); err != nil {
			return err
		}
		if err := p.appendHistory(s); err != nil {
			return err
		}
		reached[i] = s.historyEnd()
	}
	if err := p.n.files.SyncAll(); err != nil {
		return err
	}
	docs := p.n.files.NewBatch()
	defer docs.Discard()
	for i := range list {
		s := &list[i]
		if full {
			s.setSynced(reached[i])
		}
		if !s.isBehind() {
			continue
		}
		data, err := encodeDoc(s.doc())
		if err != nil {
			return err
		}
		if err := docs.Add(sessionFile(s.id), data); err != nil {
			return err
		}
	}
	if err := docs.Commit(); err != nil {
		return err
	}
	for i := range list {
		list[i].written()
		if full {
			p.handToCache(list[i].session)
		}
	}
	return nil
}

// historyEnd is the size of a history's file.
type historyEnd struct {
	bytes   int64
	records int
}

// historyEnd returns the current size of the history's file.
func (x *session) historyEnd() historyEnd {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return historyEnd{x.bytes, x.size - len(x.pending)}
}

// setSynced records how much of the history's file is durable.
func (x *session) setSynced(at historyEnd) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.synced != at.bytes {
		x.synced, x.syncedRecords, x.behind = at.bytes, at.records, true
	}
}

// writeOne writes what the files of one session lack.
func (p *sessions) writeOne(s *sessionState, full bool) error {
	if err := p.n.files.makeDir(sessionDir(s.id)); err != nil {
		return err
	}
	if err := p.appendHistory(s); err != nil {
		return err
	}
	if full {
		if err := p.syncHistory(s.session); err != nil {
			return err
		}
	}
	if !s.isBehind() {
		return nil
	}
	if err := p.n.files.writeDoc(sessionFile(s.id), s.doc()); err != nil {
		return err
	}
	s.written()
	return nil
}

// handToCache moves a session whose files have all of it to the cache, unless it has changed again.
func (p *sessions) handToCache(x *session) {
	lock := p.n.stripe("session", string(p.n.name), x.id)
	lock.Lock()
	defer lock.Unlock()
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	x.mu.RLock()
	written := !x.behind && !x.gone && len(x.pending) == 0
	x.mu.RUnlock()
	if written && p.changed[x.id] == x {
		delete(p.changed, x.id)
		p.n.sessionCache.Set(p.key(x.id), x)
		delete(p.n.files.made, sessionDir(x.id))
	}
}

// appendHistory appends the lines that the file lacks.
func (p *sessions) appendHistory(s *sessionState) error {
	if len(s.lines) == 0 {
		return nil
	}
	n, err := jsonl.Append(p.n.files, historyFile(s.id), s.historyEnd().bytes, s.lines)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil
	}
	if s.pending = s.pending[len(s.lines):]; len(s.pending) == 0 {
		s.pending = nil
	}
	s.bytes += n
	s.lines = nil // writeOne must not append them again if SyncAll is not supported
	return nil
}

// syncHistory makes the history's file durable, unless it is already.
func (p *sessions) syncHistory(x *session) error {
	end := x.historyEnd()
	x.mu.RLock()
	synced := x.synced
	x.mu.RUnlock()
	if end.bytes == synced {
		return nil
	}
	if err := jsonl.Sync(p.n.files, historyFile(x.id)); err != nil {
		return err
	}
	x.setSynced(end)
	return nil
}

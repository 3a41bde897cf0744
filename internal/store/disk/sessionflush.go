package disk

import (
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// gather lists the sessions to write: those whose document lacks something, or all that changed. The caller holds
// shared.mu.
func (p *sessions) gather(full bool) []*session {
	out := make([]*session, 0, len(p.changed))
	for _, x := range p.changed {
		if full || x.isBehind() {
			out = append(out, x)
		}
	}
	return out
}

// write writes what sessions lack. When it is full, their histories are synced too.
func (p *sessions) write(list []*session, full bool) error {
	list = slices.DeleteFunc(list, (*session).isGone)
	for len(list) >= leastBatch {
		n := min(len(list), mostBatch)
		if err := p.writeBatch(list[:n], full); errors.Is(err, errors.ErrUnsupported) {
			break // the sessions are then written one by one
		} else if err != nil {
			return err
		}
		list = list[n:]
	}
	for _, x := range list {
		if err := p.writeOne(x, full); err != nil {
			return err
		}
		if full {
			p.handToCache(x)
		}
	}
	return nil
}

// Bounds of writeBatch, in sessions. From leastBatch on, a few syncs of the whole file system are cheaper than some for each session.
const (
	leastBatch = 32
	mostBatch  = 4096
)

// writeBatch is writeOne for many sessions, with three syncs in all: after the histories, the documents, and the documents' renames.
func (p *sessions) writeBatch(list []*session, full bool) error {
	for _, x := range list {
		if err := p.n.files.Mkdir(sessionDir(x.id)); err != nil {
			return err
		}
		if err := p.appendHistory(x); err != nil {
			return err
		}
	}
	reached := make([]historyEnd, len(list))
	for i, x := range list {
		reached[i] = x.historyEnd()
	}
	if err := p.n.files.SyncAll(); err != nil {
		return err
	}
	docs := p.n.files.NewBatch()
	defer docs.Discard()
	written := list[:0:0]
	err := func() error {
		for i, x := range list {
			if full {
				x.setSynced(reached[i])
			}
			if !x.setBehind(false) {
				continue
			}
			written = append(written, x)
			data, err := encodeDoc(x.doc())
			if err != nil {
				return err
			}
			if err := docs.Add(sessionFile(x.id), data); err != nil {
				return err
			}
		}
		return docs.Commit()
	}()
	if err != nil {
		for _, x := range written {
			x.setBehind(true)
		}
		return err
	}
	if full {
		for _, x := range list {
			p.handToCache(x)
		}
	}
	return nil
}

// historyEnd returns the size of a history's file.
type historyEnd struct {
	bytes   int64
	records int
}

func (x *session) historyEnd() historyEnd {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return historyEnd{x.bytes, x.size - len(x.pending)}
}

// setSynced notes how much of the history's file is durable.
func (x *session) setSynced(at historyEnd) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.synced != at.bytes {
		x.synced, x.syncedRecords, x.behind = at.bytes, at.records, true
	}
}

func (p *sessions) writeOne(x *session, full bool) error {
	if err := p.n.files.makeDir(sessionDir(x.id)); err != nil {
		return err
	}
	if err := p.appendHistory(x); err != nil {
		return err
	}
	if full {
		if err := p.syncHistory(x); err != nil {
			return err
		}
	}
	if !x.setBehind(false) {
		return nil
	}
	if err := p.n.files.writeDoc(sessionFile(x.id), x.doc()); err != nil {
		x.setBehind(true)
		return err
	}
	return nil
}

// handToCache moves a session whose files have all of it to the cache, unless it changed again.
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

// appendHistory writes the pending lines behind those that the file has.
func (p *sessions) appendHistory(x *session) error {
	x.mu.RLock()
	lines, off := x.pending, x.bytes
	x.mu.RUnlock()
	if len(lines) == 0 {
		return nil
	}
	n, err := jsonl.Append(p.n.files, historyFile(x.id), off, lines)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.gone {
		return nil
	}
	if x.pending = x.pending[len(lines):]; len(x.pending) == 0 {
		x.pending = nil
	}
	x.bytes += n
	return nil
}

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

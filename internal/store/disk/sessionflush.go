package disk

import (
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
	for _, x := range list {
		if x.isGone() {
			continue
		}
		if err := p.writeOne(x, full); err != nil {
			return err
		}
		if full {
			p.handToCache(x)
		}
	}
	return nil
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
	x.mu.RLock()
	size, synced, records := x.bytes, x.synced, x.size-len(x.pending)
	x.mu.RUnlock()
	if size == synced {
		return nil
	}
	if err := jsonl.Sync(p.n.files, historyFile(x.id)); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.synced, x.syncedRecords, x.behind = size, records, true
	return nil
}

package disk

import (
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

func (s *Store) writeSessions(w *work) error {
	for _, x := range w.sessions {
		if x.isGone() {
			continue
		}
		if err := s.writeSession(x, w.full); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writeSession(x *session, full bool) error {
	dir := sessionDir(x.id)
	if err := s.makeDir(dir); err != nil {
		return err
	}
	if err := s.appendHistory(x); err != nil {
		return err
	}
	if full {
		if err := s.syncHistory(x); err != nil {
			return err
		}
	}
	x.mu.Lock()
	behind := x.dirty
	x.dirty = false
	x.mu.Unlock()
	if behind {
		err := s.writeDoc(sessionFile(x.id), x.doc())
		if err != nil {
			x.mu.Lock()
			x.dirty = true
			x.mu.Unlock()
			return err
		}
	}
	if !full {
		return nil
	}
	lock := s.stripe("session", x.id)
	lock.Lock()
	defer lock.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	x.mu.RLock()
	settled := !x.dirty && !x.gone && len(x.pending) == 0 && s.touched[x.id] == x
	x.mu.RUnlock()
	if settled {
		delete(s.touched, x.id)
		s.sessions.Set(x.id, x)
		delete(s.dirs, dir)
	}
	return nil
}

// appendHistory writes the pending lines behind those that the file has.
func (s *Store) appendHistory(x *session) error {
	x.mu.RLock()
	lines, off := x.pending, x.bytes
	x.mu.RUnlock()
	if len(lines) == 0 {
		return nil
	}
	n, err := jsonl.Append(s.fs, historyFile(x.id), off, lines)
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

func (s *Store) syncHistory(x *session) error {
	x.mu.RLock()
	size, synced, records := x.bytes, x.synced, x.size-len(x.pending)
	x.mu.RUnlock()
	if size == synced {
		return nil
	}
	if err := jsonl.Sync(s.fs, historyFile(x.id)); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.synced, x.sure, x.dirty = size, records, true
	return nil
}

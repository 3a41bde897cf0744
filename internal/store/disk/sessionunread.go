package disk

import (
	"errors"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

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
	ids := make([]string, 0, len(p.unread))
	for id := range p.unread {
		ids = append(ids, id)
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

package disk

import (
	"errors"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// unread is a session that the replayed journal creates. Opening the files of many sessions takes long, so whether they have it is looked up
// when it is first needed, and before files are written next.
type unread struct {
	*created
	lsn uint64
}

// lookUp finds out where an unread session is: in its files, which may have later entries than the one that creates it, or in the journal
// only. The caller holds the session's stripe.
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

// isStored reports whether a session has its files.
func (p *sessions) isStored(id string) (bool, error) {
	data, err := p.n.files.ReadFile(sessionFile(id))
	if err == nil && holdsSession(data, id) {
		return true, nil
	}
	if vfs.NotExist(err) {
		return false, nil // whatever else its directory has, also a history, comes again
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

// lookUpAll looks up all unread sessions, so that those without files are among the changed ones.
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

func (p *sessions) lookUpLocked(id string) error {
	lock := p.n.stripe("session", string(p.n.name), id)
	lock.Lock()
	defer lock.Unlock()
	return p.lookUp(id)
}

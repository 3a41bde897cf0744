package disk

import (
	"context"
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

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

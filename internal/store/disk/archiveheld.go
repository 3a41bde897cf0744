package disk

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/store"
)

// Archived is part of store.Namespace.
func (p *archive) Archived(_ context.Context, targets []store.Target, auditID string) error {
	p.n.mu.RLock()
	pending, back := slices.Clone(p.pending), slices.Clone(p.restored)
	p.n.mu.RUnlock()
	has := map[string]bool{} // by archivePlace
	note := func(name string) {
		if movedBy(name, auditID) && !isCorruptName(path.Base(name)) && !slices.Contains(back, name) {
			place, _, _ := strings.Cut(name, ".")
			has[place] = true
		}
	}
	for _, x := range pending {
		note(x.name)
	}
	listed := map[string]bool{}
	for _, t := range targets {
		place := archivePlace(t)
		if dir := path.Dir(place); !has[place] && !listed[dir] {
			listed[dir] = true
			names, err := p.n.files.list(dir)
			if err != nil {
				return err
			}
			for _, name := range names {
				note(path.Join(dir, name))
			}
		}
		if !has[place] {
			return store.NotArchived(t)
		}
	}
	return nil
}

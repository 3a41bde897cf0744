package disk

import (
	"cmp"
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
	now := p.n.now()
	held := map[string][]string{} // names of files by directory
	for _, x := range pending {
		held[path.Dir(x.name)] = append(held[path.Dir(x.name)], x.name)
	}
	listed := map[string]bool{}
	for _, t := range targets {
		place := archivePlace(t)
		if dir := path.Dir(place); !listed[dir] {
			listed[dir] = true
			names, err := p.n.files.list(dir)
			if err != nil {
				return err
			}
			for _, name := range names {
				held[dir] = append(held[dir], path.Join(dir, name))
			}
		}
		if !slices.ContainsFunc(held[path.Dir(place)], func(name string) bool {
			return strings.HasPrefix(name, place+".") && movedBy(name, cmp.Or(t.From, auditID)) &&
				!isCorruptName(path.Base(name)) && !slices.Contains(back, name) && !pastRestore(name, now)
		}) {
			return store.NotArchived(t)
		}
	}
	return nil
}

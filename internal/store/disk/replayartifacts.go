package disk

import (
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// artifacts prepares what an entry does to artifacts.
func (r *replay) artifacts(e *entry) error {
	for i, change := range e.Artifacts {
		k := e.namespace.artifactKey(change.Role, change.MethodName)
		var old *agent.Artifact
		x, err := r.artifactNow(e, k)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		case x.lsn >= e.lsn && !slices.Contains(e.artifacts, x):
			r.index(x)
			continue
		default:
			old = x.a
		}
		want := int64(0)
		if i < len(e.Revisions) {
			want = e.Revisions[i]
		}
		if want == 0 || old == nil && !change.Creates() {
			continue // there was none then, or it was archived or removed since
		}
		next := old.Apply(change)
		if next.Revision != want {
			if old != nil {
				r.miss("artifact "+next.String(), e.lsn)
			}
			continue
		}
		e.artifacts = append(e.artifacts, &artifact{a: next, key: k, lsn: e.lsn})
	}
	return nil
}

// artifactNow is the artifact with what the entry's earlier changes made of it.
func (r *replay) artifactNow(e *entry, k artifactKey) (*artifact, error) {
	for _, x := range slices.Backward(e.artifacts) {
		if x.key == k {
			return x, nil
		}
	}
	return e.namespace.artifacts.get(k)
}

// move prepares what an entry archives, removes or restores.
func (r *replay) move(e *entry) error {
	if e.Move == nil {
		return nil
	}
	p := e.namespace.archive
	if e.Move.Kind != "restore" {
		if err := p.planAway(e); err != nil {
			return err
		}
		if e.lsn <= e.namespace.catalog.registry.lsn {
			e.away = slices.DeleteFunc(e.away, func(x archived) bool { return x.tool != nil })
		}
		return nil
	}
	if err := r.s.flusher.sync(); err != nil { // what was archived is in its files then
		return err
	}
	for _, name := range e.Move.Files {
		x, err := p.read(name)
		if vfs.NotExist(err) || errors.Is(err, errCorrupt) {
			continue // moved aside, or restored from and gone: the checkpoint is lost
		}
		if err != nil {
			return err
		}
		if p.inUse(x) != nil || x.tool != nil && e.lsn <= e.namespace.catalog.registry.lsn {
			if x.artifact != nil {
				now, err := e.namespace.artifacts.get(x.artifact.key)
				if err != nil {
					return err
				}
				r.index(now)
			}
			x.tool, x.artifact = nil, nil // it is in its place: only the archive's file is to go
		}
		e.restored = append(e.restored, x)
	}
	return nil
}

// index puts into the index the figures of an artifact's file, which the index, being written later, may lack.
func (r *replay) index(x *artifact) {
	r.s.shared.mu.Lock()
	defer r.s.shared.mu.Unlock()
	p := x.key.namespace.catalog
	p.setArtifact(x.key, store.FiguresOf(x.a))
}

// miss logs, once, that something cannot be replayed because an entry before it is damaged.
func (r *replay) miss(what string, lsn uint64) {
	if !r.broken[what] {
		r.broken[what] = true
		r.s.log.Error().Str("what", what).Uint64("entry",
			lsn).Msg("an entry that it depends on is lost: it stays as it was before")
	}
}

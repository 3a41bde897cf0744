package disk

import (
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// artifacts prepares the changes of an entry to artifacts.
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
			continue // it did not exist then, or has been archived or removed since
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

// artifactNow returns the artifact with the entry's earlier changes to it applied.
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
	if err := r.s.flusher.sync(); err != nil { // the archive's files are then complete
		return err
	}
	for _, name := range e.Move.Files {
		x, err := p.read(name)
		if vfs.NotExist(err) || errors.Is(err, errCorrupt) {
			continue // moved aside, or restored and removed already because the checkpoint was lost
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
			x.tool, x.artifact = nil, nil // it is in use already; only the archive's file must be removed
		}
		e.restored = append(e.restored, x)
	}
	return nil
}

// index updates the index from an artifact's file. The index is written later than the file and may lack the artifact.
func (r *replay) index(x *artifact) {
	r.s.shared.mu.Lock()
	defer r.s.shared.mu.Unlock()
	p := x.key.namespace.catalog
	p.setArtifact(x.key, store.FiguresOf(x.a))
}

// miss logs, once for each session or artifact, that it cannot be replayed any further because an earlier entry is
// damaged.
func (r *replay) miss(what string, lsn uint64) {
	if !r.broken[what] {
		r.broken[what] = true
		r.s.log.Error().Str("what", what).Uint64("entry",
			lsn).Msg("an entry that it depends on is lost: it stays as it was before")
	}
}

package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Restore is part of store.Namespace.
func (p *archive) Restore(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	if err := errors.Join(p.n.health.ready(), p.n.make()); err != nil {
		return err
	}
	p.n.flusher.archive.Lock()
	defer p.n.flusher.archive.Unlock()
	// The files must hold the entry that was just archived.
	if err := p.n.flusher.sync(); err != nil {
		return err
	}
	e := p.n.newEntry()
	e.Audit = &audit
	e.Move = &move{Kind: "restore"}
	return p.n.commit(ctx, &commit{entry: e, alone: true, check: func() error {
		seen, r := map[string]bool{}, store.Restoring{}
		for _, t := range targets {
			if err := p.planRestore(e, t, seen, &r); err != nil {
				return err
			}
		}
		e.Artifacts = r.Below
		e.growMoved()
		return nil
	}})
}

// planRestore plans what a target restores. seen holds the files that earlier targets restore.
func (p *archive) planRestore(e *entry, t store.Target, seen map[string]bool, r *store.Restoring) error {
	names, err := p.find(t, cmp.Or(t.From, e.Audit.Undoes))
	if err != nil {
		return err
	}
	for _, name := range names {
		if seen[name] {
			r.Whole()
			continue
		}
		x, err := p.read(name)
		if errors.Is(err, errCorrupt) {
			return fmt.Errorf("%w in the archive: %s was corrupt and moved aside", store.ErrNotFound, name)
		}
		if err != nil {
			return err
		}
		target := x.target()
		if target.Role != t.Role || t.Method != "" && target.Method != t.Method {
			continue // another name with the same slug
		}
		switch now := p.inUse(x); {
		case now == nil:
			seen[name] = true
			r.Whole()
			e.restored = append(e.restored, x)
			e.Move.Targets = append(e.Move.Targets, target)
			e.Move.Files = append(e.Move.Files, name)
		case now.artifact != nil:
			r.Beneath(now.artifact.a, x.artifact.a, e.Audit, readStamp(name).by, e.at())
		default:
			r.Stays(target, nil)
		}
	}
	return r.End(t)
}

// endDeleted removes the files of deleted items that can no longer be restored. waits reports whether there are deleted
// items that still can be.
func (p *archive) endDeleted(now time.Time) (waits bool, err error) {
	p.n.flusher.archive.Lock() // nothing is restored meanwhile
	defer p.n.flusher.archive.Unlock()
	p.n.mu.RLock()
	pending := slices.ContainsFunc(p.pending, func(x archived) bool { return readStamp(x.name).deleted })
	p.n.mu.RUnlock()
	// Their files must exist before they are listed.
	if pending {
		if err := p.n.flusher.sync(); err != nil {
			return true, err
		}
	}
	p.n.mu.RLock()
	back := slices.Clone(p.restored)
	p.n.mu.RUnlock()
	var gone []string
	err = p.n.files.eachDir(archiveDir, func(dir string) error {
		names, err := p.n.files.list(dir)
		for _, name := range names {
			at := path.Join(dir, name)
			switch {
			case !readStamp(name).deleted || isCorruptName(name):
			// A replay may need the file until the next checkpoint, which removes it.
			case slices.Contains(back, at):
			case pastRestore(name, now):
				gone = append(gone, at)
			default:
				waits = true
			}
		}
		return err
	})
	return waits, errors.Join(err, p.n.files.removeAll(gone))
}

// target returns the name of an archived item.
func (x archived) target() store.Target {
	if x.tool != nil {
		return store.Target{Role: x.tool.Role}
	}
	return store.Target{Role: x.artifact.key.role, Method: x.artifact.key.method}
}

// inUse returns the tool or artifact that is in use under the name of x, or nil if there is none.
func (p *archive) inUse(x archived) *archived {
	if x.tool != nil {
		if tool := p.n.catalog.tool(x.tool.Role); tool != nil {
			return &archived{tool: tool}
		}
		return nil
	}
	if now, err := p.n.artifacts.get(x.artifact.key); err == nil {
		return &archived{artifact: now}
	}
	return nil
}

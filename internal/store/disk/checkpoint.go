package disk

import (
	"errors"
	"path"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// writeCheckpoint durably brings all files up to the journal, and cuts the journal.
func (f *flusher) writeCheckpoint() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checkpointLocked()
}

// checkpointLocked is writeCheckpoint with mu held. During an export it only writes the files.
func (f *flusher) checkpointLocked() error {
	if f.exporting > 0 {
		_, _, err := f.flush(false)
		return err
	}
	f.shared.mu.RLock()
	idle := f.applied == f.checkpoint && !f.forced
	f.shared.mu.RUnlock()
	if idle {
		f.last = time.Now()
		return nil
	}
	if err := f.layOut(); err != nil {
		return err
	}
	// Even if rotating fails because of a full disk, the files must follow the journal. The error is returned at the
	// end.
	rotated := f.sequencer.rotate()
	lsn, list, err := f.flush(true)
	if err != nil {
		return errors.Join(err, rotated)
	}
	if err := f.syncInherited(); err != nil {
		return err
	}
	if err := f.syncLines(lsn, list); err != nil {
		return err
	}
	// From here on the checkpoint is on disk, and what it makes obsolete can be removed.
	for _, w := range list {
		if err := w.n.archive.removeRestored(w.restored); err != nil {
			return err
		}
	}
	f.checkpoint, f.forced, f.last = lsn, false, time.Now()
	f.forgetErased(lsn)
	return errors.Join(rotated, wal.Remove(f.root, journalDir, f.sequencer.cut(lsn)))
}

// syncInherited makes durable what a killed process wrote without a sync. The replay skipped what it found in files.
func (f *flusher) syncInherited() error {
	if !f.inherited {
		return nil
	}
	err := f.root.SyncAll()
	if errors.Is(err, errors.ErrUnsupported) {
		err = f.root.syncDirs(".")
	}
	f.inherited = err != nil
	return err
}

// syncDirs syncs a directory and all directories below it. A document is synced before it gets its name, so only the
// name can be lost.
func (f *files) syncDirs(dir string) error {
	names, err := f.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		name = path.Join(dir, name)
		if info, err := f.Stat(name); err != nil || !info.Dir {
			continue // a file, or removed meanwhile
		}
		if err := f.syncDirs(name); err != nil {
			return err
		}
	}
	return f.SyncDir(dir)
}

// namespacesVersion is the schema version of a checkpoint that names namespaces other than the default one. A
// recurgentd without support for namespaces must refuse it, because it would take their journal entries for its own.
const namespacesVersion = 2

// checkpointDoc is journal/checkpoint.json. The files include all entries up to its lsn.
type checkpointDoc struct {
	head
	checkpointed                                   // of the default namespace
	Namespaces   map[agent.Namespace]*checkpointed `json:"namespaces,omitempty"` // without the default one
}

// of returns what the checkpoint records of a namespace, or nil if it does not know the namespace.
func (d *checkpointDoc) of(name agent.Namespace) *checkpointed {
	switch {
	case d.SchemaVersion == 0: // there is no checkpoint
		return nil
	case name == agent.DefaultNamespace:
		return &d.checkpointed
	}
	return d.Namespaces[name]
}

// syncLines makes the line logs durable and writes a checkpoint with their ends.
func (f *flusher) syncLines(lsn uint64, list []*work) error {
	doc := checkpointDoc{head: head{agent.SchemaVersion, lsn}}
	put := func(name agent.Namespace, at *checkpointed) {
		if doc.Namespaces == nil {
			doc.Namespaces, doc.SchemaVersion = map[agent.Namespace]*checkpointed{}, namespacesVersion
		}
		doc.Namespaces[name] = at
	}
	for name, at := range f.idle {
		put(name, at)
	}
	for _, w := range list {
		at, err := w.n.syncLines()
		if w.n.gone.Load() {
			continue // erased meanwhile, by an entry after the checkpoint
		}
		if err != nil {
			return err
		}
		at.Sessions, at.Unarchived, at.life, at.Figures, at.Stored = w.count, w.restored, w.life, w.figures,
			w.n.stored.doc(w.stored)
		if w.n.name == agent.DefaultNamespace {
			doc.checkpointed = at
			continue
		}
		put(w.n.name, &at)
	}
	return f.root.writeDoc(checkpointFile, doc)
}

// syncLines makes the logs of a namespace durable and returns their ends.
func (n *namespace) syncLines() (at checkpointed, err error) {
	if at.Calls, err = n.calls.entries.Sync(); err != nil {
		return at, err
	}
	if at.Values, err = n.calls.values.Sync(); err != nil {
		return at, err
	}
	return at, n.auditTrail.sync(&at)
}

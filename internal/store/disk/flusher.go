package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// flusher writes the files behind the journal, and gets a store that cannot write going again.
type flusher struct {
	*shared
	root       *files
	sequencer  *sequencer
	namespaces func() []*namespace // all of them, in the order of their names

	kick <-chan struct{}
	stop context.CancelFunc
	done chan struct{}

	archive locks.RWMutex // see the package comment

	mu         locks.Mutex
	exporting  int       // exports under way: the journal and the segments stay; guarded by mu, as all below
	checkpoint uint64    // lsn of the last checkpoint
	forced     bool      // the next checkpoint writes in any case
	last       time.Time // when the last checkpoint was
}

// run writes the files until ctx ends.
func (f *flusher) run(ctx context.Context) {
	defer close(f.done)
	if f.o.Flush < 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(f.o.Flush)
	defer tick.Stop()
	for {
		full := false
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.mu.Lock()
			full = time.Since(f.last) >= f.o.Checkpoint
			f.mu.Unlock()
		case <-f.kick:
			full = true
		}
		f.round(full)
	}
}

// round writes the files once, and takes commits again when everything can be written.
func (f *flusher) round(full bool) {
	if f.health.doubt() != nil {
		return
	}
	err := f.checkSpace()
	if err == nil {
		err = f.sequencer.reopen()
	}
	write := f.sync
	if full {
		write = f.writeCheckpoint
	}
	if err = errors.Join(err, write()); err != nil {
		f.health.fail(err)
		return
	}
	f.sequencer.recovered()
}

// checkSpace reports a disk with less than the reserve free, or a fiftieth of a small one: so that what is being
// written can still be written to its end.
func (f *flusher) checkSpace() error {
	free, total, err := f.o.FS.Free()
	if err != nil {
		return err
	}
	if reserve := min(f.o.Reserve, total/50); free < reserve {
		return fmt.Errorf("the disk is full: %d bytes free, %d are kept in reserve", free, reserve)
	}
	return nil
}

// sync writes what people look at: histories, logs, sessions, artifacts, contracts and the policy.
func (f *flusher) sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _, err := f.flush(false)
	return err
}

// writeCheckpoint brings all files up to the journal, durably, and cuts the journal.
func (f *flusher) writeCheckpoint() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checkpointLocked()
}

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
	rotated := f.sequencer.rotate() // a full disk must not keep the files behind: see below
	lsn, list, err := f.flush(true)
	if err != nil {
		return errors.Join(err, rotated)
	}
	if err := f.syncLines(lsn, list); err != nil {
		return err
	}
	for _, w := range list {
		if err := w.n.archive.removeRestored(w.restored); err != nil {
			return err
		}
	}
	f.checkpoint, f.forced, f.last = lsn, false, time.Now()
	return errors.Join(rotated, wal.Remove(f.root, journalDir, f.sequencer.cut(lsn)))
}

// namespacesVersion is the schema version of a checkpoint that names namespaces beside the default one. A recurgentd
// that does not know namespaces refuses it: it would take their journal entries for its own.
const namespacesVersion = 2

// checkpointDoc is journal/checkpoint.json: the files have everything up to its lsn.
type checkpointDoc struct {
	head
	checkpointed                                   // of the default namespace
	Namespaces   map[agent.Namespace]*checkpointed `json:"namespaces,omitempty"` // the others
}

// of returns what the checkpoint says of a namespace; nil when it does not know it.
func (d *checkpointDoc) of(name agent.Namespace) *checkpointed {
	switch {
	case d.SchemaVersion == 0: // there is no checkpoint
		return nil
	case name == agent.DefaultNamespace:
		return &d.checkpointed
	}
	return d.Namespaces[name]
}

// syncLines makes the logs of lines durable and writes down where they end.
func (f *flusher) syncLines(lsn uint64, list []*work) error {
	doc := checkpointDoc{head: head{agent.SchemaVersion, lsn}}
	for _, w := range list {
		at, err := w.n.syncLines()
		if err != nil {
			return err
		}
		at.Sessions, at.Unarchived = w.count, w.restored
		if w.n.name == agent.DefaultNamespace {
			doc.checkpointed = at
			continue
		}
		if doc.Namespaces == nil {
			doc.Namespaces, doc.SchemaVersion = map[agent.Namespace]*checkpointed{}, namespacesVersion
		}
		doc.Namespaces[w.n.name] = &at
	}
	return f.root.writeDoc(checkpointFile, doc)
}

func (n *namespace) syncLines() (at checkpointed, err error) {
	if at.Calls, err = n.calls.entries.Sync(); err != nil {
		return at, err
	}
	if at.Values, err = n.calls.values.Sync(); err != nil {
		return at, err
	}
	at.Audit, err = n.auditTrail.sync()
	return at, err
}

// create makes the directories of a namespace, and has the checkpoint name it before the journal does.
func (f *flusher) create(n *namespace) error {
	f.archive.Lock() // an export has no checkpoint under way, and would lack the namespace
	defer f.archive.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.exists.Load() {
		return nil
	}
	if err := n.layOut(); err != nil {
		return err
	}
	n.exists.Store(true)
	f.forced = true
	err := f.checkpointLocked()
	if err != nil {
		n.exists.Store(false)
	}
	return err
}

// flush writes what changed in all namespaces. The caller holds mu. After an error all that was not written stays to be
// written.
func (f *flusher) flush(full bool) (lsn uint64, list []*work, err error) {
	lsn, list = f.gather(full)
	err = f.health.doubt() // it is set before the lock that gather waits for is released
	for _, w := range list {
		if err == nil {
			err = w.write(full, f.exporting > 0)
		}
		if err != nil {
			w.giveBack()
		}
	}
	return lsn, list, err
}

// gather takes the state of all namespaces at one moment: what is archived, for one, is either in the archive's files
// or in the registry, whenever the writing ends early.
func (f *flusher) gather(full bool) (lsn uint64, list []*work) {
	all := f.namespaces()
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	for _, n := range all {
		if n.exists.Load() {
			list = append(list, n.gather(full))
		}
	}
	return f.applied, list
}

// work is what the flusher writes of a namespace: its state at one moment.
type work struct {
	n         *namespace
	sessions  []*session
	artifacts []*artifact
	programs  map[string]string
	archived  []archived
	restored  []string
	calls     []*pendingCall
	audit     []*agent.AuditEntry
	docs      []*heldDoc // that are not written yet
	gone      map[string]time.Time
	count     int64 // of sessions
}

func (n *namespace) gather(full bool) *work {
	w := &work{n: n, sessions: n.sessions.gather(full), archived: slices.Clone(n.archive.pending), restored: slices.Clone(n.archive.restored),
		calls: slices.Clone(n.calls.pending), audit: slices.Clone(n.auditTrail.pending), gone: maps.Clone(n.sessions.gone), count: n.sessions.count}
	w.artifacts, w.programs = n.artifacts.gather()
	for _, h := range n.held() {
		if d := h.gather(n.head(), full); d != nil {
			w.docs = append(w.docs, d)
		}
	}
	return w
}

// write writes the files in an order in which none refers to one that is not there.
func (w *work) write(full, exporting bool) error {
	n := w.n
	for _, step := range []func() error{
		func() error { return n.artifacts.writePrograms(w.programs) },
		func() error { return n.archive.write(w.archived) },
		func() error { return n.artifacts.write(w.artifacts) },
		func() error { return n.sessions.write(w.sessions, full) },
		func() error { return n.calls.write(w.calls, exporting) },
		func() error { return n.auditTrail.write(w.audit) },
		w.writeDocs,
		func() error { return n.erase(w.gone) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) writeDocs() error {
	for len(w.docs) > 0 {
		d := w.docs[0]
		w.docs = w.docs[1:]
		if err := d.write(w.n.files); err != nil {
			return err
		}
	}
	return nil
}

// giveBack has the documents that were not written written the next time.
func (w *work) giveBack() {
	for _, d := range w.docs {
		d.giveBack(w.n.shared)
	}
}

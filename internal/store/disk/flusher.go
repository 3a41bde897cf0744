package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
)

// flusher writes the files after the journal, and makes the store writable again when it can.
type flusher struct {
	*shared
	root      *files
	sequencer *sequencer

	kick <-chan struct{}
	stop context.CancelFunc // ends run
	done chan struct{}      // closed when run has ended

	archive locks.RWMutex // see the package comment for its use

	mu locks.Mutex
	// exports in progress; journal and segments are kept meanwhile; guarded by mu, as all below
	exporting  int
	checkpoint uint64 // lsn of the last checkpoint
	forced     bool   // the next checkpoint is written even if nothing changed
	inherited  bool   // files written by another process may not be synced
	// the files lack entries that were in the journal at the start; the first round writes them, usually when the
	// daemon is ready
	behind bool
	last   time.Time                         // time of the last checkpoint
	text   callText                          // buffers for the namespace that is being written
	idle   map[agent.Namespace]*checkpointed // idle namespaces when a checkpoint last gathered the state
}

// run writes the files until ctx ends. With a negative Flush it does nothing.
func (f *flusher) run(ctx context.Context) {
	defer close(f.done)
	if f.o.Flush < 0 {
		<-ctx.Done()
		return
	}
	pace(ctx, f.o.Flush, f.kick, func(kicked bool) {
		f.mu.Lock()
		full := kicked || time.Since(f.last) >= f.o.Checkpoint
		f.mu.Unlock()
		f.round(full)
	})
}

// round writes the files once. If everything can be written, the store accepts commits again.
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

// checkSpace returns an error if less space is free than the reserve, or than a fiftieth of a small disk. The reserve
// lets writes in progress complete.
func (f *flusher) checkSpace() error {
	free, total, err := f.o.FS.Free()
	if err != nil {
		return err
	}
	if reserve := min(f.o.Reserve, total/50); free < reserve {
		return fmt.Errorf("the disk is full: %d bytes are free, and %d are reserved", free, reserve)
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

// create creates the directories of a namespace. It writes a checkpoint that names the namespace before the journal
// does.
func (f *flusher) create(n *namespace) error {
	// An export has no checkpoint in progress and would lack the namespace.
	f.archive.Lock()
	defer f.archive.Unlock()
	if err := f.finishErasing(n.name); err != nil {
		return err
	}
	return f.createLocked(n)
}

// createLocked is create with archive held.
func (f *flusher) createLocked(n *namespace) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := n.broken(); err != nil || n.exists.Load() {
		return err
	}
	if err := n.layOut(); err != nil {
		return err
	}
	before := n.begin()
	f.forced = true
	err := f.checkpointLocked()
	if err != nil {
		n.exists.Store(false)
		f.shared.mu.Lock()
		n.life = before
		f.shared.mu.Unlock()
	}
	return err
}

// begin marks the namespace as existing, from now on if it is new, and returns its previous life.
func (n *namespace) begin() (before life) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.exists.Store(true)
	before = n.life
	if n.life.Created.IsZero() && n.name != agent.DefaultNamespace {
		n.life.Created = n.now().UTC()
	}
	return before
}

// layOut creates missing directories of namespaces that exist by an entry of the journal, after creating them failed at
// first. The caller holds mu.
func (f *flusher) layOut() error {
	for _, n := range f.all() {
		f.shared.mu.RLock()
		lacks := n.there() && !n.exists.Load()
		f.shared.mu.RUnlock()
		if !lacks {
			continue
		}
		if err := n.layOut(); err != nil {
			return err
		}
		n.exists.Store(true)
	}
	return nil
}

// flush writes the changes of all namespaces and returns the lsn up to which they are included. What could not be
// written stays pending. The caller holds mu.
func (f *flusher) flush(full bool) (lsn uint64, list []*work, err error) {
	if err := f.removeErased(); err != nil {
		return 0, nil, err
	}
	for _, n := range f.all() {
		if err := n.sessions.lookUpAll(); err != nil && !n.gone.Load() {
			return 0, nil, err
		}
	}
	lsn, list = f.gather(full)
	// doubt is set before the lock that gather waits for is released.
	if err = f.health.doubt(); err == nil {
		// The files must not be ahead of the journal.
		err = f.sequencer.settle()
	}
	for _, w := range list {
		if err == nil {
			err = w.write(&f.text, full, f.exporting > 0)
			if w.n.gone.Load() { // it was erased meanwhile
				err = nil
			}
		}
		if err != nil {
			w.giveBack()
		}
	}
	return lsn, list, err
}

// gather takes the state of all namespaces at one moment. An archived artifact, for example, is then either in the
// archive's files or in the registry, no matter where the writing stops.
func (f *flusher) gather(full bool) (lsn uint64, list []*work) {
	all := f.all()
	f.shared.mu.Lock()
	defer f.shared.mu.Unlock()
	for _, n := range all {
		if n.exists.Load() && (full || !n.written()) {
			list = append(list, n.gather(full))
		}
	}
	if full {
		f.idle = maps.Clone(f.spaces.idle)
	}
	return f.applied, list
}

// work is what the flusher writes for one namespace: its state at one moment.
type work struct {
	n         *namespace
	sessions  []sessionState
	artifacts []*artifact
	programs  map[string]string // texts by checksum
	archived  []archived
	restored  []string // files of the archive to be removed
	calls     []*pendingCall
	audit     []*agent.AuditEntry
	docs      []*heldDoc           // documents that are not written yet
	gone      map[string]time.Time // deleted sessions, with their time of creation
	files     []string             // ids of deleted files
	count     int64                // of sessions
	life      life
	figures   *figures    // nil unless the round is full
	stored    *store.Sums // nil unless the round is full and the sums are certain
}

// written reports whether the files lack nothing but what waits for a checkpoint, so that an idle namespace costs a
// round almost nothing. The caller holds shared.mu and flusher.mu.
func (n *namespace) written() bool {
	pending := len(n.artifacts.programs) + len(n.archive.pending) + len(n.artifacts.changed) + len(n.calls.pending) +
		len(n.auditTrail.pending) + len(n.streams.gone) + len(n.sessions.gone)
	if pending > 0 || n.stored.anew.values {
		return false
	}
	for _, x := range n.sessions.changed {
		if x.isBehind() {
			return false
		}
	}
	return !slices.ContainsFunc(n.held(), func(h *held) bool { return h.behind })
}

// gather returns what must be written of the namespace. The caller holds shared.mu.
func (n *namespace) gather(full bool) *work {
	w := &work{n: n, sessions: n.sessions.gather(full), archived: slices.Clone(n.archive.pending),
		restored: slices.Clone(n.archive.restored),
		calls:    slices.Clone(n.calls.pending), audit: slices.Clone(n.auditTrail.pending),
		gone: maps.Clone(n.sessions.gone), files: slices.Sorted(maps.Keys(n.streams.gone)), count: n.sessions.count,
		life: n.life}
	if full {
		w.figures, w.stored = n.figures(), n.stored.gather()
	}
	w.artifacts, w.programs = n.artifacts.gather()
	for _, h := range n.held() {
		if d := h.gather(n.head(), full); d != nil {
			w.docs = append(w.docs, d)
		}
	}
	return w
}

// write writes the files in an order in which no file refers to one that is missing.
func (w *work) write(text *callText, full, exporting bool) error {
	n := w.n
	for _, step := range []func() error{
		func() error { return n.artifacts.writePrograms(w.programs) },
		func() error { return n.archive.write(w.archived) },
		func() error { return n.artifacts.write(w.artifacts) },
		func() error { return n.sessions.write(w.sessions, full) },
		func() error { return n.calls.write(text, w.calls, exporting) },
		func() error { return n.auditTrail.write(w.audit) },
		w.writeDocs,
		func() error { return n.streams.write(w.files) },
		func() error { return n.erase(w.gone) },
		n.stored.countValues,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// writeDocs writes the documents and leaves those in docs that could not be written.
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

// giveBack marks the documents that were not written as pending again.
func (w *work) giveBack() {
	for _, d := range w.docs {
		d.giveBack(w.n.shared)
	}
}

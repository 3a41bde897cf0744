package disk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

const (
	journalDir = "journal"
	lockFile   = "lock"
)

// Store is a store.Store in a directory. Open returns one; Close ends it.
type Store struct {
	*shared
	root      *files
	unlock    func() error
	sequencer *sequencer
	flusher   *flusher

	deciding sync.Mutex // held while a reservation within caps is decided; taken before all other locks
}

// Open opens the store in the directory, which is created if it is missing, and replays the part of the journal that
// the files lack. It returns an error matching store.ErrInUse if another process uses the directory, and an error
// naming the file if a newer version wrote one. The caller must call Close.
func Open(dir string, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	var err error
	if o.FS, err = fileSystem(dir, o); err != nil {
		return nil, err
	}
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	if s.unlock, err = lock(dir, o.FS); err != nil {
		return nil, err
	}
	if err := s.recover(); err != nil {
		return nil, errors.Join(err, s.unlock())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.flusher.stop, s.flusher.last = cancel, time.Now()
	go s.flusher.run(ctx)
	return s, nil
}

// fileSystem returns the file system of the options, or that of the directory if there is none.
func fileSystem(dir string, o Options) (vfs.FS, error) {
	if o.FS != nil {
		return o.FS, nil
	}
	return vfs.Dir(dir)
}

// newStore creates the parts of a store and connects them. It reads nothing.
func newStore(o Options) (*Store, error) {
	common, err := newShared(o)
	if err != nil {
		return nil, err
	}
	s := &Store{shared: common}
	s.root = newFiles(common, ".")
	kick := make(chan struct{}, 1)
	s.sequencer = &sequencer{shared: common, kick: kick, journal: wal.New(s.root, journalDir, o.Segment)}
	s.sequencer.mu.Rank(common.order, rankSequence)
	s.sequencer.waiting.Rank(common.order, rankQueue)
	s.flusher = &flusher{shared: common, root: s.root, sequencer: s.sequencer, kick: kick, done: make(chan struct{})}
	s.flusher.archive.Rank(common.order, rankArchive)
	s.flusher.mu.Rank(common.order, rankFlush)
	return s, nil
}

// lock locks the directory for this process. It refuses a directory whose copy or import was not completed.
func lock(dir string, fs vfs.FS) (unlock func() error, err error) {
	unlock, err = fs.Lock(lockFile)
	var held *vfs.LockedError
	if errors.As(err, &held) {
		return nil, &inUseError{dir, held.Holder}
	}
	if err != nil {
		return nil, err
	}
	if err := refuseUnfinished(dir, fs); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// inUseError is a store.ErrInUse that says what a person can do about it.
type inUseError struct{ dir, holder string }

func (e *inUseError) Error() string {
	holder := ""
	if e.holder != "" {
		holder = " (pid " + e.holder + ")"
	}
	return "data directory " + e.dir + " is in use by another recurgentd" + holder +
		"; stop it, or set another --data-dir"
}

func (e *inUseError) Is(err error) bool { return err == store.ErrInUse }

// Ready is part of store.Store.
func (s *Store) Ready() error { return s.health.ready() }

// Settled is part of store.Store. With an interval it does not wait, because a call's commit promises no sync then.
func (s *Store) Settled() error {
	if s.o.Interval > 0 {
		return nil
	}
	s.mu.RLock()
	last := s.applied
	s.mu.RUnlock()
	if err := s.sequencer.sync(last); err != nil {
		return fmt.Errorf("%w: what was read is not durable: %w", store.ErrReadOnly, err)
	}
	return nil
}

// Stats is part of store.Store.
func (s *Store) Stats() store.Stats {
	all := s.all()
	out := store.Stats{
		Commits: s.sequencer.commits.Load(), Fsyncs: s.sequencer.fsyncs.Load(),
		JournalBytes: s.sequencer.written.Load(),
		Quarantined:  s.quarantined.Load(), Artifacts: map[string]int{},
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	out.Stored = s.total
	for _, n := range all {
		out.CheckpointLagEntries += int64(len(n.calls.pending))
		out.Sessions += max(n.sessions.count, 0)
		out.Tools += int64(n.catalog.ranking.Tools())
		for state, count := range n.catalog.ranking.States() {
			out.Artifacts[state] += count
		}
	}
	for _, at := range s.spaces.idle {
		out.Sessions += at.Sessions
		out.Tools += at.Figures.Tools
		for state, count := range at.Figures.Artifacts {
			out.Artifacts[state] += count
		}
	}
	return out
}

// Watch is part of store.Store.
func (s *Store) Watch(from store.Cursor, changed func(store.Change)) (stop func(), err error) {
	return s.feed.Watch(&s.mu, from, changed)
}

// Sync writes to the files what people look at: histories, logs, sessions, artifacts, contracts and the policy.
func (s *Store) Sync() error { return s.flusher.sync() }

// Close is part of store.Store. It accepts no more commits, writes all files and unlocks the directory. If ctx ends
// first, Close returns its cause; the work goes on and the directory stays locked until it is done.
func (s *Store) Close(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- s.close() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the store was not written out: %w", context.Cause(ctx))
	}
}

// close stops the parts in order: commits, members, the flusher, the journal. The journal is removed only after a
// complete checkpoint; otherwise the next start replays it.
func (s *Store) close() error {
	if !s.sequencer.close() {
		return nil
	}
	s.members.Close()
	s.flusher.stop()
	<-s.flusher.done
	err := s.flusher.writeCheckpoint()
	s.sequencer.closeJournal()
	if err == nil {
		err = s.removeJournal()
	}
	s.shared.close()
	return errors.Join(err, s.unlock())
}

// removeJournal removes all segments. The last checkpoint must have been written: nothing is left to replay then.
func (s *Store) removeJournal() error {
	segments, err := wal.Segments(s.root, journalDir)
	if err != nil {
		return err
	}
	return wal.Remove(s.root, journalDir, segments)
}

var _ store.Store = (*Store)(nil)

package disk

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// Options configures a Store. Start from DefaultOptions.
type Options struct {
	Now    func() time.Time // the clock of retention and expiry
	Logger zerolog.Logger   // what a person should know of: files set aside, a full disk
	FS     vfs.FS           // nil: the directory's own

	Flush      time.Duration // how far the files may be behind; negative: they follow only Sync, Checkpoint and Close
	Checkpoint time.Duration // how long the journal may keep entries, and usage figures be behind
	Segment    int64         // bytes of a journal segment; two full ones are a reason for a checkpoint
	LogSegment int64         // bytes of a segment of the call log and of the values
	LogBytes   int64         // bytes of the call log, at which its oldest segment goes
	Reserve    uint64        // free bytes on disk under which the store takes no writes
	Sessions   uint64        // bytes of sessions held in memory beside those in use
	Artifacts  uint64        // bytes of artifacts held in memory beside those in use
}

// DefaultOptions returns the options of a daemon.
func DefaultOptions() Options {
	return Options{
		Now: time.Now, Logger: zerolog.Nop(), Flush: time.Second, Checkpoint: time.Minute, Segment: 8 << 20, LogSegment: 16 << 20,
		LogBytes: 512 << 20, Reserve: 16 << 20, Sessions: 16 << 20, Artifacts: 16 << 20,
	}
}

func (o *Options) validate() error {
	switch {
	case o.Now == nil:
		return errors.New("disk.Options.Now is missing")
	case o.Flush == 0 || o.Checkpoint <= 0:
		return errors.New("disk.Options.Flush and Checkpoint must be set")
	case o.Segment < 1<<12 || o.LogSegment < 1<<8 || o.LogBytes < o.LogSegment:
		return errors.New("disk.Options.Segment, LogSegment or LogBytes is too small")
	case o.Sessions == 0 || o.Artifacts == 0:
		return errors.New("disk.Options.Sessions and Artifacts must be set")
	}
	return nil
}

// Store is a store.Store in a directory.
type Store struct {
	dir   string
	o     Options
	fs    vfs.FS // is files
	files *vfs.Replacer
	log   zerolog.Logger
	now   func() time.Time

	unlock  func() error
	seed    maphash.Seed
	stripes [64]sync.Mutex // one reads the file of a session or artifact at a time

	// The sequencer: one batch of commits at a time is planned, written and applied.
	queueMu sync.Mutex
	queue   []*commit // guarded by queueMu
	leading bool      // guarded by queueMu
	seq     sync.Mutex
	journal *wal.Log // guarded by seq, as the three below
	frame   wal.Batch
	batch   batch
	changes []store.Change

	// What readers see. All is guarded by mu; values behind pointers have guards of their own or never change.
	mu            sync.RWMutex
	applied       uint64                    // lsn of the last entry
	touched       map[string]*session       // changed since the last checkpoint
	gone          map[string]time.Time      // deleted, with files that are not removed yet; when they were made, or zero
	dirty         map[artifactKey]*artifact // changed since their files were written
	programs      map[string]string         // texts without a file yet, by checksum
	archiving     []archiving               // archived artifacts and tools without a file yet
	unarchiving   []string                  // files of the archive that were restored
	calls         []*pendingCall            // without a line in the call log yet, in order
	callByID      map[string]*pendingCall
	callByKey     map[string]*pendingCall
	corrections   map[string]string   // corrected call → re-ask, of re-asks that are not in the files yet
	audits        []*agent.AuditEntry // without a line yet
	ranking       *store.Ranking
	roles         []string // of the registered tools, sorted
	policy        *agent.Policy
	patterns      map[string][]agent.PatternEvent
	patternCount  int
	content       store.Contents
	ids           []string // of all sessions, sorted; nil until somebody lists them
	sessionCount  int64
	contractDirty bool // registry.json is behind by more than usage figures
	usageDirty    bool
	indexDirty    bool
	policyDirty   bool
	patternsDirty bool
	contentDirty  bool
	watchers      map[int]func(store.Change)
	nextWatch     int
	leases        map[string]time.Time
	closed        bool

	policyRevision int64

	sessions  *otter.Cache[string, *session]
	artifacts *otter.Cache[artifactKey, *artifact]

	// The flusher. flushMu is held by whoever writes files.
	flushMu    sync.Mutex
	callLog    *jsonl.Log
	values     *jsonl.Log
	auditBytes int64
	lastCut    time.Time
	dirs       map[string]bool // known to be there, durably
	exportMu   sync.RWMutex    // read by exports; nothing is archived or restored meanwhile
	exporting  int             // exports under way: the journal and the segments stay
	kick       chan struct{}
	stop       context.CancelFunc
	done       chan struct{}

	// Recovery.
	recovering                                      bool
	registryLSN, policyLSN, patternsLSN, contentLSN uint64
	checkpointLSN                                   uint64
	lost                                            []string // documents that were set aside at the start

	asides      atomic.Int64 // numbers what is written aside
	trouble     atomic.Pointer[trouble]
	spoiled     atomic.Pointer[trouble] // a panic left memory in doubt; until the end
	commits     atomic.Int64
	fsyncs      atomic.Int64
	quarantined atomic.Int64
	damaged     sync.Map // names of files with damaged lines that were told of
	written     atomic.Int64
}

const (
	journalDir = "journal"
	lockFile   = "lock"
)

// lock takes the directory for this process.
func lock(dir string, fs vfs.FS) (unlock func() error, err error) {
	unlock, err = fs.Lock(lockFile)
	var held *vfs.LockedError
	if errors.As(err, &held) {
		return nil, &inUseError{dir, held.Holder}
	}
	return unlock, err
}

// inUseError is store.ErrInUse with what to do about it.
type inUseError struct{ dir, holder string }

func (e *inUseError) Error() string {
	holder := ""
	if e.holder != "" {
		holder = " (pid " + e.holder + ")"
	}
	return "data directory " + e.dir + " is in use by another recurgentd" + holder + "; stop it or choose another --data-dir"
}

func (e *inUseError) Is(err error) bool { return err == store.ErrInUse }

// trouble is why the store takes no writes.
type trouble struct{ err error }

// Open opens the store in the directory, which is made when it is not there. It replays what the journal has and the
// files do not. The error names another process that holds the directory (store.ErrInUse), or a file of a newer
// version. Close ends it.
func Open(dir string, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.FS == nil {
		fs, err := vfs.Dir(dir)
		if err != nil {
			return nil, err
		}
		o.FS = fs
	}
	s := &Store{
		dir: dir, o: o, files: &vfs.Replacer{FS: o.FS}, log: o.Logger, now: o.Now, seed: maphash.MakeSeed(),
		touched: map[string]*session{}, gone: map[string]time.Time{}, dirs: map[string]bool{}, dirty: map[artifactKey]*artifact{}, programs: map[string]string{},
		callByID: map[string]*pendingCall{}, callByKey: map[string]*pendingCall{}, corrections: map[string]string{}, ranking: store.NewRanking(),
		patterns: map[string][]agent.PatternEvent{}, watchers: map[int]func(store.Change){}, leases: map[string]time.Time{},
		kick: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.fs = s.files
	s.journal = wal.New(s.fs, journalDir, o.Segment)
	lines := jsonl.Options{Files: s.files, Bytes: o.LogSegment, Now: s.now, Lost: s.reportLost}
	lines.Dir, lines.Current, lines.Keys, lines.Time = "calls", "calls.jsonl", callKeys, callTime
	s.callLog = jsonl.New(lines)
	lines.Dir, lines.Current, lines.Keys, lines.Time = "values", "", valueKeys, valueTime
	s.values = jsonl.New(lines)
	var err error
	if s.sessions, err = otter.New(&otter.Options[string, *session]{MaximumWeight: o.Sessions, Weigher: func(_ string, x *session) uint32 { return x.weight() }}); err != nil {
		return nil, err
	}
	if s.artifacts, err = otter.New(&otter.Options[artifactKey, *artifact]{MaximumWeight: o.Artifacts, Weigher: func(_ artifactKey, x *artifact) uint32 { return x.weight() }}); err != nil {
		return nil, err
	}
	if s.unlock, err = lock(dir, s.fs); err != nil {
		return nil, err
	}
	if err := s.recover(); err != nil {
		return nil, errors.Join(err, s.unlock())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.lastCut = time.Now()
	go s.follow(ctx)
	return s, nil
}

func (x *artifact) weight() uint32 {
	const fixed = 1024
	n := fixed
	if x.a != nil {
		for _, g := range x.a.Generations {
			n += fixed + 2*len(g.Code)
			for _, f := range g.Fixtures {
				n += len(f.Value) + len(f.Effects) + len(f.Kwargs) + len(f.Context)
			}
		}
	}
	return uint32(min(n, 1<<30))
}

// stripe is the lock under which the file of a session or artifact is read, and under which it leaves the set of
// the changed ones: so a reader that was slow does not put an old state into the cache.
func (s *Store) stripe(kind, name string) *sync.Mutex {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(kind)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(name)
	return &s.stripes[h.Sum64()%uint64(len(s.stripes))]
}

// Namespace is part of store.Store. There is only the default one.
func (s *Store) Namespace(name agent.Namespace) (store.Namespace, error) {
	if err := name.Validate(); err != nil {
		return nil, err
	}
	if name != agent.DefaultNamespace {
		return nil, fmt.Errorf("namespace %s: %w", name, store.ErrNotFound)
	}
	return s, nil
}

// Ready is part of store.Store.
func (s *Store) Ready() error {
	if t := s.spoiled.Load(); t != nil {
		return t.err
	}
	if t := s.trouble.Load(); t != nil {
		return t.err
	}
	return nil
}

// fail notes that the store cannot write, until mend.
func (s *Store) fail(err error) {
	t := &trouble{fmt.Errorf("%w: %w", store.ErrReadOnly, err)}
	if s.trouble.Swap(t) == nil {
		s.log.Error().Err(err).Msg("the store cannot write; calls are refused until it can, reads go on")
	}
}

// Stats is part of store.Store.
func (s *Store) Stats() store.Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return store.Stats{
		Commits: s.commits.Load(), Fsyncs: s.fsyncs.Load(), JournalBytes: s.written.Load(), Quarantined: s.quarantined.Load(),
		CheckpointLagEntries: int64(len(s.calls)), Sessions: s.sessionCount, Tools: int64(s.ranking.Tools()), Artifacts: s.ranking.States(),
	}
}

// Watch is part of store.Store.
func (s *Store) Watch(changed func(store.Change)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextWatch
	s.nextWatch++
	s.watchers[id] = changed
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, id)
	}
}

// Close is part of store.Store: it takes no more commits, writes the files to the end and releases the directory. When
// ctx ends first it returns why; what was begun goes on, and the directory stays locked meanwhile.
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

func (s *Store) close() error {
	s.seq.Lock()
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	s.trouble.Store(&trouble{fmt.Errorf("%w: the store is closed", store.ErrReadOnly)})
	s.seq.Unlock()
	if already {
		return nil
	}
	s.stop()
	<-s.done
	err := s.checkpoint()
	s.seq.Lock()
	s.journal.Close()
	s.seq.Unlock()
	if err == nil {
		err = s.removeJournal()
	}
	s.sessions.StopAllGoroutines()
	s.artifacts.StopAllGoroutines()
	return errors.Join(err, s.unlock())
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Namespace = (*Store)(nil)
)

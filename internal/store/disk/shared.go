package disk

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cache"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
)

// The ranks of the locks: see the package comment.
const (
	rankArchive = iota
	rankFlush
	rankSequence
	rankStripe
	rankState
	rankSession
	rankLines
	rankQueue
)

func newOrder() *locks.Order {
	return locks.NewOrder("archive", "flush", "sequence", "stripe", "state", "session", "lines", "queue")
}

// shared is what the parts of all namespaces have in common.
type shared struct {
	o      Options
	log    zerolog.Logger
	now    func() time.Time
	order  *locks.Order // nil: locks are not checked
	health health
	feed   feed
	bulk   bulk

	members *store.Members

	seed    maphash.Seed
	stripes [64]locks.Mutex

	sessionCache  cache.Cache[sessionKey, *session]
	artifactCache cache.Cache[artifactKey, *artifact]

	quarantined atomic.Int64 // files moved aside, and files with damaged lines
	aside       atomic.Int64 // numbers the names of files that are moved aside

	recovering bool // the journal is being replayed; set before the store is shared, as the next
	opened     bool // it was replayed

	mu      locks.RWMutex
	applied uint64      // lsn of the last entry that readers see; guarded by mu
	spaces  spaces      // guarded by mu
	total   store.Bytes // of all namespaces; guarded by mu
}

func newShared(o Options) (*shared, error) {
	s := &shared{o: o, log: o.Logger, now: o.Now, order: o.order, seed: maphash.MakeSeed()}
	s.health.log = s.log
	s.spaces = spaces{loaded: map[agent.Namespace]*namespace{}, idle: map[agent.Namespace]*checkpointed{},
		erased: map[agent.Namespace]uint64{}}
	s.members = store.NewMembers(o.Now)
	s.mu.Rank(s.order, rankState)
	for i := range s.stripes {
		s.stripes[i].Rank(s.order, rankStripe)
	}
	var err error
	s.sessionCache, err = cache.NewWeighed(o.Sessions, func(_ sessionKey, x *session) uint32 { return x.weight() })
	if err != nil {
		return nil, err
	}
	s.artifactCache, err = cache.NewWeighed(o.Artifacts, func(_ artifactKey, x *artifact) uint32 { return x.weight() })
	return s, err
}

// close stops the caches.
func (s *shared) close() {
	s.sessionCache.StopAllGoroutines()
	s.artifactCache.StopAllGoroutines()
}

// stripe returns the lock under which the file of a session or artifact is read, and under which the session or
// artifact is handed to the cache: so a slow reader does not put an old state into the cache.
func (s *shared) stripe(parts ...string) *locks.Mutex {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, p := range parts {
		_, _ = h.WriteString(p)
		_ = h.WriteByte(0)
	}
	return &s.stripes[h.Sum64()%uint64(len(s.stripes))]
}

// head returns the head of a document that is written now. The caller holds mu.
func (s *shared) head() head { return head{agent.SchemaVersion, s.applied} }

// health says whether the store can write.
type health struct {
	log     zerolog.Logger
	trouble atomic.Pointer[trouble] // why the store takes no writes
	broken  atomic.Pointer[trouble] // a panic left memory in doubt; until the process ends
}

type trouble struct{ err error }

func (h *health) ready() error {
	for _, t := range []*trouble{h.broken.Load(), h.trouble.Load()} {
		if t != nil {
			return t.err
		}
	}
	return nil
}

// fail marks the store read-only until recovered is called.
func (h *health) fail(err error) {
	t := &trouble{fmt.Errorf("%w: %w", store.ErrReadOnly, err)}
	if h.trouble.Swap(t) == nil {
		h.log.Error().Err(err).Msg("the store cannot write; calls are refused until it can, reads go on")
	}
}

func (h *health) recovered() {
	if h.trouble.Swap(nil) != nil {
		h.log.Info().Msg("the store can write again")
	}
}

// breakDown marks the store read-only until the process ends.
func (h *health) breakDown(err error) { h.broken.Store(&trouble{err}) }

// doubt returns why memory cannot be trusted any more; nil when it can.
func (h *health) doubt() error {
	if t := h.broken.Load(); t != nil {
		return t.err
	}
	return nil
}

// feed is the change feed. All of it is guarded by shared.mu.
type feed struct {
	store.Feed
	pending []store.Change // of the batch that is being applied
}

func (f *feed) add(c store.Change) {
	if f.Watched() {
		f.pending = append(f.pending, c)
	}
}

// send gives the batch's changes to the watchers, in order. The caller holds mu, so that a watcher which stops gets
// nothing afterwards.
func (f *feed) send() {
	for _, c := range f.pending {
		f.Send(c)
	}
	clear(f.pending) // log entries may be large
	f.pending = f.pending[:0]
}

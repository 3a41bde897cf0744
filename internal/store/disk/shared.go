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

// Ranks of the locks: see the package comment.
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

// shared is the state that the parts of all namespaces share.
type shared struct {
	o      Options
	log    zerolog.Logger
	now    func() time.Time
	order  *locks.Order // nil means that locks are not checked
	health health
	feed   feed
	bulk   bulk

	// replicas, session ownership, leases and candidates, all in memory
	members *store.Members

	// hashes a session or artifact to its stripe
	seed    maphash.Seed
	stripes [64]locks.Mutex

	sessionCache  cache.Cache[sessionKey, *session]
	artifactCache cache.Cache[artifactKey, *artifact]

	quarantined atomic.Int64 // files moved aside, and files with damaged lines
	aside       atomic.Int64 // the latest number used in the name of a file moved aside

	recovering bool // the journal is being replayed; it and opened are set before the store is shared
	opened     bool // the journal has been replayed

	mu      locks.RWMutex
	applied uint64      // lsn of the last entry that readers see; guarded by mu
	spaces  spaces      // guarded by mu
	total   store.Bytes // bytes of all namespaces; guarded by mu
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

// close stops the caches' goroutines.
func (s *shared) close() {
	s.sessionCache.StopAllGoroutines()
	s.artifactCache.StopAllGoroutines()
}

// stripe returns the lock of a session or artifact. It is held while the file is read and while the value is handed to
// the cache. This prevents a slow reader from caching an outdated state.
func (s *shared) stripe(parts ...string) *locks.Mutex {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, p := range parts {
		_, _ = h.WriteString(p)
		_ = h.WriteByte(0)
	}
	return &s.stripes[h.Sum64()%uint64(len(s.stripes))]
}

// head returns the head for a document that is rendered now. The caller holds mu.
func (s *shared) head() head { return head{agent.SchemaVersion, s.applied} }

// health records whether the store can write.
type health struct {
	log     zerolog.Logger
	trouble atomic.Pointer[trouble] // why the store accepts no writes; nil if it does
	broken  atomic.Pointer[trouble] // set after a panic left memory in doubt, until the process ends
}

// trouble holds an error for an atomic pointer.
type trouble struct{ err error }

// ready returns nil, or the reason why the store accepts no writes.
func (h *health) ready() error {
	for _, t := range []*trouble{h.broken.Load(), h.trouble.Load()} {
		if t != nil {
			return t.err
		}
	}
	return nil
}

// fail marks the store read-only until recovered is called. It logs only the first of several failures.
func (h *health) fail(err error) {
	t := &trouble{fmt.Errorf("%w: %w", store.ErrReadOnly, err)}
	if h.trouble.Swap(t) == nil {
		h.log.Error().Err(err).Msg("the store cannot write: calls are refused until it can, and reads still work")
	}
}

// recovered makes the store writable again, unless breakDown was called.
func (h *health) recovered() {
	if h.trouble.Swap(nil) != nil {
		h.log.Info().Msg("the store can write again")
	}
}

// breakDown marks the store read-only until the process ends.
func (h *health) breakDown(err error) { h.broken.Store(&trouble{err}) }

// doubt returns why memory cannot be trusted any more, or nil if it can.
func (h *health) doubt() error {
	if t := h.broken.Load(); t != nil {
		return t.err
	}
	return nil
}

// feed is the change feed. It is guarded by shared.mu.
type feed struct {
	store.Feed
	pending []store.Change // changes of the batch that is being applied
}

// add adds a change to the pending ones if anybody watches.
func (f *feed) add(c store.Change) {
	if f.Watched() {
		f.pending = append(f.pending, c)
	}
}

// send sends the batch's changes to the watchers, in order. The caller holds mu; a watcher that has stopped gets
// nothing afterwards.
func (f *feed) send() {
	for _, c := range f.pending {
		f.Send(c)
	}
	clear(f.pending) // log entries may be large
	f.pending = f.pending[:0]
}

// held is a document whose content is held in memory in full.
type held struct {
	name   string
	lsn    uint64                  // of the file when the store was opened: the file includes the entries up to it
	render func(head) (any, error) // returns the document; the caller holds shared.mu

	behind bool // the file lacks something that people look at; guarded by shared.mu
	lags   bool // the file lacks only figures, which wait for a checkpoint; guarded by shared.mu
}

// heldDoc is a rendered document that is to be written.
type heldDoc struct {
	held         *held
	doc          any
	err          error // of rendering it
	behind, lags bool  // the flags of held before it was rendered
}

// gather renders the document if it is behind, or if it lags and full is set. Otherwise it returns nil. The caller
// holds shared.mu.
func (h *held) gather(at head, full bool) *heldDoc {
	if !h.behind && !(full && h.lags) {
		return nil
	}
	d := &heldDoc{held: h, behind: h.behind, lags: h.lags}
	d.doc, d.err = h.render(at)
	h.behind, h.lags = false, false
	return d
}

// write writes the document. If that fails, the document is pending again.
func (d *heldDoc) write(f *files) error {
	err := d.err
	if err == nil {
		err = f.writeDoc(d.held.name, d.doc)
	}
	if err != nil {
		d.giveBack(f.shared)
	}
	return err
}

// giveBack marks the document as pending again.
func (d *heldDoc) giveBack(s *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.held.behind, d.held.lags = d.held.behind || d.behind, d.held.lags || d.lags
}

// Names of the documents that are held in memory, the checkpoint and the audit trail.
const (
	registryFile    = "tools/registry.json"
	indexFile       = "tools/index.json"
	policyFile      = "policy.json"
	patternsFile    = "patterns.json"
	evidenceFile    = "evidence.json"
	contentFile     = "content.json"
	filesFile       = "files.json"
	connectionsFile = "connections.json"
	spendFile       = "spend.json"
	checkpointFile  = "journal/checkpoint.json"
	auditFile       = "audit.jsonl"
)

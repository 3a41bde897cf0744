package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// replay replays the journal onto the files. It skips what the files already have of an entry.
type replay struct {
	s          *Store
	checkpoint checkpointDoc
	entries    int // how many entries were replayed
	// a segment of the journal was moved aside, where the next start does not look
	damaged bool
	deleted map[namedSession]bool      // sessions that any entry of the journal deletes
	erased  map[agent.Namespace]uint64 // namespaces that the journal erases, with the lsn of the last entry that does
	corrupt bool                       // a document of a namespace that the journal names was corrupt
	// sessions and artifacts that cannot be replayed any further because an entry is lost
	broken map[string]bool
	// the segment that was read last; three passes read the newest one, which usually is most of the journal
	held struct {
		name string
		data []byte
	}
}

func newReplay(s *Store, cp checkpointDoc) *replay {
	return &replay{s: s, checkpoint: cp, deleted: map[namedSession]bool{}, erased: map[agent.Namespace]uint64{},
		broken: map[string]bool{}}
}

// namedSession identifies a session of a namespace that may not be loaded.
type namedSession struct {
	namespace agent.Namespace
	id        string
}

// run replays all segments and returns them. The first pass only looks for deletions.
func (r *replay) run() ([]wal.Segment, error) {
	segments, err := wal.Segments(r.s.root, journalDir)
	if err != nil {
		return nil, err
	}
	next := r.s.applied + 1
	if len(segments) > 0 {
		if err := r.findEnd(&segments[len(segments)-1]); err != nil {
			return nil, err
		}
	}
	for _, seg := range slices.Backward(segments) {
		if err := r.readDeletions(seg); err != nil {
			return nil, err
		}
	}
	for _, seg := range segments {
		end, err := r.segment(seg)
		if err != nil {
			return nil, err
		}
		next = max(next, end)
	}
	r.held.data = nil
	r.s.applied = next - 1
	if r.entries > 0 {
		r.s.log.Info().Int("entries", r.entries).Msg("replayed the journal")
	}
	return segments, nil
}

// segment replays one segment and moves it aside if it is damaged. It returns the lsn after its last entry.
func (r *replay) segment(seg wal.Segment) (next uint64, err error) {
	var damage error
	apply := func(c *encoded) error {
		e, err := c.entry, c.err
		if err == nil && c.lsn < r.erased[e.name()] {
			return nil // the namespace is erased by a later entry
		}
		if err == nil {
			e.namespace, err = r.namespace(e.name())
		}
		if err == nil && e.Make != "" && c.lsn > r.erased[e.Make] {
			_, err = r.namespace(e.Make)
		}
		if err != nil {
			damage = fmt.Errorf("entry %d: %w", c.lsn, err)
			return nil
		}
		r.entries++
		return r.entry(e)
	}
	ahead := decoder{apply: apply}
	next, gaps, err := r.read(seg, func(lsn uint64, text []byte) error {
		if lsn <= r.checkpoint.LSN {
			return nil
		}
		return ahead.add(lsn, text)
	})
	if err == nil {
		err = ahead.flush()
	}
	if err != nil {
		return next, err
	}
	for _, g := range gaps {
		if g.To <= r.checkpoint.LSN+1 {
			continue
		}
		r.s.log.Error().Str("segment", seg.Name).Uint64("from", g.From).Uint64("to", g.To-1).
			Msg("journal entries are damaged: what depends on them is not replayed, and the segment is moved aside")
		damage = errors.Join(damage, errors.New("damaged entries"))
	}
	if damage == nil {
		return next, nil
	}
	r.damaged = true
	return next, r.s.root.moveAside(seg.Name, damage)
}

// deletes reports whether the journal deletes any session of the namespace.
func (r *replay) deletes(name agent.Namespace) bool {
	for x := range r.deleted {
		if x.namespace == name {
			return true
		}
	}
	return false
}

// namespace returns the namespace of an entry, and loads it if necessary. A missing directory is created.
func (r *replay) namespace(name agent.Namespace) (*namespace, error) {
	if err := name.Validate(); err != nil {
		return nil, err
	}
	r.s.mu.RLock()
	n := r.s.spaces.loaded[name]
	r.s.mu.RUnlock()
	if n != nil {
		return n, nil
	}
	n, corrupt, err := r.s.load(name)
	r.corrupt = r.corrupt || corrupt
	return n, err
}

// entry applies one entry, except for what the files already have.
func (r *replay) entry(e *entry) error {
	n := e.namespace
	for _, part := range []func(*entry) error{r.session, r.artifacts, r.move} {
		if err := part(e); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.lsn > n.catalog.registry.lsn {
		for i := range e.Tools {
			if t, ok := e.Tools[i].Apply(n.catalog.ranking.Tool(e.Tools[i].Role)); ok {
				e.tools = append(e.tools, t)
				n.catalog.setTool(t)
			}
		}
		if e.Put != nil {
			e.tools = append(e.tools, e.Put)
		}
	}
	if e.lsn <= n.patterns.doc.lsn {
		e.Pattern = nil
	}
	if e.lsn <= n.contents.doc.lsn {
		e.Content = nil
	}
	if e.lsn <= n.streams.doc.lsn {
		e.Files = nil // the bytes of FilesGone may not be removed yet
	}
	if e.lsn <= n.policies.doc.lsn {
		e.Policy = nil
	}
	if e.lsn <= n.connections.doc.lsn {
		e.Connect, e.Disconnect = nil, ""
	}
	n.apply(e)
	n.catalog.registry.behind = n.catalog.registry.behind || len(e.tools) > 0
	return nil
}

// session prepares the changes of an entry to a session and to the call log.
func (r *replay) session(e *entry) error {
	if e.Create != nil {
		r.create(e)
		return nil
	}
	if e.call != nil {
		r.call(e)
	}
	if e.Record == nil && e.Context == nil {
		return nil
	}
	key := namedSession{e.namespace.name, e.Session}
	x, err := e.namespace.sessions.get(e.Session)
	if errors.Is(err, store.ErrNotFound) {
		if !r.deleted[key] {
			r.miss(key.String(), e.lsn)
			return nil
		}
		return e.growErased()
	}
	if err != nil {
		return err
	}
	if e.Record != nil && e.Seq > x.size+1 || r.broken[key.String()] {
		r.miss(key.String(), e.lsn)
		return nil
	}
	e.planned.session = x
	if e.Record == nil {
		return nil
	}
	e.meta.Seq = e.Seq
	e.record, err = withSeq(e.Record, e.Seq)
	return err
}

// create records the creation of a session and leaves it out of the entry, because the session's files may exist
// already: see unread.
func (r *replay) create(e *entry) {
	p := e.namespace.sessions
	if p.isErased(e.Session) {
		return // the file, if there is one, belongs to an earlier session of that id
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.unread[e.Session] = unread{e.Create, e.lsn}
	p.n.stored.create(e.Create)
	p.count++
	e.Create = nil
}

// call completes the log entry of a call. It leaves out what was erased or is already in the log.
func (r *replay) call(e *entry) {
	e.call.log.ConversationHistorySize = e.Seq
	setCounters(&e.call.log, e.Counters)
	if r.deleted[namedSession{e.namespace.name, e.Session}] {
		// Its lines may have been erased already, and the files that held their content are gone.
		store.EraseLog(&e.call.log)
		e.Outcome, e.Effects, e.Reply, e.Key, e.Content = nil, nil, nil, nil, nil
	}
	// The end of the log is unknown, so it may already have the call.
	if r.checkpoint.of(e.namespace.name) == nil {
		if logged, err := e.namespace.calls.Call(context.Background(),
			e.call.log.CallID); err == nil && logged.Log.CallID != "" {
			e.skipLog = true
		}
	}
}

func (k namedSession) String() string { return fmt.Sprintf("session %s/%s", k.namespace, k.id) }

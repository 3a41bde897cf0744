package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
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

// A decoder decodes entries in parallel, in chunks, and applies them in order.
type decoder struct {
	apply func(*encoded) error
	chunk []encoded
}

// encoded is an entry of the journal, with the result of decoding it.
type encoded struct {
	lsn   uint64
	text  []byte
	entry *entry
	err   error // of decoding
}

const decodeChunk = 2048 // entries decoded together

// add adds an entry. It is applied now or by a later add or flush; text must not change until then.
func (d *decoder) add(lsn uint64, text []byte) error {
	d.chunk = append(d.chunk, encoded{lsn: lsn, text: text})
	if len(d.chunk) < decodeChunk {
		return nil
	}
	return d.flush()
}

// flush applies the entries that were added but not applied.
func (d *decoder) flush() error {
	var work sync.WaitGroup
	var taken atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(d.chunk)) {
		work.Go(func() {
			for i := taken.Add(1); i <= int64(len(d.chunk)); i = taken.Add(1) {
				d.chunk[i-1].decode()
			}
		})
	}
	work.Wait()
	chunk := d.chunk
	d.chunk = d.chunk[:0]
	for i := range chunk {
		if err := d.apply(&chunk[i]); err != nil {
			return err
		}
		chunk[i] = encoded{}
	}
	return nil
}

// decode decodes one entry. It may run concurrently for several entries, because nothing is applied meanwhile.
func (c *encoded) decode() {
	if c.entry, c.err = decodeEntry(c.text); c.err == nil {
		c.entry.lsn = c.lsn
	}
}

// read calls visit with the entries of a segment, as wal.Segment.Read does. It keeps the data of the segment for the
// next pass.
func (r *replay) read(seg wal.Segment, visit func(lsn uint64,
	text []byte) error) (next uint64, gaps []wal.Gap, err error) {
	if r.held.name != seg.Name {
		data, err := r.s.root.ReadFile(seg.Name)
		if err != nil {
			return 0, nil, err
		}
		r.held.name, r.held.data = seg.Name, data
	}
	return seg.Visit(r.held.data, visit)
}

// findEnd finds the end of the newest segment after a power cut. Entries that were not synced may be missing, and none
// after the first missing one counts. findEnd sets last.Limit accordingly.
func (r *replay) findEnd(last *wal.Segment) error {
	next, missing := last.First, uint64(0)
	_, _, err := r.read(*last, func(lsn uint64, text []byte) error {
		if missing == 0 && lsn > next {
			missing = next
		}
		if unsure := unsureOf(text); unsure == 0 || unsure > missing {
			missing = 0 // what is missing had been synced: it is damage, not a lost tail
		}
		next = lsn + 1
		return nil
	})
	if missing > 0 {
		last.Limit = missing
		r.s.log.Warn().Uint64("from", missing).Uint64("to",
			next-1).Msg("calls at the journal's end were not synced before a power cut, and are lost")
	}
	return err
}

// unsureOf returns entry.Unsure without decoding the entry. It comes first in the text.
func unsureOf(text []byte) (lsn uint64) {
	digits, ok := bytes.CutPrefix(text, []byte(`{"w":`))
	if !ok {
		return 0
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			break
		}
		lsn = 10*lsn + uint64(c-'0')
	}
	return lsn
}

// deleteKey and eraseKey are in the text of every entry that deletes sessions or erases a namespace. The first pass
// decodes only entries that contain one of them.
var deleteKey, eraseKey = []byte(`"delete":[`), []byte(`"erase_namespace":"`)

// readDeletions records the sessions that a segment deletes and the namespaces that it erases.
func (r *replay) readDeletions(seg wal.Segment) error {
	_, _, err := r.read(seg, func(lsn uint64, text []byte) error {
		if lsn <= r.checkpoint.LSN || !bytes.Contains(text, deleteKey) && !bytes.Contains(text, eraseKey) {
			return nil
		}
		e, err := decodeEntry(text)
		if err != nil {
			return nil // the second pass reports it
		}
		if e.Erase != "" {
			r.erased[e.Erase] = max(r.erased[e.Erase], lsn)
		}
		for _, id := range e.Delete {
			r.deleted[namedSession{e.name(), id}] = true
		}
		return nil
	})
	return err
}

package disk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// session is a session in memory. Of its history it holds only the lines that are not in the file yet. Only the
// sequencer changes it, except that the flusher moves lines from pending to the file. It is in sessions.changed from
// its first change until a checkpoint includes all of it, and otherwise in a cache.
type session struct {
	id string

	mu      locks.RWMutex
	meta    agent.Session              // guarded by mu, as all below
	context map[string]json.RawMessage // never changed in place
	lsn     uint64                     // of the entry that changed it last
	gone    bool

	size          int                   // number of records, pending ones included
	pending       [][]byte              // the last records, whose lines the file does not have yet
	bytes         int64                 // size of the file
	synced        int64                 // bytes of the file that are known to be on disk
	syncedRecords int                   // records in the synced bytes
	last          map[string]lastRecord // by role and method; see remember
	since         time.Time             // last has all records from this time on; zero means that it always had

	behind bool // the document lacks something
}

// lastRecord is the newest depth-0 record of a role and method. Each call is compared with it to find out whether the
// call corrects it.
type lastRecord struct {
	seq  int
	at   string
	line json.RawMessage
}

// maxLast bounds the entries of session.last.
const maxLast = 64

// sessionDoc is sessions/<id>/session.json.
type sessionDoc struct {
	head
	SyncedBytes   int64 `json:"synced_bytes"`   // size of history.jsonl known to be on disk
	SyncedRecords int   `json:"synced_records"` // number of records in them
	agent.Session
	Context map[string]json.RawMessage `json:"context"`
}

func sessionDir(id string) string  { return "sessions/" + id }
func sessionFile(id string) string { return "sessions/" + id + "/session.json" }
func historyFile(id string) string { return "sessions/" + id + "/history.jsonl" }

// metadata returns the session as callers of the store see it.
func (x *session) metadata() agent.Session {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.meta
}

// isGone reports whether the session was deleted.
func (x *session) isGone() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.gone
}

func newSession(s *shared, meta agent.Session, context map[string]json.RawMessage) *session {
	if context == nil {
		context = map[string]json.RawMessage{}
	}
	x := &session{id: meta.ID, meta: meta, context: context, last: map[string]lastRecord{}}
	x.mu.Rank(s.order, rankSession)
	return x
}

// isBehind reports whether the session's document lacks something.
func (x *session) isBehind() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.behind
}

// remember keeps a depth-0 record as the newest one of its role and method. If there are too many, it drops another
// one. The caller holds mu.
func (x *session) remember(m *recordMeta, line []byte) {
	if m.Depth != 0 {
		return
	}
	key := m.Role + "\x00" + m.MethodName
	if _, known := x.last[key]; !known && len(x.last) >= maxLast {
		for k, v := range x.last {
			if at, err := time.Parse(time.RFC3339, v.at); err == nil && !at.Before(x.since) {
				x.since = at.Add(time.Millisecond) // last is complete only after the dropped record
			}
			delete(x.last, k)
			break
		}
	}
	x.last[key] = lastRecord{m.Seq, m.Timestamp, line}
}

// weight returns the approximate size of the session in the cache, in bytes.
func (x *session) weight() uint32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	const fixed = 1024
	n := fixed
	for k, v := range x.context {
		n += len(k) + len(v) + 64
	}
	for k, v := range x.last {
		n += len(k) + len(v.line) + 64
	}
	return uint32(min(n, 1<<30))
}

// values returns a copy of the session's context. The values are shared and must not be changed.
func (x *session) values() map[string]json.RawMessage {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.context)
}

// load reads a session's document and finds the end of its history. If the document is lost, load rebuilds the session
// from its history. It returns store.ErrNotFound if there is neither.
func (p *sessions) load(id string) (*session, error) {
	doc := sessionDoc{}
	err := p.n.files.read(sessionFile(id), &doc, func() error {
		if doc.ID != id {
			return fmt.Errorf("holds the session %q", doc.ID)
		}
		return nil
	})
	rebuilt := false
	var newer *newerError
	switch {
	case errors.As(err, &newer):
		p.n.log.Error().Str("session", id).Err(err).Msg("a session of a newer recurgentd is not read")
		return nil, store.ErrNotFound
	case errors.Is(err, errCorrupt), vfs.NotExist(err):
		if doc, err = p.rebuild(id); err != nil {
			return nil, err
		}
		rebuilt = true
	case err != nil:
		return nil, err
	}
	x := newSession(p.n.shared, doc.Session, doc.Context)
	x.lsn, x.since = doc.LSN, p.n.now()
	x.bytes, x.synced, x.size, x.syncedRecords = doc.SyncedBytes, doc.SyncedBytes, doc.SyncedRecords, doc.SyncedRecords
	info, err := p.n.files.Stat(historyFile(id))
	if vfs.WrongKind(err) || info.Dir {
		info, err = vfs.Info{}, p.n.files.moveAside(historyFile(id), cmp.Or(err, errNoFile))
	}
	if err != nil && !vfs.NotExist(err) {
		return nil, err
	}
	if rebuilt || p.n.recovering || info.Size != doc.SyncedBytes {
		if err := p.findEnd(x, info.Size); err != nil {
			return nil, err
		}
	}
	if rebuilt || x.bytes < doc.SyncedBytes {
		p.n.stored.unsure.Store(true)
	}
	// The document is written when the session next changes, or by a repair.
	x.behind = x.behind || rebuilt || x.size != doc.HistorySize
	x.meta.HistorySize = x.size
	return x, nil
}

var errNoFile = errors.New("a directory has the name of a file")

// holdsSession reports whether the text is a complete document of the session.
func holdsSession(text []byte, id string) bool {
	var doc struct {
		head
		ID string `json:"id"`
	}
	return json.Unmarshal(text, &doc) == nil && doc.SchemaVersion == agent.SchemaVersion && doc.ID == id
}

// rebuild returns a document made from the session's history after its own was lost. The context is lost.
func (p *sessions) rebuild(id string) (sessionDoc, error) {
	data, err := p.n.files.ReadFile(historyFile(id))
	if vfs.WrongKind(err) {
		err = p.n.files.moveAside(historyFile(id), err)
	}
	if vfs.NotExist(err) || err == nil && len(data) == 0 {
		return sessionDoc{}, store.ErrNotFound
	}
	if err != nil {
		return sessionDoc{}, err
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var r agent.Record
	_ = json.Unmarshal(line, &r) // if it cannot be read, the session has no role
	at, err := time.Parse(time.RFC3339, r.Timestamp)
	if err != nil {
		at = p.n.now()
	}
	p.n.log.Warn().Str("session", id).Msg("the session was rebuilt from its history; its context is lost")
	return sessionDoc{Session: agent.Session{ID: id, Role: r.Role, Owner: "local", CreatedAt: at, UpdatedAt: p.n.now(),
		Revision: 1}, Context: map[string]json.RawMessage{}}, nil
}

// findEnd reads the history from its file. After a crash the part that was not synced may end with torn lines; findEnd
// keeps its sound lines and cuts off the rest. If lines in the synced part do not parse, the file is damaged: findEnd
// moves it aside and writes a new one with the sound lines.
func (p *sessions) findEnd(x *session, size int64) error {
	name := historyFile(x.id)
	if size == 0 {
		if x.size > 0 && x.synced > 0 {
			p.n.log.Warn().Str("session", x.id).Int("records", x.size).Msg("the history file is missing")
		}
		x.bytes, x.synced, x.size, x.syncedRecords = 0, 0, 0, 0
		return nil
	}
	data, err := p.n.files.ReadFile(name)
	if err != nil {
		return err
	}
	good, seq, damaged := soundLines(data, x.synced)
	if damaged {
		if err := p.n.files.moveAside(name, errors.New("lines that are not records")); err != nil {
			return err
		}
		if err := p.n.files.Replace(name, good); err != nil {
			return err
		}
		x.behind = true
	} else if err := jsonl.Cut(p.n.files, name, int64(len(good))); err != nil {
		return err
	}
	x.bytes, x.size = int64(len(good)), seq
	if x.synced > x.bytes {
		x.synced, x.syncedRecords = 0, 0 // sync all of it again
	}
	return nil
}

// soundLines returns the lines of a history that are records in ascending order, and the seq of the last one. damaged
// reports that a line within the first known bytes is not such a record.
func soundLines(data []byte, known int64) (good []byte, seq int, damaged bool) {
	off := 0
	for off < len(data) {
		line, _, ended := bytes.Cut(data[off:], []byte("\n"))
		next := recordSeq(line)
		inOrder := ended && next == seq+1
		if !inOrder && (int64(off) >= known || !ended && int64(len(data)) > known) {
			break // a torn end
		}
		if !inOrder && !damaged {
			damaged, good = true, bytes.Clone(data[:off])
		}
		if next > seq { // a gap is kept as a gap
			seq = next
			if damaged {
				good = append(append(good, line...), '\n')
			}
		}
		off = min(off+len(line)+1, len(data))
	}
	if damaged {
		return good, seq, true
	}
	return data[:off], seq, false
}

// recordSeq returns the seq of a record, or 0 if the line is not a record.
func recordSeq(line []byte) int {
	m := recordMeta{}
	if json.Unmarshal(line, &m) != nil {
		return 0
	}
	return m.Seq
}

// sessionState is the state of a session at one moment, to be written. Later changes may not be durable in the journal
// yet.
type sessionState struct {
	*session
	document sessionDoc // without the synced bytes and records
	lines    [][]byte   // lines that the history's file lacks
}

// gather returns the states of the sessions to write: those whose document lacks something, or all changed ones if full
// is set. The caller holds shared.mu.
func (p *sessions) gather(full bool) []sessionState {
	out := make([]sessionState, 0, len(p.changed))
	for _, x := range p.changed {
		if s, behind := x.state(); full || behind {
			out = append(out, s)
		}
	}
	return out
}

// state returns the current state of the session and whether its document lacks something.
func (x *session) state() (s sessionState, behind bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sessionState{x, sessionDoc{head: head{agent.SchemaVersion, x.lsn}, Session: x.meta, Context: x.context},
		x.pending}, x.behind
}

// doc returns the session's document with the current ends of its synced history.
func (s *sessionState) doc() sessionDoc {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.document.SyncedBytes, s.document.SyncedRecords = s.synced, s.syncedRecords
	return s.document
}

// written records that the document was written. The document still lacks something if the session has changed since.
func (s *sessionState) written() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = s.behind && s.lsn != s.document.LSN
}

// write writes what the files of sessions lack. If full is set, it also syncs their histories.
func (p *sessions) write(list []sessionState, full bool) error {
	list = slices.DeleteFunc(list, func(s sessionState) bool { return s.isGone() })
	slices.SortFunc(list, func(a, b sessionState) int {
		return strings.Compare(a.document.Session.ID, b.document.Session.ID)
	})
	for len(list) >= leastBatch {
		n := min(len(list), mostBatch)
		if err := p.writeBatch(list[:n], full); errors.Is(err, errors.ErrUnsupported) {
			// The sessions that are left are written one by one.
			break
		} else if err != nil {
			return err
		}
		list = list[n:]
	}
	for i := range list {
		if err := p.writeOne(&list[i], full); err != nil {
			return err
		}
		if full {
			p.handToCache(list[i].session)
		}
	}
	return nil
}

// Bounds of writeBatch, in sessions. From leastBatch sessions on, a few syncs of the whole file system are cheaper than
// several for each session.
const (
	leastBatch = 32
	mostBatch  = 4096
)

// writeBatch is writeOne for many sessions. It needs three syncs in all: after the histories, after the documents and
// after renaming the documents.
func (p *sessions) writeBatch(list []sessionState, full bool) error {
	reached := make([]historyEnd, len(list))
	for i := range list {
		s := &list[i]
		if err := p.n.files.Mkdir(sessionDir(s.id)); err != nil {
			return err
		}
		if err := p.appendHistory(s); err != nil {
			return err
		}
		reached[i] = s.historyEnd()
	}
	if err := p.n.files.SyncAll(); err != nil {
		return err
	}
	docs := p.n.files.NewBatch()
	defer docs.Discard()
	for i := range list {
		s := &list[i]
		if full {
			s.setSynced(reached[i])
		}
		if !s.isBehind() {
			continue
		}
		data, err := encodeDoc(s.doc())
		if err != nil {
			return err
		}
		if err := docs.Add(sessionFile(s.id), data); err != nil {
			return err
		}
	}
	if err := docs.Commit(); err != nil {
		return err
	}
	for i := range list {
		list[i].written()
		if full {
			p.handToCache(list[i].session)
		}
	}
	return nil
}

// historyEnd is the size of a history's file.
type historyEnd struct {
	bytes   int64
	records int
}

// historyEnd returns the current size of the history's file.
func (x *session) historyEnd() historyEnd {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return historyEnd{x.bytes, x.size - len(x.pending)}
}

// setSynced records how much of the history's file is durable.
func (x *session) setSynced(at historyEnd) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.synced != at.bytes {
		x.synced, x.syncedRecords, x.behind = at.bytes, at.records, true
	}
}

// writeOne writes what the files of one session lack.
func (p *sessions) writeOne(s *sessionState, full bool) error {
	if err := p.n.files.makeDir(sessionDir(s.id)); err != nil {
		return err
	}
	if err := p.appendHistory(s); err != nil {
		return err
	}
	if full {
		if err := p.syncHistory(s.session); err != nil {
			return err
		}
	}
	if !s.isBehind() {
		return nil
	}
	if err := p.n.files.writeDoc(sessionFile(s.id), s.doc()); err != nil {
		return err
	}
	s.written()
	return nil
}

// handToCache moves a session whose files have all of it to the cache, unless it has changed again.
func (p *sessions) handToCache(x *session) {
	lock := p.n.stripe("session", string(p.n.name), x.id)
	lock.Lock()
	defer lock.Unlock()
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	x.mu.RLock()
	written := !x.behind && !x.gone && len(x.pending) == 0
	x.mu.RUnlock()
	if written && p.changed[x.id] == x {
		delete(p.changed, x.id)
		p.n.sessionCache.Set(p.key(x.id), x)
		delete(p.n.files.made, sessionDir(x.id))
	}
}

// appendHistory appends the lines that the file lacks.
func (p *sessions) appendHistory(s *sessionState) error {
	if len(s.lines) == 0 {
		return nil
	}
	n, err := jsonl.Append(p.n.files, historyFile(s.id), s.historyEnd().bytes, s.lines)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil
	}
	if s.pending = s.pending[len(s.lines):]; len(s.pending) == 0 {
		s.pending = nil
	}
	s.bytes += n
	s.lines = nil // writeOne must not append them again if SyncAll is not supported
	return nil
}

// syncHistory makes the history's file durable, unless it is already.
func (p *sessions) syncHistory(x *session) error {
	end := x.historyEnd()
	x.mu.RLock()
	synced := x.synced
	x.mu.RUnlock()
	if end.bytes == synced {
		return nil
	}
	if err := jsonl.Sync(p.n.files, historyFile(x.id)); err != nil {
		return err
	}
	x.setSynced(end)
	return nil
}

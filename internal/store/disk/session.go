package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// session is what is held of a session in memory: never its history, but for the lines that are not written yet. Only
// the sequencer changes it, and the flusher moves lines from pending to the file. It is in Store.touched from its
// first change until a checkpoint has everything of it, and in a cache otherwise.
type session struct {
	id string

	mu      sync.RWMutex
	meta    agent.Session              // guarded by mu, as all below
	context map[string]json.RawMessage // never changed in place
	lsn     uint64                     // of the last change
	gone    bool

	size    int      // records
	pending [][]byte // lines that the file does not have yet: the last len(pending) of size
	bytes   int64    // of the file
	synced  int64    // of the file, on disk for certain
	sure    int      // records in them
	last    map[string]lastRecord
	since   time.Time // last is complete from here on; zero: it always was

	dirty bool // the document is behind
}

// lastRecord is the newest depth-0 record of a role and method: what tells whether a call corrects the one before.
type lastRecord struct {
	seq  int
	at   string
	line json.RawMessage
}

// maxLast bounds session.last.
const maxLast = 64

// sessionDoc is sessions/<id>/session.json.
type sessionDoc struct {
	head
	SyncedBytes   int64 `json:"synced_bytes"`   // of history.jsonl, on disk for certain
	SyncedRecords int   `json:"synced_records"` // the records in them
	agent.Session
	Context map[string]json.RawMessage `json:"context"`
}

func sessionDir(id string) string  { return "sessions/" + id }
func sessionFile(id string) string { return "sessions/" + id + "/session.json" }
func historyFile(id string) string { return "sessions/" + id + "/history.jsonl" }

// session returns the live session, from memory or from its file. store.ErrNotFound.
func (s *Store) session(id string) (*session, error) {
	if x := s.cachedSession(id); x != nil {
		return x, nil
	}
	if !validID(id) {
		return nil, store.ErrNotFound
	}
	lock := s.stripe("session", id)
	lock.Lock()
	defer lock.Unlock()
	if x := s.cachedSession(id); x != nil {
		return x, nil
	}
	s.mu.RLock()
	_, gone := s.gone[id]
	s.mu.RUnlock()
	if gone {
		return nil, store.ErrNotFound
	}
	x, err := s.loadSession(id)
	if err != nil {
		return nil, err
	}
	s.sessions.Set(id, x)
	return x, nil
}

func (s *Store) cachedSession(id string) *session {
	s.mu.RLock()
	x := s.touched[id]
	s.mu.RUnlock()
	if x != nil {
		return x
	}
	if x, ok := s.sessions.GetIfPresent(id); ok && !x.isGone() {
		return x
	}
	return nil
}

func (x *session) isGone() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.gone
}

func newSession(meta agent.Session, context map[string]json.RawMessage) *session {
	if context == nil {
		context = map[string]json.RawMessage{}
	}
	return &session{id: meta.ID, meta: meta, context: context, last: map[string]lastRecord{}}
}

// loadSession reads a session's document and finds the end of its history.
func (s *Store) loadSession(id string) (*session, error) {
	doc := sessionDoc{}
	err := s.read(sessionFile(id), &doc, func() error {
		if doc.ID != id {
			return fmt.Errorf("holds the session %q", doc.ID)
		}
		return nil
	})
	rebuilt := false
	var newer *newerError
	switch {
	case errors.As(err, &newer):
		s.log.Error().Str("session", id).Err(err).Msg("a session of a newer recurgentd is not read")
		return nil, store.ErrNotFound
	case errors.Is(err, errCorrupt), vfs.NotExist(err):
		if doc, err = s.rebuildSession(id); err != nil {
			return nil, err
		}
		rebuilt = true
	case err != nil:
		return nil, err
	}
	x := newSession(doc.Session, doc.Context)
	x.lsn, x.since = doc.LSN, s.now()
	x.bytes, x.synced, x.size, x.sure = doc.SyncedBytes, doc.SyncedBytes, doc.SyncedRecords, doc.SyncedRecords
	info, err := s.fs.Stat(historyFile(id))
	if err != nil && !vfs.NotExist(err) {
		return nil, err
	}
	if rebuilt || s.recovering || info.Size != doc.SyncedBytes {
		if err := s.findEnd(x, info.Size); err != nil {
			return nil, err
		}
		x.dirty = x.dirty || rebuilt
	}
	x.dirty = x.dirty || x.size != doc.HistorySize // written when it is next in use, or repaired
	x.meta.HistorySize = x.size
	return x, nil
}

// rebuildSession makes a session of what its history tells, when its document is lost: its context is.
func (s *Store) rebuildSession(id string) (sessionDoc, error) {
	data, err := s.fs.ReadFile(historyFile(id))
	if vfs.NotExist(err) || err == nil && len(data) == 0 {
		return sessionDoc{}, store.ErrNotFound
	}
	if err != nil {
		return sessionDoc{}, err
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var r agent.Record
	_ = json.Unmarshal(line, &r) // an unreadable first record leaves the session without a role
	at, err := time.Parse(time.RFC3339, r.Timestamp)
	if err != nil {
		at = s.now()
	}
	s.log.Warn().Str("session", id).Msg("the session was rebuilt from its history; its context is lost")
	return sessionDoc{Session: agent.Session{ID: id, Role: r.Role, Owner: "local", CreatedAt: at, UpdatedAt: s.now(), Revision: 1}, Context: map[string]json.RawMessage{}}, nil
}

// findEnd walks the part of history.jsonl that is not known to be on disk, keeps its sound lines and cuts off the
// rest: a torn tail after a crash. Lines that do not parse in the middle of what was known to be on disk are damage:
// the file is set aside and its sound lines are kept.
func (s *Store) findEnd(x *session, size int64) error {
	name := historyFile(x.id)
	if size == 0 {
		if x.size > 0 && x.synced > 0 {
			s.log.Warn().Str("session", x.id).Int("records", x.size).Msg("the history file is missing")
		}
		x.bytes, x.synced, x.size, x.sure = 0, 0, 0, 0
		return nil
	}
	data, err := s.fs.ReadFile(name)
	if err != nil {
		return err
	}
	good, seq, damaged := soundLines(data, x.synced)
	if damaged {
		if err := s.quarantine(name, errors.New("lines that are not records")); !errors.Is(err, errCorrupt) {
			return err
		}
		if err := s.files.Replace(name, good); err != nil {
			return err
		}
		x.dirty = true
	} else if len(good) < len(data) {
		f, err := s.fs.Open(name, false)
		if err != nil {
			return err
		}
		if err = errors.Join(f.Truncate(int64(len(good))), f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	x.bytes, x.size = int64(len(good)), seq
	if x.synced > x.bytes {
		x.synced, x.sure = 0, 0 // all of it is synced anew
	}
	return nil
}

// soundLines returns the lines of a history that are records in order, the seq of the last, and whether something in
// the first known bytes is not.
func soundLines(data []byte, known int64) (good []byte, seq int, damaged bool) {
	rest, off := data, 0
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n')
		line := rest
		if end >= 0 {
			line = rest[:end]
		}
		m := recordMeta{}
		err := json.Unmarshal(line, &m)
		if end < 0 || err != nil || m.Seq != seq+1 {
			if int64(off) >= known || end < 0 && int64(len(data)) > known {
				return data[:off], seq, damaged
			}
			if !damaged {
				damaged = true
				good = bytes.Clone(data[:off])
			}
			if err == nil && m.Seq > seq { // a gap stays a gap: what is readable is kept
				good = append(append(good, line...), '\n')
				seq = m.Seq
			}
		} else {
			seq = m.Seq
			if damaged {
				good = append(append(good, line...), '\n')
			}
		}
		if end < 0 {
			break
		}
		off += end + 1
		rest = rest[end+1:]
	}
	if damaged {
		return good, seq, true
	}
	return data[:off], seq, false
}

// doc renders the session's document.
func (x *session) doc() sessionDoc {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sessionDoc{head{agent.SchemaVersion, x.lsn}, x.synced, x.sure, x.meta, x.context}
}

// remember notes a depth-0 record as the newest of its role and method. The caller holds mu.
func (x *session) remember(m *recordMeta, line []byte) {
	if m.Depth != 0 {
		return
	}
	key := m.Role + "\x00" + m.MethodName
	if _, known := x.last[key]; !known && len(x.last) >= maxLast {
		for k, v := range x.last {
			if at, err := time.Parse(time.RFC3339, v.at); err == nil && !at.Before(x.since) {
				x.since = at.Add(time.Millisecond) // complete only after what is dropped here
			}
			delete(x.last, k)
			break
		}
	}
	x.last[key] = lastRecord{m.Seq, m.Timestamp, line}
}

// weight is what a session takes in the cache, roughly.
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

func (x *session) values() map[string]json.RawMessage {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.context)
}

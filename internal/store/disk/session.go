package disk

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
)

// session is what is held of a session in memory: of its history only the lines that are not written yet. Only the
// sequencer changes it, and the flusher moves lines from pending to the file. It is in sessions.changed from its first
// change until a checkpoint has everything of it, and in a cache otherwise.
type session struct {
	id string

	mu      locks.RWMutex
	meta    agent.Session              // guarded by mu, as all below
	context map[string]json.RawMessage // never changed in place
	lsn     uint64                     // of the last change
	gone    bool

	size          int      // records
	pending       [][]byte // lines that the file does not have yet: the last len(pending) of size
	bytes         int64    // of the file
	synced        int64    // of the file, known to be on disk
	syncedRecords int      // in the synced bytes
	last          map[string]lastRecord
	since         time.Time // last is complete from here on; zero: it always was

	behind bool // the document lacks something
}

// lastRecord is the newest depth-0 record of a role and method: a call is compared with it to see whether it corrects it.
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
	SyncedBytes   int64 `json:"synced_bytes"`   // of history.jsonl, known to be on disk
	SyncedRecords int   `json:"synced_records"` // the records in them
	agent.Session
	Context map[string]json.RawMessage `json:"context"`
}

func sessionDir(id string) string  { return "sessions/" + id }
func sessionFile(id string) string { return "sessions/" + id + "/session.json" }
func historyFile(id string) string { return "sessions/" + id + "/history.jsonl" }

// metadata returns the session as callers see it.
func (x *session) metadata() agent.Session {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.meta
}

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

// remember keeps a depth-0 record as the newest of its role and method. The caller holds mu.
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

// weight is roughly the size of a session in the cache.
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

// values returns the session's context: a map of the caller's own.
func (x *session) values() map[string]json.RawMessage {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.context)
}

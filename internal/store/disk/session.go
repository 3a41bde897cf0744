package disk

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
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

package disk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

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

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

// load reads a session's document and finds the end of its history.
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
	x.behind = x.behind || rebuilt || x.size != doc.HistorySize // written when it is next in use, or repaired
	x.meta.HistorySize = x.size
	return x, nil
}

var errNoFile = errors.New("a directory has the name of a file")

// holdsSession reports whether the text is a whole document of the session.
func holdsSession(text []byte, id string) bool {
	var doc struct {
		head
		ID string `json:"id"`
	}
	return json.Unmarshal(text, &doc) == nil && doc.SchemaVersion == agent.SchemaVersion && doc.ID == id
}

// rebuild makes a session of what its history says, when its document is lost. Its context is lost.
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
	_ = json.Unmarshal(line, &r) // an unreadable first record leaves the session without a role
	at, err := time.Parse(time.RFC3339, r.Timestamp)
	if err != nil {
		at = p.n.now()
	}
	p.n.log.Warn().Str("session", id).Msg("the session was rebuilt from its history; its context is lost")
	return sessionDoc{Session: agent.Session{ID: id, Role: r.Role, Owner: "local", CreatedAt: at, UpdatedAt: p.n.now(),
		Revision: 1}, Context: map[string]json.RawMessage{}}, nil
}

// findEnd walks the part of history.jsonl that is not known to be on disk, keeps its sound lines and cuts off the
// rest, which is a torn end after a crash. Lines that do not parse in the middle of what was known to be on disk are
// damage: the file is moved aside and its sound lines are kept.
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
		x.synced, x.syncedRecords = 0, 0 // all of it is synced anew
	}
	return nil
}

// soundLines returns the lines of a history that are records in order, the seq of the last, and whether something in
// the first known bytes is no such line.
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
		if next > seq { // a gap stays a gap: what is readable is kept
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

// recordSeq decodes the seq of a record; 0 for a line that is no record.
func recordSeq(line []byte) int {
	m := recordMeta{}
	if json.Unmarshal(line, &m) != nil {
		return 0
	}
	return m.Seq
}

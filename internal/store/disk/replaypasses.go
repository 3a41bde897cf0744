package disk

import (
	"bytes"

	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

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

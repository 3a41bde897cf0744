package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// Audit is part of store.Namespace. If the query's cursor has the number of an entry, the start of the page is found by
// bisection instead of reading the file from its end.
func (p *auditTrail) Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error) {
	p.n.mu.RLock()
	pending, end := slices.Clone(p.pending), p.bytes
	p.n.mu.RUnlock()
	page := store.NewAuditPage(q)
	for _, a := range slices.Backward(pending) {
		if page.Add(a) {
			return page.Entries, nil
		}
	}
	if end == 0 {
		return page.Entries, nil
	}
	f, err := p.n.files.Open(auditFile, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, seq := q.Place(); seq > 0 {
		if end, err = endBefore(f, end, seq); err != nil {
			return nil, err
		}
	}
	wanted := newAuditFilter(q)
	_, err = jsonl.Backward(ctx, f, end, func(line []byte, _ int64) (bool, error) {
		if id := page.Seeks(); id != "" && !bytes.Contains(line, []byte(`"id":"`+id+`"`)) {
			return false, nil
		} else if id == "" && !wanted.may(line) {
			return page.Pass(func() string { return cursorOf(line) }), nil
		}
		var a agent.AuditEntry
		if json.Unmarshal(line, &a) != nil {
			p.n.files.reportDamage(auditFile)
			return false, nil
		}
		return page.Add(&a), nil
	})
	return page.Entries, err
}

// endBefore returns the offset of the line with the entry number seq in a file of that size.
func endBefore(f io.ReaderAt, size, seq int64) (int64, error) {
	return jsonl.Bisect(f, size, func(line []byte) (reached, readable bool) {
		var e struct{ Seq int64 }
		err := json.Unmarshal(line, &e)
		return e.Seq >= seq, err == nil
	})
}

// cursorOf returns the cursor of a line's entry.
func cursorOf(line []byte) string {
	var e agent.AuditEntry
	_ = json.Unmarshal(line, &e) // a damaged line has no cursor and ends the paging
	return store.AuditCursor(&e)
}

// auditFilter excludes most of the lines that a query does not select without decoding them.
type auditFilter struct {
	principal []byte
	actions   [][]byte
	undoes    []byte
}

func newAuditFilter(q store.AuditQuery) (f auditFilter) {
	if q.Principal != "" {
		f.principal = append([]byte(`"actor":`), agent.Encoded(q.Principal)...)
	}
	if q.Undos {
		f.undoes = []byte(`"undoes":`)
	}
	for _, a := range q.Actions {
		f.actions = append(f.actions, append([]byte(`"action":`), agent.Encoded(a)...))
	}
	return f
}

// may reports whether the query may select the line.
func (f *auditFilter) may(line []byte) bool {
	return bytes.Contains(line, f.principal) && bytes.Contains(line, f.undoes) &&
		(len(f.actions) == 0 || slices.ContainsFunc(f.actions, func(a []byte) bool { return bytes.Contains(line, a) }))
}

package disk

import (
	"context"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// History is part of store.Namespace. It reads the page from the file, whose start it finds by bisection, and from the
// lines in memory that the file does not have yet.
func (p *sessions) History(ctx context.Context, sessionID string, q store.HistoryQuery) (store.HistoryPage, error) {
	x, err := p.get(sessionID)
	if err != nil {
		return store.HistoryPage{}, err
	}
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	x.mu.RLock()
	v := view{x.id, x.size, x.bytes, x.pending}
	page, done := x.lastOf(&q)
	x.mu.RUnlock()
	if done {
		return page, nil
	}
	page = store.HistoryPage{Records: []json.RawMessage{}, Size: v.size}
	c := newPager(&q, &page)
	if q.Desc {
		err = v.backward(ctx, p.n.files, c)
	} else {
		err = v.forward(ctx, p.n.files, c)
	}
	if c.damaged > 0 {
		p.n.files.reportDamage(historyFile(v.id))
	}
	return page, err
}

// eachRecord calls visit with all lines of a session's history. A line is valid until visit returns.
func (p *sessions) eachRecord(ctx context.Context, x *session, visit func(line []byte)) error {
	x.mu.RLock()
	bytes, pending := x.bytes, x.pending
	x.mu.RUnlock()
	if bytes > 0 {
		f, err := p.n.files.Open(historyFile(x.id), false)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := jsonl.Forward(ctx, f, 0, bytes, func(line []byte) (bool, error) {
			visit(line)
			return false,
				nil
		}); err != nil {
			return err
		}
	}
	for _, line := range pending {
		visit(line)
	}
	return nil
}

// lastOf answers from memory the query of every warm call: the newest depth-0 record of a role and method. done is
// false if it cannot. The caller holds mu.
func (x *session) lastOf(q *store.HistoryQuery) (page store.HistoryPage, done bool) {
	if !q.Desc || !q.Depth0 || q.Limit != 1 || q.After != 0 || q.Role == "" || q.Method == "" || q.Status != "" ||
		!q.Until.IsZero() {
		return page, false
	}
	page = store.HistoryPage{Records: []json.RawMessage{}, Size: x.size}
	r, known := x.last[q.Role+"\x00"+q.Method]
	if !known {
		// Records are in commit order, but their timestamps are the start times of the calls.
		return page, x.size == 0 || x.since.IsZero() || !q.Since.IsZero() && !q.Since.Before(x.since)
	}
	if at, err := time.Parse(time.RFC3339, r.at); err == nil && !q.Since.IsZero() && at.Before(q.Since) {
		return page, true
	}
	page.Records = append(page.Records, r.line)
	if r.seq > 1 {
		page.Next = r.seq
	}
	return page, true
}

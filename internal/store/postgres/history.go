package postgres

import (
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/store"
)

// History implements store.Namespace.
func (n *Namespace) History(ctx context.Context, sessionID string,
	q store.HistoryQuery) (page store.HistoryPage, err error) {
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		page = store.HistoryPage{Records: []json.RawMessage{}}
		if err := n.store.pool.QueryRow(ctx, "SELECT history_size FROM sessions WHERE ns = $1 AND id = $2", ns,
			key(sessionID)).Scan(&page.Size); err != nil {
			return err
		}
		first, last := span(&q, page.Size)
		if first > last {
			return nil
		}
		return n.fillPage(ctx, &page, records{ns, sessionID, first, last}, &q)
	})
	return page, err
}

// records is a range of a session's records, inclusive.
type records struct {
	ns          int64
	session     string
	first, last int
}

// span returns the first and the last record that a page may read. It relies on sequences without gaps.
func span(q *store.HistoryQuery, size int) (first, last int) {
	first, last = 1, size
	if !q.Desc {
		if first = max(q.After, 0) + 1; q.Scan > 0 {
			last = min(last, first+q.Scan-1)
		}
		return first, last
	}
	if q.After > 0 {
		last = min(last, q.After-1)
	}
	if q.Scan > 0 {
		first = max(first, last-q.Scan+1)
	}
	return first, last
}

// fillPage reads a page from that range of the history.
func (n *Namespace) fillPage(ctx context.Context, page *store.HistoryPage, r records, q *store.HistoryQuery) error {
	f := &filter{}
	f.and("ns = ?", r.ns)
	f.and("session = ?", key(r.session))
	f.and("seq >= ?", r.first)
	f.and("seq <= ?", r.last)
	f.equal("method", q.Method)
	f.equal("role", q.Role)
	f.equal("status", q.Status)
	f.between("at", q.Since, q.Until)
	if q.Depth0 {
		f.and("depth = ?", 0)
	}
	order := " ORDER BY seq"
	if q.Desc {
		order += " DESC"
	}
	// This subquery needs only the index.
	found := "SELECT ns, session, seq FROM records WHERE " + f.where.String() + order + f.limit(q.Limit+1)
	rows, err := n.store.pool.Query(ctx, "SELECT seq, doc FROM records WHERE (ns, session, seq) IN ("+found+")"+order,
		f.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	last, size := 0, 0
	for rows.Next() {
		var seq int
		var doc []byte
		if err := rows.Scan(&seq, &doc); err != nil {
			return err
		}
		if size += len(doc); q.Full(len(page.Records), size) {
			page.Next = last
			return nil
		}
		page.Records = append(page.Records, doc)
		last = seq
	}
	if q.Scan > 0 && !q.Desc && r.last < page.Size {
		page.Next = r.last
	}
	if q.Scan > 0 && q.Desc && r.first > 1 {
		page.Next = r.first
	}
	return rows.Err()
}

package postgres

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// ListCalls implements store.Namespace.
func (n *Namespace) ListCalls(ctx context.Context, q store.CallQuery) (out []agent.LogEntry, err error) {
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	if q.Stable {
		if err := n.store.settle(ctx); err != nil {
			return nil, err
		}
	}
	hours, err := n.valueHours(ctx)
	if err != nil {
		return nil, err
	}
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		f, next, err := n.callFilter(ctx, ns, &q)
		if err != nil || f == nil {
			out = []agent.LogEntry{}
			return err
		}
		out, err = n.logEntries(ctx, f, " ORDER BY n DESC"+f.limit(q.Limit), hours)
		if err == nil && q.Scan != nil && len(out) < q.Limit {
			q.Scan.Next = next
		}
		return err
	})
	return out, err
}

// CallsAfter implements store.Namespace.
func (n *Namespace) CallsAfter(ctx context.Context, after string, limit int) (out []agent.LogEntry, err error) {
	if err := n.store.settle(ctx); err != nil {
		return nil, err
	}
	hours, err := n.valueHours(ctx)
	if err != nil {
		return nil, err
	}
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		f := &filter{}
		f.and("ns = ?", ns)
		f.where.WriteString(" AND n < " + horizon)
		if after != "" {
			from, err := n.placeOf(ctx, ns, after)
			if err != nil {
				return err
			}
			if from == nil {
				return store.ErrNotFound
			}
			f.and("n > ?", *from)
		}
		out, err = n.logEntries(ctx, f, " ORDER BY n"+f.limit(limit), hours)
		return err
	})
	return out, err
}

// logEntries reads the entries that the filter selects. order is an SQL clause. Values are kept for hours.
func (n *Namespace) logEntries(ctx context.Context, f *filter, order string, hours int) ([]agent.LogEntry, error) {
	rows, err := n.store.pool.Query(ctx, "SELECT doc, corrected_by FROM calls WHERE "+f.where.String()+order, f.args...)
	if err != nil {
		return nil, err
	}
	now := n.store.o.Now()
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (agent.LogEntry, error) {
		var doc []byte
		var correctedBy string
		if err := row.Scan(&doc, &correctedBy); err != nil {
			return agent.LogEntry{}, err
		}
		return decodeLog(doc, correctedBy, hours, now)
	})
}

// horizon is the place in the log below which no more calls appear, as seen by the query's own snapshot. The database's
// function call_horizon takes a new snapshot: a call that commits in between may be below its result and still be
// invisible to the query.
const horizon = "(SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::int8 + added) << 20 FROM era)"

// callFilter returns the conditions of a query, or nil if nothing can match. next is the cursor to continue from if the
// page ends at its scan limit; "" if the log ends first.
func (n *Namespace) callFilter(ctx context.Context, ns int64, q *store.CallQuery) (f *filter, next string, err error) {
	f = &filter{}
	f.and("ns = ?", ns)
	if q.Stable {
		f.where.WriteString(" AND n < " + horizon)
	}
	if q.Before != "" {
		before, err := n.placeOf(ctx, ns, q.Before)
		if err != nil || before == nil {
			return nil, "", err
		}
		f.and("n < ?", *before)
	}
	if q.Scan != nil {
		var last int64
		if last, next, err = n.scanEnd(ctx, f, q.Scan.Most); err != nil {
			return nil, "", err
		}
		f.and("n >= ?", last)
	}
	f.equal("session", q.SessionID)
	f.equal("role", q.Role)
	f.equal("method", q.Method)
	f.equal("status", q.Status)
	f.equal("source", q.Source)
	f.equal("error_type", q.ErrorType)
	f.equal("trace", q.TraceID)
	f.equal("parent", q.ParentCallID)
	f.equal("owner", q.Owner)
	f.flag("weak", q.WeakSuccess)
	f.flag("history_access", q.HistoryAccess)
	f.between("at", q.Since, q.Until)
	return f, next, nil
}

// placeOf returns the place of a call in the log, or nil if the log does not have it.
func (n *Namespace) placeOf(ctx context.Context, ns int64, callID string) (place *int64, err error) {
	err = n.store.pool.QueryRow(ctx, "SELECT n FROM calls WHERE ns = $1 AND call_id = $2", ns, key(callID)).Scan(&place)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return place, err
}

// scanEnd returns the place and id of the last call that a page may read. id is "" if the log ends before the limit.
func (n *Namespace) scanEnd(ctx context.Context, f *filter, most int) (last int64, id string, err error) {
	args := append(append([]any{}, f.args...), max(most, 1)-1)
	// The second row only shows whether the log continues.
	rows, err := n.store.pool.Query(ctx, "SELECT n, doc FROM calls WHERE "+f.where.String()+" ORDER BY n DESC OFFSET "+
		place(len(args))+" LIMIT 2", args...)
	if err != nil {
		return 0, "", err
	}
	last = math.MinInt64 // copied calls have places below 0
	var at int64
	var doc []byte
	found := 0
	if _, err = pgx.ForEachRow(rows, []any{&at, &doc}, func() error {
		if found++; found == 1 {
			e, err := decodeCall(doc)
			last, id = at, e.CallID
			return err
		}
		return nil
	}); err != nil {
		return 0, "", err
	}
	if found < 2 {
		id = ""
	}
	return last, id, nil
}

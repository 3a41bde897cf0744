package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// feedRow is a change with the other columns of its row in the feed.
type feedRow struct {
	ns     int64
	call   string // key of a call's id, for looking up its entry
	change store.Change
}

// publish adds changes to the feed and returns the place of the last one.
func publish(ctx context.Context, tx pgx.Tx, ns int64, changes []store.Change) (last feedPlace, err error) {
	if len(changes) == 0 {
		return last, nil
	}
	rows := make([]feedRow, len(changes))
	for i, c := range changes {
		rows[i] = feedRow{ns: ns, change: c}
	}
	b := &pgx.Batch{}
	queueFeed(b, rows, &last)
	return last, tx.SendBatch(ctx, b).Close()
}

// queueFeed queues the insert of changes. When the batch runs, last is set to the place of the last change.
func queueFeed(b *pgx.Batch, changes []feedRow, last *feedPlace) {
	if len(changes) == 0 {
		return
	}
	var c columns
	for i := range changes {
		c.add(rowKey{ns: changes[i].ns, a: changes[i].call}, agent.Encoded(&changes[i].change))
	}
	b.Queue(`WITH added AS (INSERT INTO feed (ns, call_id, doc)
			SELECT ns, call_id, doc FROM unnest($1::int8[], $2::text[], $3::bytea[]) WITH ORDINALITY AS k(ns, call_id, doc, i) ORDER BY i RETURNING xid, n)
		SELECT xid::text::int8, n FROM added ORDER BY n DESC LIMIT 1`, c.ns, c.a, c.docs).QueryRow(func(row pgx.Row) error { return row.Scan(&last.xid, &last.n) })
}

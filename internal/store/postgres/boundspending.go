package postgres

import (
	"context"
	"encoding/json"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// boundSpending applies the bounds of store.Ledger: it sums up old days, and the oldest ones if there are too many
// rows. It runs when a namespace is expired rather than with each call.
func (c *change) boundSpending(ctx context.Context, today agent.Day) error {
	var count int
	var oldest *int32
	if err := c.QueryRow(ctx, "SELECT count(*), min(day) FROM spend_rows WHERE ns = $1", c.ns).Scan(&count,
		&oldest); err != nil {
		return err
	}
	if count <= store.MaxSpendRows && (oldest == nil || agent.Day(*oldest) >= today-store.DetailedDays) {
		return nil
	}
	// In the order in which commits lock these rows.
	if _, err := c.Exec(ctx, "SELECT 1 FROM spend_rows WHERE ns = $1 ORDER BY day, hash FOR UPDATE", c.ns); err != nil {
		return err
	}
	// includes rows that others added in the meantime
	rows, err := c.Query(ctx, "DELETE FROM spend_rows WHERE ns = $1 RETURNING "+spendColumns, c.ns)
	if err != nil {
		return err
	}
	gone, err := scanSpend(rows)
	if err != nil {
		return err
	}
	l := store.NewLedger(store.Spent{Rows: gone})
	l.Bound(today)
	b := &pgx.Batch{}
	if err := queueSpent(b, c.ns, l.Spent(math.MinInt32, math.MaxInt32).Rows); err != nil {
		return err
	}
	return c.send(ctx, b)
}

// queueSpent queues inserts for days without rows.
func queueSpent(b *pgx.Batch, ns int64, rows []agent.SpendRow) error {
	for i := range rows {
		r := &rows[i]
		models, err := json.Marshal(r.Models)
		if err != nil {
			return err
		}
		k := spendKeyOf(ns, r)
		b.Queue("INSERT INTO spend_rows (ns, day, hash, calls, warm, role, method, owner, models) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
			ns, int32(r.Day), k.hash, r.Calls, r.Warm, []byte(r.Role), []byte(r.Method), []byte(r.Owner), models)
	}
	return nil
}

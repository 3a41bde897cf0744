package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maxLog is the maximum number of entries in a namespace's call log. Expire drops the oldest beyond it.
const maxLog = 1_000_000

// Expire implements store.Namespace.
func (n *Namespace) Expire(ctx context.Context, now time.Time) (int, error) {
	if n.gone.Load() {
		return 0, errErased
	}
	if err := n.store.closing(); err != nil {
		return 0, err
	}
	if err := n.store.sweep(ctx); err != nil {
		return 0, unavailable(err)
	}
	policy, _, err := n.Policy(ctx)
	if err != nil {
		return 0, err
	}
	if n.id.Load() == none {
		return 0, nil // nothing has been written to it
	}
	gone, err := n.expireSessions(ctx, policy.Retention, now)
	if err != nil {
		return gone, err
	}
	if err := n.expireCalls(ctx, policy.Retention, now); err != nil {
		return gone, err
	}
	return gone, n.change(ctx, func(ctx context.Context, c *change) error { return c.expireRest(ctx, now) })
}

// expireRest drops expired files, call log entries and spending rows beyond their limits, removed versions that cannot
// be restored any more, and unreferenced programs. Then it sets when Expire may have work again.
func (c *change) expireRest(ctx context.Context, now time.Time) error {
	if err := c.eraseFiles(ctx, "expires_at <= $2", now); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, "DELETE FROM calls WHERE ns = $1 AND n <= (SELECT n FROM calls WHERE ns = $1 ORDER BY n DESC OFFSET $2 LIMIT 1)", c.ns, maxLog); err != nil {
		return err
	}
	if err := c.boundSpending(ctx, agent.DayOf(now)); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, "DELETE FROM archive WHERE ns = $1 AND deleted AND at <= $2", c.ns,
		now.Add(-store.DeletedLife)); err != nil {
		return err
	}
	if err := c.prunePrograms(ctx, now); err != nil {
		return err
	}
	_, err := c.Exec(ctx, `UPDATE namespaces SET due = CASE WHEN EXISTS (SELECT 1 FROM sessions WHERE ns = $1) OR EXISTS (SELECT 1 FROM files WHERE ns = $1)
		OR EXISTS (SELECT 1 FROM replies WHERE ns = $1) OR EXISTS (SELECT 1 FROM archive WHERE ns = $1 AND deleted) OR EXISTS (SELECT 1 FROM calls WHERE ns = $1) THEN $2::timestamptz ELSE $3::timestamptz END WHERE id = $1`,
		c.ns, now.Add(store.ExpireEvery), store.Never)
	return err
}

// eraseFiles removes the namespace's files that where selects. In where, args start at $2.
func (c *change) eraseFiles(ctx context.Context, where string, args ...any) error {
	rows, err := c.Query(ctx, "SELECT id FROM files WHERE ns = $1 AND "+where+" ORDER BY id",
		append([]any{c.ns}, args...)...)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return c.loosenFiles(ctx, found)
}

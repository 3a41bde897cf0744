package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maxLog bounds the entries of a namespace's call log; the oldest go when it is expired.
const maxLog = 1_000_000

// Expire is part of store.Namespace.
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
		return 0, nil // nobody has written to it
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

// expireRest drops files whose time is over and what passes the bounds of the call log and the spending, and says when there may be something
// to do again.
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

// eraseFiles takes away the files of the namespace that the condition names; it has places from $2 on.
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

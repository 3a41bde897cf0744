package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// expireTogether is the number of sessions erased in one transaction.
const expireTogether = 64

// expireSessions erases the sessions that the policy no longer keeps, and returns their number.
func (n *Namespace) expireSessions(ctx context.Context, r agent.RetentionPolicy, now time.Time) (int, error) {
	old, err := n.oldSessions(ctx, r, now)
	if err != nil {
		return 0, err
	}
	gone := 0
	for part := range slices.Chunk(old, expireTogether) {
		if err := n.change(ctx, func(ctx context.Context, c *change) error {
			_, err := c.deleteSessions(ctx, part)
			return err
		}); err != nil {
			return gone, err
		}
		gone += len(part)
	}
	return gone, nil
}

// oldSessions lists the sessions that the policy no longer keeps.
func (n *Namespace) oldSessions(ctx context.Context, r agent.RetentionPolicy, now time.Time) (ids []string, err error) {
	before := func(hours int) *time.Time {
		if hours == 0 {
			return nil
		}
		t := now.Add(-time.Duration(hours) * time.Hour)
		return &t
	}
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx,
			`SELECT doc FROM (SELECT id, doc, updated_at, ephemeral, row_number() OVER (ORDER BY id DESC) AS place FROM sessions WHERE ns = $1) AS s
			WHERE updated_at < $2 OR ephemeral AND updated_at < $3 OR ($4 > 0 AND place > $4) ORDER BY id`, ns, before(r.SessionDays*24), before(r.ValueHours), int64(r.MaxSessions))
		if err != nil {
			return err
		}
		sessions, err := pgx.CollectRows(rows, decoded[agent.Session])
		ids = ids[:0]
		for i := range sessions {
			ids = append(ids, sessions[i].ID)
		}
		return err
	})
	return ids, err
}

// expireCalls removes data of calls that is kept for a limited time: values, replies, debug prompts, and evidence
// beyond its limit.
func (n *Namespace) expireCalls(ctx context.Context, r agent.RetentionPolicy, now time.Time) error {
	return n.change(ctx, func(ctx context.Context, c *change) error {
		b := &pgx.Batch{}
		b.Queue("DELETE FROM replies WHERE ns = $1 AND at <= $2", c.ns, now.Add(-store.KeyLife))
		b.Queue(`DELETE FROM evidence WHERE (ns, role, method) IN (SELECT ns, role, method FROM (
			SELECT ns, role, method, sum(weight) OVER (ORDER BY last DESC, role, method) AS kept FROM evidence WHERE ns = $1) AS e WHERE kept > $2)`, c.ns, int64(store.MaxEvidence))
		if r.ValueHours > 0 {
			b.Queue("DELETE FROM call_values WHERE ns = $1 AND at <= $2", c.ns,
				now.Add(-time.Duration(r.ValueHours)*time.Hour))
		}
		if err := c.send(ctx, b); err != nil || r.ValueHours == 0 {
			return err
		}
		cutoff := now.Add(-time.Duration(r.ValueHours) * time.Hour)
		return c.rewriteCalls(ctx, "debug AND at <= $3", []any{cutoff}, "",
			func(e *agent.LogEntry) { store.ForgetDebug(e, r.ValueHours, now) })
	})
}

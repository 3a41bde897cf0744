package postgres

import (
	"context"
	"slices"
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

const (
	// noteUnreferenced records since when no artifact, in use or archived, has referred to a program. It clears the
	// time if one refers to the program again.
	noteUnreferenced = `WITH used AS MATERIALIZED (SELECT DISTINCT found[1] AS checksum FROM (SELECT head AS doc FROM artifacts WHERE ns = $1
			UNION ALL SELECT body FROM artifact_bodies WHERE ns = $1 UNION ALL SELECT doc FROM archive WHERE ns = $1) AS docs,
			regexp_matches(encode(doc, 'escape'), 'sha256:[0-9a-f]{64}', 'g') AS found)
		UPDATE programs p SET unreferenced = CASE WHEN u.checksum IS NULL THEN $2::timestamptz END FROM programs q LEFT JOIN used u USING (checksum)
		WHERE p.ns = $1 AND q.ns = $1 AND q.checksum = p.checksum AND (p.unreferenced IS NULL) = (u.checksum IS NULL)`
	// dropPrograms removes programs that no call in the log can refer to either, because the log does not reach back to
	// the last reference by an artifact.
	dropPrograms = "DELETE FROM programs WHERE ns = $1 AND unreferenced < (SELECT at FROM calls WHERE ns = $1 ORDER BY n LIMIT 1) - $2::interval"
)

// commitSlack is the maximum time between a call's use of a program and its log entry.
const commitSlack = 2 * time.Hour

// prunePrograms removes the programs that neither artifacts nor the call log refer to.
func (c *change) prunePrograms(ctx context.Context, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(noteUnreferenced, c.ns, now)
	b.Queue(dropPrograms, c.ns, commitSlack)
	return c.send(ctx, b)
}

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

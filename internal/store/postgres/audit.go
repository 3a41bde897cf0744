package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// audit appends an entry to the chain; nil means none. It locks the head's row until the commit, which puts the chain
// into commit order. A change locks that row last, so calls do not wait for it longer than needed.
func (c *change) audit(ctx context.Context, e *agent.AuditEntry) error {
	if e == nil {
		return nil
	}
	head, err := c.auditHead(ctx)
	if err != nil {
		return err
	}
	linked := *e
	if head, err = chain.Link(head, &linked); err != nil {
		return err
	}
	line, err := chain.Line(&linked)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue("INSERT INTO audit (ns, n, id, session, line) VALUES ($1, $2, $3, $4, $5)", c.ns, head.Seq, key(linked.ID),
		key(linked.SessionID), line)
	b.Queue("UPDATE audit_heads SET seq = $2, hash = $3 WHERE ns = $1", c.ns, head.Seq, head.Hash)
	c.left = e
	return c.send(ctx, b)
}

// auditHead locks the end of the chain, and starts the chain if needed.
func (c *change) auditHead(ctx context.Context) (h chain.Head, err error) {
	start := chain.Start(c.n.name, 0, "")
	// DO UPDATE locks an existing row and returns it.
	err = c.QueryRow(ctx, `INSERT INTO audit_heads AS h (ns, seq, hash) VALUES ($1, $2, $3)
		ON CONFLICT (ns) DO UPDATE SET seq = h.seq RETURNING seq, hash`, c.ns, start.Seq, start.Hash).Scan(&h.Seq, &h.Hash)
	return h, err
}

// AppendAudit implements store.Namespace.
func (n *Namespace) AppendAudit(ctx context.Context, e agent.AuditEntry) error {
	return n.change(ctx, func(ctx context.Context, c *change) error { return c.audit(ctx, &e) })
}

// AuditHead implements store.Namespace.
func (n *Namespace) AuditHead(ctx context.Context) (h chain.Head, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx, "SELECT seq, hash FROM audit_heads WHERE ns = $1", ns)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&h.Seq, &h.Hash}, func() error { return nil })
		return err
	})
	return h, err
}

// auditPage is the number of entries read per query.
const auditPage = 256

// Audit implements store.Namespace.
func (n *Namespace) Audit(ctx context.Context, q store.AuditQuery) (out []agent.AuditEntry, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		query := q
		if q.Scan != nil {
			scan := *q.Scan // the query runs again if the connection breaks
			query.Scan = &scan
		}
		page := store.NewAuditPage(query)
		if err := n.readAudit(ctx, ns, page, query); err != nil {
			return err
		}
		if out = page.Entries; q.Scan != nil {
			*q.Scan = *query.Scan
		}
		return nil
	})
	return out, err
}

// readAudit adds entries to the page, newest first, until the page ends.
func (n *Namespace) readAudit(ctx context.Context, ns int64, page *store.AuditPage, q store.AuditQuery) error {
	const newest = int64(1) << 62
	below := newest
	if id, seq := q.Place(); seq > 0 {
		below = seq
	} else if id != "" {
		rows, err := n.store.pool.Query(ctx,
			"SELECT n + 1 FROM audit WHERE ns = $1 AND id = $2 ORDER BY n DESC LIMIT 1", ns, key(id))
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(found) == 0 {
			return err
		}
		below = found[0]
	}
	for {
		rows, err := n.store.pool.Query(ctx,
			"SELECT n, line FROM audit WHERE ns = $1 AND n < $2 ORDER BY n DESC LIMIT $3", ns, below, auditPage)
		if err != nil {
			return err
		}
		read, ended := 0, false
		var line []byte
		if _, err := pgx.ForEachRow(rows, []any{&below, &line}, func() error {
			read++
			var e agent.AuditEntry
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("audit entry %d: %w", below, err)
			}
			ended = ended || page.Add(&e)
			return nil
		}); err != nil {
			return err
		}
		if ended || read < auditPage {
			return nil
		}
	}
}

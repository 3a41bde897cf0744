package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// toolColumns are the columns that scanTool reads.
const toolColumns = "t.revision, t.usage_count, t.last_used, t.doc"

// scanTool reads toolColumns, after the columns scanned into before.
func scanTool(row pgx.Row, before ...any) (t agent.Tool, err error) {
	var revision, count int64
	var used string
	var doc []byte
	if err := row.Scan(append(before, &revision, &count, &used, &doc)...); err != nil {
		return t, err
	}
	if err := json.Unmarshal(doc, &t); err != nil {
		return t, fmt.Errorf("stored tool: %w", err)
	}
	t.Revision, t.UsageCount = revision, count
	if t.LastUsedAt, err = time.Parse(time.RFC3339Nano, used); err != nil {
		return t, fmt.Errorf("stored tool %s: %w", t.Role, err)
	}
	return t, nil
}

// usedAt returns the value of the column last_used.
func usedAt(t *agent.Tool) string { return t.LastUsedAt.Format(time.RFC3339Nano) }

// queueTool queues an insert or update of a tool.
func queueTool(b *pgx.Batch, ns int64, t *agent.Tool) error {
	doc, err := json.Marshal(t)
	if err != nil {
		return err
	}
	b.Queue(`INSERT INTO tools (ns, role, revision, usage_count, last_used, doc) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (ns, role) DO UPDATE SET revision = excluded.revision, usage_count = excluded.usage_count, last_used = excluded.last_used, doc = excluded.doc`,
		ns, key(t.Role), t.Revision, t.UsageCount, usedAt(t), doc)
	var bytes toolBytes
	bytes.add(rowKey{ns: ns, a: key(t.Role)}, func(add func(string, store.Bytes)) { store.ToolBytes(t, add) })
	bytes.queue(b)
	return nil
}

// Tool implements store.Namespace.
func (n *Namespace) Tool(ctx context.Context, role string) (t agent.Tool, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) (err error) {
		t, err = scanTool(n.store.pool.QueryRow(ctx, "SELECT "+toolColumns+" FROM tools t WHERE ns = $1 AND role = $2",
			ns, key(role)))
		return err
	})
	return t, err
}

// ListTools implements store.Namespace.
func (n *Namespace) ListTools(ctx context.Context, after string, limit int) (out []agent.Tool, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx, "SELECT "+toolColumns+
			" FROM tools t WHERE ns = $1 AND role > $2 ORDER BY role LIMIT $3", ns, key(after), limit)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (agent.Tool, error) { return scanTool(row) })
		return err
	})
	return out, err
}

// PutTool implements store.Namespace.
func (n *Namespace) PutTool(ctx context.Context, t agent.Tool, revision int64,
	audit *agent.AuditEntry) (out agent.Tool, err error) {
	err = n.change(ctx, func(ctx context.Context, c *change) error {
		old, err := c.tool(ctx, t.Role)
		if err != nil {
			return err
		}
		next, err := store.ReplaceTool(old, t, revision, n.store.o.Now())
		if err != nil {
			return err
		}
		out = *next
		if err := c.putTool(ctx, next); err != nil {
			return err
		}
		return c.audit(ctx, audit)
	})
	return out, n.freeing(err)
}

// tool reads a tool for a change, or returns nil if there is none. It also locks a role that is not registered, so two
// replicas cannot both register it.
func (c *change) tool(ctx context.Context, role string) (*agent.Tool, error) {
	tools, err := lockTools(ctx, c.Tx, map[roleKey]bool{{c.ns, role}: true})
	return tools[roleKey{c.ns, role}], err
}

// putTool writes a tool and its rank.
func (c *change) putTool(ctx context.Context, t *agent.Tool) error {
	b, r := &pgx.Batch{}, rankChanges{}
	if err := queueTool(b, c.ns, t); err != nil {
		return err
	}
	r.tool(c.ns, t)
	r.queue(b, c.n.store.o.Now())
	c.Changed(store.Change{Kind: "tool", Role: t.Role, Revision: t.Revision})
	return c.send(ctx, b)
}

// roleKey identifies a role in a namespace.
type roleKey struct {
	ns   int64
	role string
}

// lockTools reads the tools of the roles as queueLockTools does.
func lockTools(ctx context.Context, tx pgx.Tx, roles map[roleKey]bool) (map[roleKey]*agent.Tool, error) {
	b := &pgx.Batch{}
	tools := queueLockTools(b, roles)
	if b.Len() == 0 {
		return nil, nil
	}
	return tools, tx.SendBatch(ctx, b).Close()
}

// queueLockTools queues a query for the existing tools of the roles, after it has locked their ranks in sorted order.
// For a role that may be registered (true) it creates the rank first, so there is a row to lock. The returned map is
// filled when the batch runs.
func queueLockTools(b *pgx.Batch, roles map[roleKey]bool) map[roleKey]*agent.Tool {
	if len(roles) == 0 {
		return nil
	}
	sorted := sortedRoles(roles)
	spaces, names, register, real := make([]int64, len(sorted)), make([]string, len(sorted)), make([]bool, len(sorted)),
		map[roleKey]roleKey{}
	for i, k := range sorted {
		spaces[i], names[i], register[i] = k.ns, key(k.role), roles[k]
		real[roleKey{k.ns, names[i]}] = k
	}
	out := map[roleKey]*agent.Tool{}
	b.Queue(`INSERT INTO ranks (ns, role) SELECT ns, role FROM unnest($1::int8[], $2::text[], $3::bool[]) AS k(ns, role, register) WHERE register
		ON CONFLICT DO NOTHING`, spaces, names, register)
	b.Queue(`SELECT 1 FROM ranks JOIN unnest($1::int8[], $2::text[]) AS k(ns, role) USING (ns, role) ORDER BY ns, role FOR UPDATE OF ranks`, spaces, names)
	b.Queue(`SELECT t.ns, t.role, `+toolColumns+
		` FROM tools t JOIN unnest($1::int8[], $2::text[]) AS k(ns, role) USING (ns, role)`, spaces,
		names).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var k roleKey
			t, err := scanTool(rows, &k.ns, &k.role)
			if err != nil {
				return err
			}
			out[real[k]] = &t
		}
		return rows.Err()
	})
	return out
}

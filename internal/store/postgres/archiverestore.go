package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// inArchive selects archive rows that can be restored: those not deleted before $2.
const inArchive = "NOT (deleted AND at <= $2)"

// endedBefore returns the latest deletion time of versions that are gone for good.
func (s *Store) endedBefore() time.Time { return s.o.Now().Add(-store.DeletedLife) }

// Restore implements store.Namespace.
func (n *Namespace) Restore(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return n.change(ctx, func(ctx context.Context, c *change) error {
		back := returning{whole: map[int64]archived{}, below: map[rowKey]*groupArtifact{}}
		for _, t := range targets {
			// The newest version of each artifact and of the tool, or the one that the operation took away.
			rows, err := c.Query(ctx,
				`SELECT by, n, tool, doc FROM (SELECT DISTINCT ON (tool, method) by, n, tool, doc FROM archive WHERE ns = $1 AND `+inArchive+` AND role = $3
				AND CASE WHEN $5 THEN tool WHEN $4 = '' THEN true ELSE NOT tool AND method = $4 END AND ($6 = '' OR by = $6)
				ORDER BY tool, method, n DESC) newest ORDER BY n`, c.ns, c.n.store.endedBefore(), key(t.Role), key(t.Method), t.ToolOnly, key(cmp.Or(t.From, audit.Undoes)))
			if err != nil {
				return err
			}
			found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x archived, err error) {
				var by string
				x, err = scanArchived(row, &by)
				x.by = by
				return x, err
			})
			if err != nil {
				return err
			}
			for _, x := range found {
				if err := c.sortOut(ctx, &back, x, &audit); err != nil {
					return err
				}
			}
			if err := back.End(t); err != nil {
				return err
			}
		}
		if err := c.bringBack(ctx, &back); err != nil {
			return err
		}
		return c.audit(ctx, &audit)
	})
}

// returning collects what a Restore brings back.
type returning struct {
	store.Restoring
	whole map[int64]archived        // archive rows that come back as they were, by number
	below map[rowKey]*groupArtifact // artifacts in use, locked
}

// sortOut decides whether an archived version comes back whole, or below the version in use. It locks the latter.
func (c *change) sortOut(ctx context.Context, back *returning, x archived, audit *agent.AuditEntry) error {
	if t := x.tool; t != nil {
		have, err := lockTools(ctx, c.Tx, map[roleKey]bool{{c.ns, t.Role}: true})
		switch {
		case err != nil:
			return err
		case len(have) > 0:
			back.Stays(store.Target{Role: t.Role}, nil)
			return nil
		}
	} else {
		k := methodKey(c.ns, x.artifact.Role, x.artifact.MethodName)
		if back.below[k] == nil {
			used, err := c.lockArtifacts(ctx, []rowKey{k})
			if err != nil {
				return err
			}
			back.below[k] = used[k]
		}
		if row := back.below[k]; row != nil {
			back.Beneath(row.now, x.artifact, audit, x.by, c.n.store.o.Now())
			return nil
		}
		delete(back.below, k)
	}
	back.Whole()
	back.whole[x.n] = x
	return nil
}

// bringBack puts the collected versions into use.
func (c *change) bringBack(ctx context.Context, back *returning) error {
	artifacts, tools := back.below, map[roleKey]*agent.Tool{}
	for _, x := range back.Below {
		row := artifacts[methodKey(c.ns, x.Role, x.MethodName)]
		row.set(row.now.Apply(x))
	}
	b, ranks, gone := &pgx.Batch{}, rankChanges{}, []int64{}
	for n, x := range back.whole {
		gone = append(gone, n)
		if x.tool != nil {
			tools[roleKey{c.ns, x.tool.Role}] = x.tool
			continue
		}
		row := &groupArtifact{}
		row.set(x.artifact)
		artifacts[methodKey(c.ns, x.artifact.Role, x.artifact.MethodName)] = row
	}
	if err := c.writeArtifacts(ctx, artifacts); err != nil {
		return err
	}
	for _, k := range sortedRoles(tools) {
		if err := queueTool(b, c.ns, tools[k]); err != nil {
			return err
		}
		ranks.tool(c.ns, tools[k])
		c.Changed(store.Change{Kind: store.ChangedTool, Role: k.role, Revision: tools[k].Revision})
	}
	ranks.queue(b, c.n.store.o.Now())
	b.Queue("DELETE FROM archive WHERE ns = $1 AND n = ANY($2::int8[])", c.ns, gone)
	return c.send(ctx, b)
}

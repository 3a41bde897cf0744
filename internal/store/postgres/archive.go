package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Stale implements store.Namespace.
func (n *Namespace) Stale(ctx context.Context, before time.Time) (out []store.Target, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		out = []store.Target{}
		b := &pgx.Batch{}
		b.Queue("SELECT t.doc, r.used FROM ranks r JOIN tools t USING (ns, role) WHERE r.ns = $1 AND r.tool_used IS NOT NULL AND r.used < $2", ns, before.UnixMicro()).Query(func(rows pgx.Rows) error {
			var doc []byte
			var used int64
			_, err := pgx.ForEachRow(rows, []any{&doc, &used}, func() error {
				var t agent.Tool
				err := json.Unmarshal(doc, &t)
				out = append(out, store.Target{Role: t.Role, LastUsedAt: time.UnixMicro(used).UTC()})
				return err
			})
			return err
		})
		b.Queue("SELECT head FROM artifacts WHERE ns = $1", ns).Query(func(rows pgx.Rows) error {
			return eachDoc(rows, func(a agent.Artifact) {
				if a.LastUsedAt.Before(before) {
					out = append(out, store.Target{Role: a.Role, Method: a.MethodName, LastUsedAt: a.LastUsedAt})
				}
			})
		})
		err := n.store.pool.SendBatch(ctx, b).Close()
		slices.SortFunc(out, func(a, b store.Target) int {
			return cmp.Or(strings.Compare(a.Role, b.Role), strings.Compare(a.Method, b.Method))
		})
		return err
	})
	return out, err
}

// Archive implements store.Namespace.
func (n *Namespace) Archive(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return n.takeAway(ctx, targets, audit, false)
}

// Remove implements store.Namespace.
func (n *Namespace) Remove(ctx context.Context, targets []store.Target, audit agent.AuditEntry) error {
	return n.takeAway(ctx, targets, audit, true)
}

// takeAway implements Archive and Remove.
func (n *Namespace) takeAway(ctx context.Context, targets []store.Target, audit agent.AuditEntry, deleted bool) error {
	return n.freeing(n.change(ctx, func(ctx context.Context, c *change) error {
		b, ranks := &pgx.Batch{}, rankChanges{}
		a := taking{by: audit.ID, at: c.n.store.o.Now(), deleted: deleted}
		roles := map[roleKey]bool{}
		taken := map[rowKey]bool{}
		for _, t := range targets {
			if t.Restored != "" {
				if err := c.unrestore(ctx, t); err != nil {
					return err
				}
				continue
			}
			if t.Method == "" {
				// false: no rank is created for a role that is not registered.
				roles[roleKey{c.ns, t.Role}] = false
			}
			if t.ToolOnly {
				continue
			}
			list, err := c.artifactsOf(ctx, "a.role = $2 AND ($3 = '' OR a.method = $3)", key(t.Role), key(t.Method))
			if err != nil {
				return err
			}
			for _, k := range sortedKeys(list) {
				if taken[k] {
					continue
				}
				taken[k] = true
				if err := c.takeArtifact(b, ranks, list[k].now, a); err != nil {
					return err
				}
			}
		}
		tools, err := lockTools(ctx, c.Tx, roles)
		if err != nil {
			return err
		}
		ranks.queue(b, c.n.store.o.Now())
		for _, k := range sortedRoles(tools) {
			if err := c.takeTool(b, tools[k], a); err != nil {
				return err
			}
		}
		// A role without a tool and artifacts has no rank.
		b.Queue("DELETE FROM ranks WHERE ns = $1 AND tool_used IS NULL AND artifact_used IS NULL", c.ns)
		if err := c.send(ctx, b); err != nil {
			return err
		}
		return c.audit(ctx, &audit)
	}))
}

// taking is an operation that takes artifacts and tools out of use.
type taking struct {
	by      string // audit id
	at      time.Time
	deleted bool
}

// unrestore takes away the program that an operation restored below a newer one.
func (c *change) unrestore(ctx context.Context, t store.Target) error {
	k := methodKey(c.ns, t.Role, t.Method)
	found, err := c.lockArtifacts(ctx, []rowKey{k})
	if err != nil {
		return err
	}
	row := found[k]
	if row == nil {
		row = &groupArtifact{}
	}
	x, err := store.TakeRestored(row.now, t, c.n.store.o.Now())
	if err != nil {
		return err
	}
	row.set(row.now.Apply(x))
	return c.writeArtifacts(ctx, found)
}

// artifactsOf locks artifacts in sorted order and returns them. where may use parameters from $2 on, and the tables a
// of heads and b of bodies.
func (c *change) artifactsOf(ctx context.Context, where string, args ...any) (map[rowKey]*groupArtifact, error) {
	rows, err := c.Query(ctx,
		`SELECT a.role, a.method FROM artifacts a JOIN artifact_bodies b USING (ns, role, method) WHERE a.ns = $1 AND (`+where+")",
		append([]any{c.ns}, args...)...)
	if err != nil {
		return nil, err
	}
	found := map[rowKey]bool{}
	k := rowKey{ns: c.ns}
	if _, err := pgx.ForEachRow(rows, []any{&k.a, &k.b},
		func() error { found[k] = true; return nil }); err != nil || len(found) == 0 {
		return nil, err
	}
	return c.lockArtifacts(ctx, sortedKeys(found))
}

// takeArtifact takes an artifact out of use and keeps it in the archive.
func (c *change) takeArtifact(b *pgx.Batch, ranks rankChanges, a *agent.Artifact, by taking) error {
	if err := c.queueArchived(b, store.Target{Role: a.Role, Method: a.MethodName}, by, a); err != nil {
		return err
	}
	b.Queue("DELETE FROM artifacts WHERE ns = $1 AND role = $2 AND method = $3", c.ns, key(a.Role), key(a.MethodName))
	b.Queue("DELETE FROM artifact_bodies WHERE ns = $1 AND role = $2 AND method = $3", c.ns, key(a.Role),
		key(a.MethodName))
	ranks.artifact(c.ns, a.Role, a, nil)
	c.Changed(store.Change{Kind: store.ChangedArtifact, Role: a.Role, Method: a.MethodName})
	return nil
}

func (c *change) takeTool(b *pgx.Batch, t *agent.Tool, by taking) error {
	if err := c.queueArchived(b, store.Target{Role: t.Role}, by, t); err != nil {
		return err
	}
	b.Queue("DELETE FROM tools WHERE ns = $1 AND role = $2", c.ns, key(t.Role))
	b.Queue("UPDATE ranks SET tool_used = NULL WHERE ns = $1 AND role = $2", c.ns, key(t.Role))
	c.Changed(store.Change{Kind: store.ChangedTool, Role: t.Role})
	return nil
}

// queueArchived queues the insert of an artifact or, if the target has no method, of a tool.
func (c *change) queueArchived(b *pgx.Batch, t store.Target, by taking, doc any) error {
	text, err := json.Marshal(doc)
	b.Queue("INSERT INTO archive (ns, role, method, tool, by, at, deleted, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", c.ns, key(t.Role), key(t.Method), t.Method == "", key(by.by), by.at, by.deleted, text)
	return err
}

// archived is a row of the archive.
type archived struct {
	n        int64
	by       string // audit id of the operation that archived it
	tool     *agent.Tool
	artifact *agent.Artifact
}

// scanArchived reads the columns n, tool and doc, after the columns scanned into before.
func scanArchived(row pgx.Row, before ...any) (x archived, err error) {
	var tool bool
	var doc []byte
	if err := row.Scan(append(before, &x.n, &tool, &doc)...); err != nil {
		return x, err
	}
	if tool {
		x.tool = &agent.Tool{}
		err = json.Unmarshal(doc, x.tool)
	} else {
		x.artifact = &agent.Artifact{}
		err = json.Unmarshal(doc, x.artifact)
	}
	if err != nil {
		err = fmt.Errorf("archived under %d: %w", x.n, err)
	}
	return x, err
}

// forgetInArchive removes data of the sessions from archived artifacts. It reads only artifacts whose text contains a
// session id.
func (c *change) forgetInArchive(ctx context.Context, sessions []string) error {
	names := make([][]byte, len(sessions))
	for i, s := range sessions {
		names[i] = bytes.Trim(agent.Encoded(s), `"`)
	}
	rows, err := c.Query(ctx,
		`SELECT n, tool, doc FROM archive WHERE ns = $1 AND NOT tool AND EXISTS (SELECT 1 FROM unnest($2::bytea[]) AS name WHERE position(name in doc) > 0)
		ORDER BY n FOR UPDATE`, c.ns, names)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (archived, error) { return scanArchived(row) })
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	for _, x := range list {
		if !remembersAny(x.artifact, sessions) {
			continue
		}
		doc, err := json.Marshal(forgetSessions(x.artifact, sessions, c.n.store.o.Now()))
		if err != nil {
			return err
		}
		b.Queue("UPDATE archive SET doc = $3 WHERE ns = $1 AND n = $2", c.ns, x.n, doc)
	}
	return c.send(ctx, b)
}

// Archived implements store.Namespace.
func (n *Namespace) Archived(ctx context.Context, targets []store.Target, auditID string) error {
	return n.read(ctx, func(ctx context.Context, ns int64) error {
		roles := make([]string, len(targets))
		for i, t := range targets {
			roles[i] = t.Role
		}
		rows, err := n.store.pool.Query(ctx, "SELECT role, method, by FROM archive WHERE ns = $1 AND "+inArchive+
			" AND role = ANY($3)", ns, n.store.endedBefore(), keys(roles))
		if err != nil {
			return err
		}
		has := map[[3]string]bool{}
		var at [3]string
		if _, err := pgx.ForEachRow(rows, []any{&at[0], &at[1], &at[2]}, func() error {
			has[at] = true
			return nil
		}); err != nil {
			return err
		}
		for _, t := range targets {
			if !has[[3]string{key(t.Role), key(t.Method), key(cmp.Or(t.From, auditID))}] {
				return store.NotArchived(t)
			}
		}
		return nil
	})
}

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

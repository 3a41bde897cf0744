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

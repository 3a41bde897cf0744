package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
)

// DeleteSession implements store.Namespace.
func (n *Namespace) DeleteSession(ctx context.Context, id string, audit *agent.AuditEntry) error {
	return n.freeing(n.change(ctx, func(ctx context.Context, c *change) error {
		gone, err := c.deleteSessions(ctx, []string{id})
		if err != nil {
			return err
		}
		if gone == 0 {
			return store.ErrNotFound
		}
		return c.audit(ctx, audit)
	}))
}

// deleteSessions erases sessions and their arguments and values everywhere. It returns how many existed.
func (c *change) deleteSessions(ctx context.Context, ids []string) (int64, error) {
	hashed := keys(ids)
	slices.Sort(hashed)
	// Commits lock sessions in the same order. From here on none of their calls is committed.
	tag, err := c.Exec(ctx, "SELECT 1 FROM sessions WHERE ns = $1 AND id = ANY($2::text[]) ORDER BY id FOR UPDATE",
		c.ns, hashed)
	if err != nil || tag.RowsAffected() == 0 {
		return 0, err
	}
	gone := tag.RowsAffected()
	b := &pgx.Batch{}
	for _, table := range []string{"session_context", "records", "call_values", "replies", "patterns"} {
		b.Queue("DELETE FROM "+table+" WHERE ns = $1 AND session = ANY($2::text[])", c.ns, hashed)
	}
	b.Queue(`UPDATE contents SET sessions = ARRAY(SELECT s FROM unnest(sessions) AS s WHERE s <> ALL($2::text[])) WHERE ns = $1 AND sessions && $2::text[]`, c.ns, hashed)
	b.Queue("DELETE FROM contents WHERE ns = $1 AND sessions = '{}'", c.ns)
	// last, because triggers look up the owner of what was deleted before
	b.Queue("DELETE FROM sessions WHERE ns = $1 AND id = ANY($2::text[])", c.ns, hashed)
	if err := c.send(ctx, b); err != nil {
		return 0, err
	}
	if err := c.eraseCalls(ctx, hashed); err != nil {
		return 0, err
	}
	if err := c.forgetInArtifacts(ctx, ids); err != nil {
		return 0, err
	}
	if err := c.forgetInArchive(ctx, ids); err != nil {
		return 0, err
	}
	if err := c.eraseFiles(ctx, "session = ANY($2::text[]) AND session <> ''", hashed); err != nil {
		return 0, err
	}
	for _, id := range ids {
		if err := c.eraseAudit(ctx, id); err != nil {
			return 0, err
		}
	}
	return gone, nil
}

// erasePage is the number of entries rewritten per query.
const erasePage = 500

// rewriteCalls rewrites the entries that where selects, in pages. In where, $1 is the namespace, $2 the place of the
// last entry before the page, and args start at $3. set is appended to the SET clause.
func (c *change) rewriteCalls(ctx context.Context, where string, args []any, set string,
	edit func(*agent.LogEntry)) error {
	after := int64(-1 << 62)
	for {
		rows, err := c.Query(ctx, "SELECT n, call_id, doc FROM calls WHERE ns = $1 AND n > $2 AND "+where+
			" ORDER BY n LIMIT "+place(len(args)+3)+" FOR UPDATE",
			append(append([]any{c.ns, after}, args...), erasePage)...)
		if err != nil {
			return err
		}
		var edited columns
		var id string
		var doc []byte
		if _, err := pgx.ForEachRow(rows, []any{&after, &id, &doc}, func() error {
			e, err := decodeCall(doc)
			if err != nil {
				return err
			}
			edit(&e)
			text, err := encodeLog(&e)
			edited.add(rowKey{ns: c.ns, a: id}, text)
			return err
		}); err != nil || len(edited.ns) == 0 {
			return err
		}
		if _, err := c.Exec(ctx, "UPDATE calls c SET doc = k.doc, debug = false"+set+
			" FROM unnest($1::int8[], $2::text[], $3::bytea[]) AS k(ns, call_id, doc) WHERE (c.ns, c.call_id) = (k.ns, k.call_id)",
			edited.ns, edited.a, edited.docs); err != nil {
			return err
		}
	}
}

// eraseCalls erases what the sessions' calls left in the log. Entries that do not name an owner lose theirs.
func (c *change) eraseCalls(ctx context.Context, sessions []string) error {
	return c.rewriteCalls(ctx, "session = ANY($3::text[])", []any{sessions}, ", owner = CASE WHEN named THEN owner END",
		store.EraseLog)
}

// forgetInArtifacts removes data of the sessions from artifacts. It checks cached artifacts without fetching them
// again.
func (c *change) forgetInArtifacts(ctx context.Context, sessions []string) error {
	rows, err := c.Query(ctx, "SELECT ns, role, method FROM artifacts WHERE ns = $1 ORDER BY role, method", c.ns)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k rowKey, err error) {
		return k,
			row.Scan(&k.ns, &k.a, &k.b)
	})
	if err != nil {
		return err
	}
	const page = 100
	for part := range slices.Chunk(all, page) {
		// Most artifacts hold nothing of the sessions. Only the others are locked.
		found, err := c.n.store.readArtifacts(ctx, c.Tx, part)
		if err != nil {
			return err
		}
		if part = slices.DeleteFunc(part, func(k rowKey) bool {
			return found[k] == nil ||
				!remembersAny(found[k].now, sessions)
		}); len(part) == 0 {
			continue
		}
		locked, err := c.lockArtifacts(ctx, part)
		if err != nil {
			return err
		}
		for _, x := range locked {
			x.set(forgetSessions(x.now, sessions, c.n.store.o.Now()))
		}
		if err := c.writeArtifacts(ctx, locked); err != nil {
			return err
		}
	}
	return nil
}

func remembersAny(a *agent.Artifact, sessions []string) bool {
	return slices.ContainsFunc(sessions, func(s string) bool { return store.Remembers(a, s) })
}

// forgetSessions returns the artifact without data of the sessions.
func forgetSessions(a *agent.Artifact, sessions []string, now time.Time) *agent.Artifact {
	for _, s := range sessions {
		if store.Remembers(a, s) {
			a = a.Apply(agent.ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: now, ForgetSession: s})
		}
	}
	return a
}

// eraseAudit erases the bodies of a session's entries.
func (c *change) eraseAudit(ctx context.Context, session string) error {
	rows, err := c.Query(ctx,
		"SELECT n, line FROM audit WHERE ns = $1 AND session = $2 AND session <> '' ORDER BY n FOR UPDATE", c.ns,
		key(session))
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	var at int64
	var line []byte
	if _, err := pgx.ForEachRow(rows, []any{&at, &line}, func() error {
		var e agent.AuditEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("audit entry %d: %w", at, err)
		}
		if e.Hash == "" {
			return nil // written by an earlier version: the chain covers the whole line
		}
		erased := chain.Erase(e)
		short, err := chain.Line(&erased)
		b.Queue("UPDATE audit SET session = '', line = $3 WHERE ns = $1 AND n = $2", c.ns, at, short)
		return err
	}); err != nil {
		return err
	}
	return c.send(ctx, b)
}

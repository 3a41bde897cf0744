package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Artifact implements store.Namespace.
func (n *Namespace) Artifact(ctx context.Context, role, method string) (a *agent.Artifact, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		k := methodKey(ns, role, method)
		found, err := n.store.readArtifacts(ctx, n.store.pool, []rowKey{k})
		if err != nil {
			return err
		}
		if found[k] == nil {
			return store.ErrNotFound
		}
		a = found[k].now
		return nil
	})
	return a, err
}

// readArtifacts reads artifacts in one statement and thus in one snapshot. The server sends only parts that this
// replica does not have in its cache.
func (s *Store) readArtifacts(ctx context.Context, q querier, keys []rowKey) (map[rowKey]*groupArtifact, error) {
	r, known := s.newArtifactReader(keys)
	rows, err := q.Query(ctx,
		`SELECT a.ns, a.role, a.method, a.version, a.body_version, CASE WHEN a.version <> k.version THEN a.head END,
			CASE WHEN a.body_version <> k.body THEN b.body END
		FROM artifacts a JOIN unnest($1::int8[], $2::text[], $3::text[], $4::int8[], $5::int8[]) AS k(ns, role, method, version, body) USING (ns, role, method)
		JOIN artifact_bodies b USING (ns, role, method)`, known.ns, known.a, known.b, known.versions, known.bodies)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k rowKey
		x := &foundArtifact{}
		if err := rows.Scan(&k.ns, &k.a, &k.b, &x.version, &x.body, &x.head, &x.text); err != nil {
			return nil, err
		}
		r.found[k] = x
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return r.finish()
}

// ListArtifacts implements store.Namespace.
func (n *Namespace) ListArtifacts(ctx context.Context, role string) (out []*agent.Artifact, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx, "SELECT method FROM artifacts WHERE ns = $1 AND role = $2 ORDER BY method",
			ns, key(role))
		if err != nil {
			return err
		}
		methods, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		sorted := make([]rowKey, len(methods))
		for i, m := range methods {
			sorted[i] = rowKey{ns, key(role), m}
		}
		found, err := n.store.readArtifacts(ctx, n.store.pool, sorted)
		out = []*agent.Artifact{}
		for _, k := range sorted {
			if found[k] != nil {
				out = append(out, found[k].now)
			}
		}
		return err
	})
	return out, err
}

// Program implements store.Namespace.
func (n *Namespace) Program(ctx context.Context, checksum string) (code string, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		var text []byte
		err := n.store.pool.QueryRow(ctx, "SELECT code FROM programs WHERE ns = $1 AND checksum = $2", ns,
			key(checksum)).Scan(&text)
		code = string(text)
		return err
	})
	return code, err
}

// ChangeArtifact implements store.Namespace.
func (n *Namespace) ChangeArtifact(ctx context.Context, revision int64, x agent.ArtifactChange,
	audit *agent.AuditEntry) (a *agent.Artifact, err error) {
	if err := encodable(&x); err != nil {
		return nil, err
	}
	err = n.change(ctx, func(ctx context.Context, c *change) error {
		k := methodKey(c.ns, x.Role, x.MethodName)
		found, err := c.lockArtifacts(ctx, []rowKey{k})
		if err != nil {
			return err
		}
		row := found[k]
		if row == nil {
			row = &groupArtifact{}
			found[k] = row
		}
		if err := store.CheckChange(row.now, revision, &x); err != nil {
			return err
		}
		row.set(row.now.Apply(x))
		row.operated = audit != nil && x.Renews()
		a = row.now
		if err := c.writeArtifacts(ctx, found); err != nil {
			return err
		}
		return c.audit(ctx, audit)
	})
	return a, n.freeing(err)
}

// set replaces the artifact and marks it for writeArtifacts.
func (x *groupArtifact) set(a *agent.Artifact) {
	x.newBody = x.newBody || x.now == nil || !store.SameBody(x.now, a)
	x.now, x.revised = a, true
}

// lockArtifacts locks and reads the artifacts with these sorted keys. Missing ones are left out.
func (c *change) lockArtifacts(ctx context.Context, sorted []rowKey) (map[rowKey]*groupArtifact, error) {
	b := &pgx.Batch{}
	r := c.n.store.lockArtifacts(b, sorted)
	if err := c.send(ctx, b); err != nil {
		return nil, err
	}
	return r.finish()
}

// writeArtifacts writes the artifacts that were set, and what depends on them: ranks, the feed, and the record that a
// person has judged a method.
func (c *change) writeArtifacts(ctx context.Context, artifacts map[rowKey]*groupArtifact) error {
	b, judged, ranks := &pgx.Batch{}, map[rowKey]*agent.Artifact{}, rankChanges{}
	for _, k := range sortedKeys(artifacts) {
		x := artifacts[k]
		if !x.revised {
			continue
		}
		if len(x.now.Verdicts) > 0 {
			judged[k] = x.now
		}
		ranks.artifact(k.ns, x.now.Role, x.was, x.now)
		c.Changed(store.Change{Kind: store.ChangedArtifact, Role: x.now.Role, Method: x.now.MethodName,
			Revision: x.now.Revision, Operated: x.operated})
	}
	if err := writeArtifacts(b, artifacts); err != nil {
		return err
	}
	if err := c.judge(ctx, judged); err != nil {
		return err
	}
	ranks.queue(b, c.n.store.o.Now())
	return c.send(ctx, b)
}

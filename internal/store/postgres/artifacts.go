package postgres

import (
	"context"
	"encoding/json"
	"fmt"

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

// An artifact is stored in two parts, because each counted call changes its counters, states and streaks, and few
// changes touch the rest, which is large. The head has the former, the body the latter. Both parts use the type
// agent.Artifact, with the members of the other part zero.

// headOf returns an artifact's head.
func headOf(a *agent.Artifact) *agent.Artifact {
	head := *a
	head.Code, head.Rejections, head.Displaced, head.Examples, head.Verdicts, head.Failures, head.Drifts, head.Manifest = "", nil, nil, nil, nil, nil, nil, nil
	head.Generations = make([]*agent.Generation, len(a.Generations))
	for i, g := range a.Generations {
		x := *g
		x.Code, x.Facts, x.ChangedAnswers, x.SolverShape, x.Interface, x.Shapes, x.Outlines, x.Fixtures, x.Effects, x.MadeFor, x.Asked = "", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil
		head.Generations[i] = &x
	}
	return &head
}

// bodyOf returns an artifact's body.
func bodyOf(a *agent.Artifact) *agent.Artifact {
	body := &agent.Artifact{Code: a.Code, Rejections: a.Rejections, Displaced: a.Displaced, Examples: a.Examples,
		Verdicts: a.Verdicts,
		Failures: a.Failures, Drifts: a.Drifts, Manifest: a.Manifest,
		Generations: make([]*agent.Generation, len(a.Generations))}
	for i, g := range a.Generations {
		body.Generations[i] = &agent.Generation{ID: g.ID, Code: g.Code, Facts: g.Facts,
			ChangedAnswers: g.ChangedAnswers, SolverShape: g.SolverShape,
			Interface: g.Interface, Shapes: g.Shapes, Outlines: g.Outlines, Fixtures: g.Fixtures, Effects: g.Effects,
			MadeFor: g.MadeFor, Asked: g.Asked}
	}
	return body
}

// join assembles an artifact from its parts. It returns an error if they come from different changes.
func join(head, body *agent.Artifact) (*agent.Artifact, error) {
	a := *head
	a.Code, a.Rejections, a.Displaced, a.Examples, a.Verdicts, a.Failures, a.Drifts, a.Manifest = body.Code,
		body.Rejections, body.Displaced, body.Examples,
		body.Verdicts, body.Failures, body.Drifts, body.Manifest
	a.Generations = make([]*agent.Generation, len(head.Generations))
	for i, h := range head.Generations {
		if h == nil || i >= len(body.Generations) || body.Generations[i] == nil || body.Generations[i].ID != h.ID {
			return nil, fmt.Errorf("the parts of artifact %s are of different changes", head)
		}
		g, b := *h, body.Generations[i]
		g.Code, g.Facts, g.ChangedAnswers, g.SolverShape, g.Interface = b.Code, b.Facts, b.ChangedAnswers,
			b.SolverShape, b.Interface
		g.Shapes, g.Outlines, g.Fixtures, g.Effects, g.MadeFor, g.Asked = b.Shapes, b.Outlines, b.Fixtures, b.Effects,
			b.MadeFor, b.Asked
		a.Generations[i] = &g
	}
	return &a, nil
}

// decodeArtifact decodes an artifact from its parts.
func decodeArtifact(head, body []byte) (*agent.Artifact, error) {
	var h, b agent.Artifact
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, fmt.Errorf("stored artifact: %w", err)
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("stored body of artifact %s: %w", &h, err)
	}
	return join(&h, &b)
}

// artifactReader reads artifacts. The server sends only versions that differ from the cached ones.
type artifactReader struct {
	store *Store
	known map[rowKey]*keptArtifact
	found map[rowKey]*foundArtifact
}

type foundArtifact struct {
	version, body int64
	head, text    []byte
}

// newArtifactReader returns a reader for these artifacts, and their keys as columns with the cached versions.
func (s *Store) newArtifactReader(keys []rowKey) (*artifactReader, *columns) {
	r := &artifactReader{store: s, known: map[rowKey]*keptArtifact{}, found: map[rowKey]*foundArtifact{}}
	known := &columns{}
	for _, k := range keys {
		var version, body int64
		if kept, ok := s.keptArtifacts.GetIfPresent(k); ok {
			r.known[k], version, body = kept, kept.version, kept.body
		}
		known.addKey(k, version)
		known.bodies = append(known.bodies, body)
	}
	return r, known
}

// lockArtifacts queues statements that lock the artifacts in sorted order and read them. The caller calls finish once
// the batch has run. A separate statement reads the bodies: in a statement that waited for a lock they would be
// outdated.
func (s *Store) lockArtifacts(b *pgx.Batch, sorted []rowKey) *artifactReader {
	r, known := s.newArtifactReader(sorted)
	const from = " FROM artifacts a JOIN unnest($1::int8[], $2::text[], $3::text[], $4::int8[]) AS k(ns, role, method, version) USING (ns, role, method)"
	b.Queue("SELECT a.ns, a.role, a.method, a.version, a.body_version, CASE WHEN a.version <> k.version THEN a.head END"+from+
		" ORDER BY a.ns, a.role, a.method FOR UPDATE OF a", known.ns, known.a, known.b, known.versions).Query(r.heads)
	b.Queue("SELECT a.ns, a.role, a.method, b.body"+from+
		" JOIN artifact_bodies b USING (ns, role, method) WHERE a.body_version <> k.version",
		known.ns, known.a, known.b, known.bodies).Query(r.bodies)
	return r
}

func (r *artifactReader) heads(rows pgx.Rows) error {
	for rows.Next() {
		var k rowKey
		x := &foundArtifact{}
		if err := rows.Scan(&k.ns, &k.a, &k.b, &x.version, &x.body, &x.head); err != nil {
			return err
		}
		r.found[k] = x
	}
	return rows.Err()
}

func (r *artifactReader) bodies(rows pgx.Rows) error {
	for rows.Next() {
		var k rowKey
		var text []byte
		if err := rows.Scan(&k.ns, &k.a, &k.b, &text); err != nil {
			return err
		}
		if x := r.found[k]; x != nil {
			x.text = text
		}
	}
	return rows.Err()
}

// finish returns the artifacts that exist.
func (r *artifactReader) finish() (map[rowKey]*groupArtifact, error) {
	out := map[rowKey]*groupArtifact{}
	for k, x := range r.found {
		a, err := r.decode(r.known[k], x)
		if err != nil {
			return nil, err
		}
		out[k] = &groupArtifact{was: a, now: a, stored: true, wasVersion: x.version, version: x.version, body: x.body}
		r.store.keepArtifact(k, out[k])
	}
	return out, nil
}

// decode assembles an artifact from what the server sent and what is cached.
func (r *artifactReader) decode(known *keptArtifact, x *foundArtifact) (*agent.Artifact, error) {
	if known != nil && known.version == x.version {
		return known.a, nil
	}
	if x.text != nil {
		return decodeArtifact(x.head, x.text)
	}
	if known == nil || known.body != x.body {
		return nil, fmt.Errorf("the body of an artifact is missing")
	}
	var head agent.Artifact
	if err := json.Unmarshal(x.head, &head); err != nil {
		return nil, fmt.Errorf("stored artifact: %w", err)
	}
	return join(&head, known.a)
}

// keepArtifact caches an artifact for the next reader in this replica.
func (s *Store) keepArtifact(k rowKey, x *groupArtifact) {
	if x.now != nil {
		s.keptArtifacts.Set(k, &keptArtifact{version: x.version, body: x.body, a: x.now})
	}
}

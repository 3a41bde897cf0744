package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// groupEvidence is the evidence of a method in a transaction that has locked it.
type groupEvidence struct {
	now     agent.MethodEvidence
	stored  bool
	version int64
	revised bool

	wasVersion int64 // version in the database
}

// keptEvidence is evidence as this replica last read or wrote it.
type keptEvidence struct {
	version int64
	m       agent.MethodEvidence
}

func (x *groupEvidence) change(do func(*agent.MethodEvidence)) {
	do(&x.now)
	x.revised = true
}

// evidenceOf returns the evidence of the method and adds an empty one if there is none.
func (g *group) evidenceOf(k rowKey, role, method string) *groupEvidence {
	if g.evidence[k] == nil {
		g.evidence[k] = &groupEvidence{now: agent.MethodEvidence{Role: role, Method: method}}
	}
	return g.evidence[k]
}

// queueEvidence queues a query that locks and reads the evidence of the methods, and of the methods called below the
// roots.
func (g *group) queueEvidence(b *pgx.Batch, methods, roots []rowKey) {
	var own, below columns
	for _, k := range methods {
		var version int64
		if kept, ok := g.store.keptEvidence.GetIfPresent(k); ok {
			version = kept.version
			g.knownEvidence[k] = kept
		}
		own.addKey(k, version)
	}
	for _, k := range roots {
		below.addKey(k, 0)
	}
	if len(roots) > 0 {
		b.Queue("SELECT DISTINCT c.ns, c.root, c.role, c.method FROM calls c JOIN unnest($1::int8[], $2::text[]) AS k(ns, root) USING (ns, root)", below.ns, below.a).Query(g.readRoots)
	}
	b.Queue(`SELECT e.ns, e.role, e.method, e.version, CASE WHEN e.version <> k.version THEN e.doc END FROM evidence e JOIN (
			SELECT ns, role, method, max(version) AS version FROM (
				SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[]) AS k(ns, role, method, version)
				UNION ALL SELECT c.ns, c.role, c.method, 0 FROM calls c JOIN unnest($5::int8[], $6::text[]) AS r(ns, root) USING (ns, root)) AS wanted
			GROUP BY ns, role, method) AS k USING (ns, role, method)
		ORDER BY e.ns, e.role, e.method FOR UPDATE OF e`, own.ns, own.a, own.b, own.versions, below.ns, below.a).Query(g.readEvidence)
}

// readRoots records which methods were called below each root.
func (g *group) readRoots(rows pgx.Rows) error {
	for rows.Next() {
		var root, method rowKey
		if err := rows.Scan(&root.ns, &root.a, &method.a, &method.b); err != nil {
			return err
		}
		method.ns = root.ns
		g.roots[root] = append(g.roots[root], method)
	}
	return rows.Err()
}

// readEvidence reads evidence, from the cache if its version is current.
func (g *group) readEvidence(rows pgx.Rows) error {
	for rows.Next() {
		var k rowKey
		var doc []byte
		x := &groupEvidence{stored: true}
		if err := rows.Scan(&k.ns, &k.a, &k.b, &x.version, &doc); err != nil {
			return err
		}
		if kept := g.knownEvidence[k]; kept != nil && kept.version == x.version {
			x.now = kept.m
		} else if doc == nil {
			return fmt.Errorf("the evidence of a method is missing")
		} else if err := json.Unmarshal(doc, &x.now); err != nil {
			return fmt.Errorf("stored evidence: %w", err)
		}
		x.wasVersion = x.version
		g.evidence[k] = x
	}
	return rows.Err()
}

// writeEvidence queues the changed evidence.
func (g *group) writeEvidence(b *pgx.Batch) error {
	var made, revised columns
	for _, k := range sortedKeys(g.evidence) {
		x := g.evidence[k]
		if !x.revised {
			continue
		}
		doc, err := json.Marshal(&x.now)
		if err != nil {
			return err
		}
		rows := &revised
		if !x.stored {
			rows = &made
		}
		x.version = newVersion()
		rows.add(k, doc)
		rows.were = append(rows.were, x.wasVersion)
		rows.versions, rows.states = append(rows.versions, x.version), append(rows.states, key(x.now.Last))
		rows.bodies = append(rows.bodies, int64(len(x.now.Notes)+len(x.now.Plain)))
		rows.flags = append(rows.flags, len(x.now.Notes) > 0 || x.now.Judged)
	}
	if x := &made; len(x.ns) > 0 {
		b.Queue(`INSERT INTO evidence (ns, role, method, version, last, weight, remarkable, doc)
			SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[], $5::text[], $6::int8[], $7::bool[], $8::bytea[])`, x.ns, x.a, x.b, x.versions, x.states, x.bodies, x.flags, x.docs)
	}
	if x := &revised; len(x.ns) > 0 {
		b.Queue(`WITH done AS (UPDATE evidence e SET version = k.version, last = k.last, weight = k.weight, remarkable = k.remarkable, doc = k.doc
				FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[], $5::text[], $6::int8[], $7::bool[], $8::bytea[], $9::int8[])
				AS k(ns, role, method, version, last, weight, remarkable, doc, was)
				WHERE (e.ns, e.role, e.method, e.version) = (k.ns, k.role, k.method, k.was) RETURNING 1)
			SELECT expect(count(*), $10) FROM done`, x.ns, x.a, x.b, x.versions, x.states, x.bodies, x.flags, x.docs, x.were, len(x.ns))
	}
	return nil
}

// keepEvidence caches evidence for the next transaction of this replica.
func (s *Store) keepEvidence(k rowKey, x *groupEvidence) {
	s.keptEvidence.Set(k, &keptEvidence{version: x.version, m: x.now})
}

// judge records that people have given verdicts on calls of these methods.
func (c *change) judge(ctx context.Context, artifacts map[rowKey]*agent.Artifact) error {
	if len(artifacts) == 0 {
		return nil
	}
	g, b := newGroup(c.n.store, nil), &pgx.Batch{}
	g.queueEvidence(b, sortedKeys(artifacts), nil)
	if err := c.send(ctx, b); err != nil {
		return err
	}
	for k, a := range artifacts {
		if x := g.evidenceOf(k, a.Role, a.MethodName); !x.now.Judged {
			x.change(func(m *agent.MethodEvidence) { m.Judged = true })
		}
	}
	b = &pgx.Batch{}
	if err := g.writeEvidence(b); err != nil {
		return err
	}
	return c.send(ctx, b)
}

package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
)

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

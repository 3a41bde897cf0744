package postgres

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// groupArtifact is an artifact in a transaction that has locked it.
type groupArtifact struct {
	was, now         *agent.Artifact // nil if there is none
	stored           bool            // the database has a row for it
	version, body    int64
	wasVersion       int64 // version in the database
	revised, newBody bool  // parts to be written
	operated         bool  // sets store.Change.Operated
}

// keptArtifact is an artifact as this replica last read or wrote it. It is valid as long as the row has that version.
type keptArtifact struct {
	version, body int64
	a             *agent.Artifact
}

// compareRows orders keys as PostgreSQL does in key columns, which have the collation "C".
func compareRows(x, y rowKey) int {
	return cmp.Or(cmp.Compare(x.ns, y.ns), strings.Compare(x.a, y.a), strings.Compare(x.b, y.b))
}

// newVersion returns a random version for a row that is written. Versions are unique, so a version identifies a write
// by any replica.
func newVersion() int64 { return 1 + rand.Int64N(math.MaxInt64) }

// artifact returns the artifact in its current state in the group, or nil.
func (g *group) artifact(k rowKey) *agent.Artifact {
	if x := g.artifacts[k]; x != nil {
		return x.now
	}
	return nil
}

// changedArtifact is an artifact after changes of a call.
type changedArtifact struct {
	key rowKey
	a   *agent.Artifact
}

// changeArtifacts returns the artifacts after each of the changes, in order. It does not change the group.
func (g *group) changeArtifacts(ns int64, changes []agent.ArtifactChange) (out []changedArtifact) {
	for i := range changes {
		c := changes[i]
		k := methodKey(ns, c.Role, c.MethodName)
		old := g.artifactAfter(out, k)
		if old == nil && !c.Creates() {
			continue // deleted meanwhile, so there is nothing to count
		}
		out = append(out, changedArtifact{k, old.Apply(c)})
	}
	return out
}

// artifactAfter returns the artifact after these changes.
func (g *group) artifactAfter(changed []changedArtifact, k rowKey) *agent.Artifact {
	for _, x := range slices.Backward(changed) {
		if x.key == k {
			return x.a
		}
	}
	return g.artifact(k)
}

// keep puts the changed artifacts into the group.
func (g *group) keep(changed []changedArtifact) {
	for _, x := range changed {
		row := g.artifacts[x.key]
		if row == nil {
			row = &groupArtifact{}
			g.artifacts[x.key] = row
		}
		row.set(x.a)
	}
}

// sortedKeys returns the keys in the order in which rows are locked and written.
func sortedKeys[V any](m map[rowKey]V) []rowKey {
	out := make([]rowKey, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, compareRows)
	return out
}

// writeArtifacts queues the changed artifacts. Bodies and programs are written only if they are new. A new artifact is
// inserted without ON CONFLICT: if another replica has created it meanwhile, the transaction fails and is retried with
// the new state.
func writeArtifacts(b *pgx.Batch, artifacts map[rowKey]*groupArtifact) error {
	var made, revised, bodies, programs columns
	var bytes toolBytes
	for _, k := range sortedKeys(artifacts) {
		x := artifacts[k]
		if !x.revised {
			continue
		}
		head, err := json.Marshal(headOf(x.now))
		if err != nil {
			return err
		}
		x.version = newVersion()
		if x.newBody {
			x.body = newVersion()
			body, err := json.Marshal(bodyOf(x.now))
			if err != nil {
				return err
			}
			bodies.add(k, body)
			bytes.add(k, func(add func(string, store.Bytes)) { store.ArtifactBytes(x.now, add) })
			for _, p := range x.now.Generations {
				programs.add(rowKey{k.ns, key(p.CodeChecksum), ""}, []byte(p.Code))
			}
		}
		heads := &revised
		if !x.stored {
			heads = &made
		}
		heads.add(k, head)
		heads.were = append(heads.were, x.wasVersion)
		heads.versions, heads.bodies, heads.states = append(heads.versions, x.version), append(heads.bodies, x.body),
			append(heads.states, key(x.now.LifecycleState))
	}
	if x := &made; len(x.ns) > 0 {
		b.Queue(`INSERT INTO artifacts (ns, role, method, version, body_version, state, head)
			SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[], $5::int8[], $6::text[], $7::bytea[])`, x.ns, x.a, x.b, x.versions, x.bodies, x.states, x.docs)
	}
	if x := &revised; len(x.ns) > 0 {
		b.Queue(`WITH done AS (UPDATE artifacts a SET version = k.version, body_version = k.body_version, state = k.state, head = k.head
				FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[], $5::int8[], $6::text[], $7::bytea[], $8::int8[]) AS k(ns, role, method, version, body_version, state, head, was)
				WHERE (a.ns, a.role, a.method, a.version) = (k.ns, k.role, k.method, k.was) RETURNING 1)
			SELECT expect(count(*), $9) FROM done`, x.ns, x.a, x.b, x.versions, x.bodies, x.states, x.docs, x.were, len(x.ns))
	}
	if x := &bodies; len(x.ns) > 0 {
		b.Queue(`INSERT INTO artifact_bodies (ns, role, method, body) SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::bytea[])
			ON CONFLICT (ns, role, method) DO UPDATE SET body = excluded.body`, x.ns, x.a, x.b, x.docs)
		b.Queue(`INSERT INTO programs (ns, checksum, code) SELECT DISTINCT ON (ns, checksum) * FROM unnest($1::int8[], $2::text[], $3::bytea[]) AS p(ns, checksum, code)
			ORDER BY ns, checksum ON CONFLICT (ns, checksum) DO UPDATE SET unreferenced = NULL WHERE programs.unreferenced IS NOT NULL`, programs.ns, programs.a, programs.docs)
		bytes.queue(b)
	}
	return nil
}

// columns hold rows as one slice per column, for unnest.
type columns struct {
	ns               []int64
	a, b             []string
	docs             [][]byte
	versions, bodies []int64
	were             []int64 // previous versions
	states           []string
	flags            []bool
}

func (c *columns) add(k rowKey, doc []byte) {
	c.ns, c.a, c.b, c.docs = append(c.ns, k.ns), append(c.a, k.a), append(c.b, k.b), append(c.docs, doc)
}

// addKey adds a row to look up, with the version that this replica has cached; 0 means none.
func (c *columns) addKey(k rowKey, version int64) {
	c.ns, c.a, c.b, c.versions = append(c.ns, k.ns), append(c.a, k.a), append(c.b, k.b), append(c.versions, version)
}

package postgres

import (
	"cmp"
	"context"
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

// roles returns the roles whose ranks the calls may change. The value is true for roles that the calls may register.
func (g *group) roles() map[roleKey]bool {
	roles := map[roleKey]bool{}
	for _, w := range g.calls {
		ns := w.n.id.Load()
		for i := range w.c.Artifacts {
			if k := (roleKey{ns, w.c.Artifacts[i].Role}); !roles[k] {
				roles[k] = false // its rank is locked in any case
			}
		}
		for i := range w.c.Tools {
			k := roleKey{ns, w.c.Tools[i].Role}
			roles[k] = roles[k] || w.c.Tools[i].Register != nil
		}
	}
	return roles
}

// setTool sets a tool as it is in the database.
func (g *group) setTool(k roleKey, t *agent.Tool) { g.tools[k], g.toolsWere[k] = t, t }

// changeTools applies a call's changes to the tools.
func (g *group) changeTools(ns int64, changes []store.ToolChange) {
	for i := range changes {
		c := &changes[i]
		k := roleKey{ns, c.Role}
		old := g.tools[k]
		next, ok := c.Apply(old)
		if !ok {
			continue
		}
		use := old != nil && (c.Register == nil || c.IfAbsent)
		if was, seen := g.toolUses[k]; seen {
			use = use && was
		}
		g.tools[k], g.toolUses[k] = next, use
	}
}

// writeTools queues the changed tools, and the ranks that follow from them and from the artifacts.
func (g *group) writeTools(b *pgx.Batch) error {
	ranks := rankChanges{}
	for k := range g.toolUses {
		ranks.tool(k.ns, g.tools[k])
	}
	for k, x := range g.artifacts {
		if x.revised {
			ranks.artifact(k.ns, x.now.Role, x.was, x.now)
		}
	}
	ranks.queue(b, g.store.o.Now())
	return g.queueTools(b)
}

// queueTools queues the changed tools. Changes by use are written as differences, because other replicas use the same
// tools at the same time.
func (g *group) queueTools(b *pgx.Batch) error {
	var c columns
	var revisions, uses []int64
	var last []string
	for _, k := range sortedRoles(g.toolUses) {
		t, was := g.tools[k], g.toolsWere[k]
		if !g.toolUses[k] {
			if err := queueTool(b, k.ns, t); err != nil {
				return err
			}
			continue
		}
		c.addKey(rowKey{ns: k.ns, a: key(k.role)}, 0)
		revisions, uses, last = append(revisions, t.Revision-was.Revision), append(uses, t.UsageCount-was.UsageCount),
			append(last, usedAt(t))
	}
	if len(last) > 0 {
		b.Queue(`WITH done AS (UPDATE tools t SET revision = t.revision + k.revisions, usage_count = t.usage_count + k.uses,
				last_used = CASE WHEN t.last_used::timestamptz <= k.last_used::timestamptz THEN k.last_used ELSE t.last_used END
				FROM unnest($1::int8[], $2::text[], $3::int8[], $4::int8[], $5::text[]) AS k(ns, role, revisions, uses, last_used) WHERE (t.ns, t.role) = (k.ns, k.role) RETURNING 1)
			SELECT expect(count(*), $6) FROM done`, c.ns, c.a, revisions, uses, last, len(last))
	}
	return nil
}

// writeSpending queues the calls' counts for the rows of their days.
func (g *group) writeSpending(b *pgx.Batch) {
	rows := map[spendKey]*agent.SpendRow{}
	for _, x := range g.rows {
		e := x.log
		if e.CallID == "" {
			continue
		}
		r := agent.SpendRow{Day: agent.DayOf(x.w.now), Role: e.Role, Method: e.Method, Owner: agent.OwnerOf(e)}
		k := spendKeyOf(x.ns, &r)
		if rows[k] == nil {
			rows[k] = &r
		}
		rows[k].Calls++
		if e.ArtifactHit && e.OutcomeStatus == agent.StatusOK {
			rows[k].Warm++
		}
	}
	sorted := make([]spendKey, 0, len(rows))
	for k := range rows {
		sorted = append(sorted, k)
	}
	slices.SortFunc(sorted, func(x, y spendKey) int {
		return cmp.Or(cmp.Compare(x.ns, y.ns), cmp.Compare(x.day, y.day), cmp.Compare(x.hash, y.hash))
	})
	var c columns
	var days, calls, warm []int64
	var roles, methods, owners [][]byte
	for _, k := range sorted {
		r := rows[k]
		c.addKey(rowKey{ns: k.ns, a: k.hash}, 0)
		days, calls, warm = append(days, int64(k.day)), append(calls, r.Calls), append(warm, r.Warm)
		roles, methods, owners = append(roles, []byte(r.Role)), append(methods, []byte(r.Method)),
			append(owners, []byte(r.Owner))
	}
	if len(days) > 0 {
		b.Queue(`INSERT INTO spend_rows AS r (ns, day, hash, calls, warm, role, method, owner)
			SELECT * FROM unnest($1::int8[], $2::int8[], $3::text[], $4::int8[], $5::int8[], $6::bytea[], $7::bytea[], $8::bytea[])
			ON CONFLICT (ns, day, hash) DO UPDATE SET calls = r.calls + excluded.calls, warm = r.warm + excluded.warm`, c.ns, days, c.a, calls, warm, roles, methods, owners)
	}
}

// countForges adds the programs that the calls keep to the rows of forges.
func (g *group) countForges(ctx context.Context, tx groupConn) error {
	for _, x := range g.rows {
		for i := range x.w.c.Artifacts {
			c := &x.w.c.Artifacts[i]
			if p := c.Generation; p == nil || p.ForgeUsage.ModelRequests <= 0 || x.log.CallID == "" {
				continue
			}
			if err := countForge(ctx, tx, x.ns, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// countForge counts one program. It takes its own round trips, because programs are rare compared with calls.
func countForge(ctx context.Context, tx groupConn, ns int64, c *agent.ArtifactChange) error {
	hash := rowHash(c.Role, c.MethodName, c.Generation.Model)
	var doc []byte
	// DO UPDATE locks an existing row and returns it. A new row holds null.
	if err := tx.QueryRow(ctx,
		`INSERT INTO spend_forges AS f (ns, hash, doc) VALUES ($1, $2, 'null') ON CONFLICT (ns, hash) DO UPDATE SET doc = f.doc RETURNING doc`,
		ns, hash).Scan(&doc); err != nil {
		return err
	}
	var row *agent.ForgeRow
	if err := json.Unmarshal(doc, &row); err != nil {
		return err
	}
	var before store.Spent
	if row != nil {
		before.Forges = []agent.ForgeRow{*row}
	}
	ledger := store.NewLedger(before)
	ledger.Call(0, &agent.LogEntry{}, []agent.ArtifactChange{*c})
	doc, err := json.Marshal(ledger.Spent(0, 0).Forges[0])
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE spend_forges SET doc = $3 WHERE ns = $1 AND hash = $2", ns, hash, doc)
	return err
}

// A group can be committed from this replica's caches instead of reads from the database. Then the whole transaction is
// sent at once, and rows are locked only when they are written. Each write names the version that it is based on. If
// that version is outdated, the transaction fails without a change, and run retries the group.

// runKnown commits the group from the caches. It returns false, without having done anything, if they do not suffice.
func (g *group) runKnown(ctx context.Context, tx groupConn) (bool, error) {
	if !g.recall() {
		return false, nil
	}
	for _, w := range g.calls {
		if w.err = g.apply(w); w.err != nil {
			return false, nil // the reason may be outdated, so run decides
		}
	}
	if !g.checked() {
		return false, nil
	}
	b, spaces := &pgx.Batch{}, make([]int64, 0, len(g.spaces))
	for ns := range g.spaces {
		spaces = append(spaces, ns)
	}
	begin(b, spaces)
	// expect fails the transaction if a namespace was erased or a policy has changed.
	b.Queue("WITH due AS ("+dueSpaces+") SELECT expect(count(*), $2) FROM namespaces WHERE id = ANY($1::int8[])",
		spaces, len(spaces))
	for _, ns := range g.limited() {
		b.Queue("SELECT expect(coalesce(max(revision), 0), $2) FROM policies WHERE ns = $1", ns,
			g.policies[ns].revision)
	}
	g.known = true
	return true, g.finish(ctx, tx, b)
}

// recall loads what the calls need from the caches, and reports whether all of it was there.
func (g *group) recall() bool {
	for _, w := range g.calls {
		if w.c.Log.UserCorrectionReferenceCallID != "" || forges(w.c) {
			return false // these change rows that are not cached
		}
	}
	spaces, _, sessions, artifacts, evidence, _ := g.needs()
	for _, ns := range spaces {
		g.spaces[ns] = true
	}
	for i, ns := range sessions.ns {
		k := rowKey{ns: ns, a: sessions.a[i]}
		s, ok := g.store.keptSessions.GetIfPresent(k)
		if !ok {
			return false
		}
		g.sessions[k] = &groupSession{keptSession: s, was: s}
	}
	for _, k := range artifacts {
		x, ok := g.store.keptArtifacts.GetIfPresent(k)
		if !ok {
			return false
		}
		g.artifacts[k] = &groupArtifact{was: x.a, now: x.a, stored: true, wasVersion: x.version, version: x.version,
			body: x.body}
	}
	for _, k := range evidence {
		x, ok := g.store.keptEvidence.GetIfPresent(k)
		if !ok {
			return false
		}
		g.evidence[k] = &groupEvidence{now: x.m, stored: true, wasVersion: x.version, version: x.version}
	}
	for _, w := range g.calls {
		for i := range w.c.Tools {
			k := roleKey{w.n.id.Load(), w.c.Tools[i].Role}
			t, ok := g.store.keptTools.GetIfPresent(k)
			if !ok {
				return false
			}
			g.setTool(k, t)
		}
	}
	for _, ns := range g.limited() {
		p, ok := g.store.keptPolicies.GetIfPresent(ns)
		if !ok {
			return false
		}
		g.policies[ns] = p
	}
	return true
}

// checked reports whether every row that the calls depend on is written, and thus compared with its version. Tools are
// an exception, because their counts are only added to.
func (g *group) checked() bool {
	for _, s := range g.sessions {
		if s.changes == 0 {
			return false
		}
	}
	for _, x := range g.artifacts {
		if !x.revised || !x.stored {
			return false
		}
	}
	for _, x := range g.evidence {
		if !x.stored {
			return false
		}
	}
	for _, use := range g.toolUses {
		if !use {
			return false
		}
	}
	return true
}

// forges reports whether the call keeps a program that a model wrote for it.
func forges(c *store.CallCommit) bool {
	for i := range c.Artifacts {
		if p := c.Artifacts[i].Generation; p != nil && p.ForgeUsage.ModelRequests > 0 {
			return true
		}
	}
	return false
}

// limited returns the namespaces whose calls store contents. Their policies limit how many are kept.
func (g *group) limited() (out []int64) {
	seen := map[int64]bool{}
	for _, w := range g.calls {
		if ns := w.n.id.Load(); w.c.Content != nil && !seen[ns] {
			seen[ns] = true
			out = append(out, ns)
		}
	}
	return out
}

package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// callRow is what one call adds to the tables.
type callRow struct {
	w       *waiting
	ns      int64
	log     *agent.LogEntry
	record  *agent.Record
	session *groupSession

	encodedLog, encodedRecord []byte
}

// encode encodes the log entry and the record. It fails before the group changes anything.
func (r *callRow) encode() (err error) {
	if r.log.CallID != "" {
		if r.encodedLog, err = encodeLog(r.log); err != nil {
			return err
		}
	}
	if r.record.CallID != "" {
		r.encodedRecord, err = encodeRecord(r.record)
	}
	return err
}

// write queues the changes. Rows that other transactions also change come in the order in which read locks them, by
// key. The rows of roles, which many calls share, come after all inserts, so their locks are held only briefly.
func (g *group) write(b *pgx.Batch) error {
	g.writeSessions(b)
	if err := writeArtifacts(b, g.artifacts); err != nil {
		return err
	}
	if err := g.writeEvidence(b); err != nil {
		return err
	}
	g.writeContexts(b)
	g.writeRecords(b)
	g.writeCalls(b)
	g.writeValues(b)
	g.writeFeed(b)
	if err := g.writeTools(b); err != nil {
		return err
	}
	g.writeCorrections(b)
	g.writePatterns(b)
	g.writeContents(b)
	g.writeReplies(b)
	g.writeSpending(b)
	for _, x := range g.rows {
		if err := queueFiles(b, x.ns, x.w.c.Files); err != nil {
			return err
		}
	}
	if g.repeated { // makes this commit wait for the standby, as the first one should have
		b.Queue("UPDATE era SET added = added")
	}
	return nil
}

// writeSessions queues the updates of sessions. Each names the size, epoch and owner that the call was decided on, and
// expect fails the transaction if any of them has changed.
func (g *group) writeSessions(b *pgx.Batch) {
	var c columns
	var sizes, sizesWere, epochs, changes []int64
	var owners []string
	var at []time.Time
	for _, k := range sortedKeys(g.sessions) {
		if s := g.sessions[k]; s.changes > 0 {
			c.addKey(k, 0)
			sizes, changes, at = append(sizes, int64(s.size)), append(changes, s.changes), append(at, s.at.now)
			sizesWere, epochs, owners = append(sizesWere, int64(s.was.size)), append(epochs, s.was.epoch),
				append(owners, s.was.owner)
		}
	}
	if len(sizes) > 0 {
		b.Queue(`WITH done AS (UPDATE sessions s SET history_size = k.size, revision = revision + k.changes, updated_at = k.at
				FROM unnest($1::int8[], $2::text[], $3::int8[], $4::int8[], $5::timestamptz[], $6::int8[], $7::int8[], $8::text[]) AS k(ns, id, size, changes, at, was, epoch, owner)
				WHERE (s.ns, s.id) = (k.ns, k.id) AND (s.history_size, s.epoch, s.owner) = (k.was, k.epoch, k.owner) RETURNING 1)
			SELECT expect(count(*), $9) FROM done`, c.ns, c.a, sizes, changes, at, sizesWere, epochs, owners, len(sizes))
	}
}

// writeContexts queues the calls' changes of their sessions' contexts. The sessions are locked.
func (g *group) writeContexts(b *pgx.Batch) {
	var set, dropped columns
	var names [][]byte
	for _, k := range sortedKeys(g.sessions) {
		for name, value := range g.sessions[k].context {
			if value == nil {
				dropped.addKey(rowKey{k.ns, k.a, key(name)}, 0)
				continue
			}
			set.add(rowKey{k.ns, k.a, key(name)}, value)
			names = append(names, []byte(name))
		}
	}
	if c := &set; len(c.ns) > 0 {
		b.Queue(`INSERT INTO session_context (ns, session, hash, name, value) SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::bytea[], $5::bytea[])
			ON CONFLICT (ns, session, hash) DO UPDATE SET value = excluded.value`, c.ns, c.a, c.b, names, c.docs)
	}
	if c := &dropped; len(c.ns) > 0 {
		b.Queue("DELETE FROM session_context c USING unnest($1::int8[], $2::text[], $3::text[]) AS k(ns, session, hash) WHERE (c.ns, c.session, c.hash) = (k.ns, k.session, k.hash)",
			c.ns, c.a, c.b)
	}
}

func (g *group) writeRecords(b *pgx.Batch) {
	var c columns
	var seqs, depths []int64
	var ids, roles, methods, statuses []string
	var at []*time.Time
	for _, x := range g.rows {
		r := x.record
		if r.CallID == "" {
			continue
		}
		c.add(rowKey{ns: x.ns, a: key(x.w.c.SessionID)}, x.encodedRecord)
		seqs, depths, at = append(seqs, int64(r.Seq)), append(depths, int64(r.Depth)), append(at, stamp(r.Timestamp))
		ids, roles, methods, statuses = append(ids, key(r.CallID)), append(roles, key(r.Role)),
			append(methods, key(r.MethodName)), append(statuses, key(r.OutcomeSummary.Status))
	}
	if len(seqs) > 0 {
		b.Queue(`INSERT INTO records (ns, session, seq, call_id, role, method, status, depth, at, doc)
			SELECT * FROM unnest($1::int8[], $2::text[], $3::int8[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int8[], $9::timestamptz[], $10::bytea[])`,
			c.ns, c.a, seqs, ids, roles, methods, statuses, depths, at, c.docs)
	}
}

// writeValues queues the part of each call that is kept for a limited time.
func (g *group) writeValues(b *pgx.Batch) {
	var c columns
	var sessions []string
	var at []time.Time
	var outcomes [][]byte
	var owners []*string
	var debug []int64
	for _, x := range g.rows {
		if x.log.CallID == "" || x.w.outcome == nil && x.w.c.Effects == nil {
			continue
		}
		c.add(rowKey{ns: x.ns, a: key(x.log.CallID)}, x.w.c.Effects)
		sessions, at, outcomes = append(sessions, key(x.w.c.SessionID)), append(at, x.w.now),
			append(outcomes, x.w.outcome)
		owners, debug = append(owners, x.owner(x.log)), append(debug, store.DebugBytes(x.log))
	}
	if len(at) > 0 {
		b.Queue(`INSERT INTO call_values (ns, call_id, session, at, outcome, effects, owner, debug)
			SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::timestamptz[], $5::bytea[], $6::bytea[], $7::text[], $8::int8[])`,
			c.ns, c.a, sessions, at, outcomes, c.docs, owners, debug)
	}
}

// writeCorrections records in the entries of corrected calls which call corrected them.
func (g *group) writeCorrections(b *pgx.Batch) {
	for _, x := range g.rows {
		if ref := x.log.UserCorrectionReferenceCallID; ref != "" && x.log.CallID != "" {
			queueCorrection(b, x.ns, ref, x.log.CallID, "force_generic_plan")
		}
	}
}

// queueCorrection records in the entry of call that the call by corrected it. The update needs a custom plan: a cached
// plan from a time with few calls would read all calls of the namespace. mode is the plan_cache_mode of the statements
// that follow.
func queueCorrection(b *pgx.Batch, ns int64, call, by, mode string) {
	b.Queue("SET LOCAL plan_cache_mode = force_custom_plan")
	b.Queue("UPDATE calls SET corrected_by = $3 WHERE ns = $1 AND call_id = $2", ns, key(call), key(by))
	b.Queue("SET LOCAL plan_cache_mode = " + mode)
}

// writePatterns queues the pattern events, and the removal of the oldest beyond store.PatternsKept.
func (g *group) writePatterns(b *pgx.Batch) {
	var c columns
	roles := map[rowKey]bool{}
	for _, x := range g.rows {
		if p := x.w.c.Pattern; p != nil {
			c.add(rowKey{x.ns, key(p.Role), key(p.SessionID)}, x.w.pattern)
			roles[rowKey{ns: x.ns, a: key(p.Role)}] = true
		}
	}
	if len(c.ns) == 0 {
		return
	}
	b.Queue(`INSERT INTO patterns (ns, role, session, doc) SELECT ns, role, session, doc
		FROM unnest($1::int8[], $2::text[], $3::text[], $4::bytea[]) WITH ORDINALITY AS k(ns, role, session, doc, i) ORDER BY i`, c.ns, c.a, c.b, c.docs)
	for _, k := range sortedKeys(roles) { // rows that another replica is deleting are skipped
		b.Queue(`DELETE FROM patterns WHERE (ns, role, n) IN (SELECT ns, role, n FROM patterns WHERE ns = $1 AND role = $2
			AND n <= (SELECT n FROM patterns WHERE ns = $1 AND role = $2 ORDER BY n DESC OFFSET $3 LIMIT 1) FOR UPDATE SKIP LOCKED)`, k.ns, k.a, store.PatternsKept)
	}
}

// writeReplies queues the replies with an idempotency key, in sorted order, because other transactions may write the
// same keys.
func (g *group) writeReplies(b *pgx.Batch) {
	rows := slices.DeleteFunc(slices.Clone(g.rows), func(x *callRow) bool { return x.w.c.Key == nil })
	slices.SortStableFunc(rows, func(x, y *callRow) int {
		return cmp.Or(cmp.Compare(x.ns, y.ns), cmp.Compare(x.w.c.Key.Key, y.w.c.Key.Key))
	})
	for _, x := range rows {
		k := x.w.c.Key
		b.Queue(`INSERT INTO replies (ns, key, session, at, call_id, body_hash, reply) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (ns, key) DO UPDATE SET session = excluded.session, at = excluded.at, call_id = excluded.call_id, body_hash = excluded.body_hash, reply = excluded.reply`,
			x.ns, key(k.Key), key(x.w.c.SessionID), x.w.now, []byte(k.CallID), []byte(k.BodyHash), []byte(x.w.c.Reply))
	}
}

// writeFeed queues the changes for the watchers of all replicas.
func (g *group) writeFeed(b *pgx.Batch) {
	var changes []feedRow
	for _, k := range sortedKeys(g.artifacts) {
		if x := g.artifacts[k]; x.revised {
			changes = append(changes, feedRow{ns: k.ns, change: store.Change{Namespace: g.name(k.ns),
				Kind: store.ChangedArtifact, Role: x.now.Role, Method: x.now.MethodName, Revision: x.now.Revision}})
		}
	}
	for _, k := range sortedRoles(g.toolUses) {
		changes = append(changes, feedRow{ns: k.ns, change: store.Change{Namespace: g.name(k.ns),
			Kind: store.ChangedTool, Role: k.role, Revision: g.tools[k].Revision}})
	}
	for _, x := range g.rows {
		if x.log.CallID != "" {
			changes = append(changes, feedRow{ns: x.ns, call: key(x.log.CallID),
				change: store.Change{Namespace: x.w.n.name, Kind: store.ChangedCall, CallID: x.log.CallID,
					SessionID: x.w.c.SessionID}})
		}
	}
	queueFeed(b, changes, &g.at)
}

// name returns the name of one of the group's namespaces.
func (g *group) name(ns int64) agent.Namespace {
	for _, w := range g.calls {
		if w.n.id.Load() == ns {
			return w.n.name
		}
	}
	return ""
}

// writeCalls queues the entries of the call log. An entry's place consists of the transaction id and the entry's index
// within the transaction.
func (g *group) writeCalls(b *pgx.Batch) {
	var c callColumns
	for _, x := range g.rows {
		if x.log.CallID != "" {
			c.add(x)
		}
	}
	if len(c.docs) == 0 {
		return
	}
	// This repeats the expression of call_place, because a function would be planned again each time.
	b.Queue(`INSERT INTO calls (ns, call_id, n, session, root, parent, trace, role, method, status, error_type, source, weak, history_access, debug, owner, named, at, doc)
		SELECT ns, call_id, (SELECT (pg_current_xact_id()::text::int8 + added) << 20 FROM era) + i, session, root, parent, trace, role, method, status, error_type, source, weak, history_access, debug, owner, named, at, doc
		FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
			$12::bool[], $13::bool[], $14::bool[], $15::text[], $16::bool[], $17::timestamptz[], $18::bytea[]) WITH ORDINALITY
			AS k(ns, call_id, session, root, parent, trace, role, method, status, error_type, source, weak, history_access, debug, owner, named, at, doc, i)`,
		c.ns, c.ids, c.sessions, c.roots, c.parents, c.traces, c.roles, c.methods, c.statuses, c.errors, c.sources,
		c.weak, c.history, c.debug, c.owners, c.named, c.at, c.docs)
}

// callColumns hold rows of calls as one slice per column.
type callColumns struct {
	ns                                        []int64
	ids, sessions, roots, parents, traces     []string
	roles, methods, statuses, errors, sources []string
	weak, history, debug, named               []bool
	owners                                    []*string
	at                                        []*time.Time
	docs                                      [][]byte
}

func (c *callColumns) add(x *callRow) {
	e := x.log
	c.ns, c.docs, c.at = append(c.ns, x.ns), append(c.docs, x.encodedLog), append(c.at, stamp(e.Timestamp))
	c.ids, c.sessions, c.roots = append(c.ids, key(e.CallID)), append(c.sessions, key(e.SessionID)),
		append(c.roots, key(e.RootCallID))
	c.parents, c.traces = append(c.parents, key(e.ParentCallID)), append(c.traces, key(e.TraceID))
	c.roles, c.methods, c.statuses = append(c.roles, key(e.Role)), append(c.methods, key(e.Method)),
		append(c.statuses, key(e.OutcomeStatus))
	c.errors, c.sources = append(c.errors, key(e.OutcomeErrorType)), append(c.sources, key(e.ProgramSource))
	c.weak, c.history = append(c.weak, e.WeakSuccess), append(c.history, e.HistoryAccessDetected)
	c.debug = append(c.debug, store.HoldsValues(e))
	c.named, c.owners = append(c.named, e.Owner != ""), append(c.owners, x.owner(e))
}

// owner returns the owner of the call: the one in its entry, otherwise that of its session. nil means nobody.
func (x *callRow) owner(e *agent.LogEntry) *string {
	if e.Owner != "" {
		named := key(e.Owner)
		return &named
	}
	if x.session != nil {
		return &x.session.owner
	}
	return nil
}

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

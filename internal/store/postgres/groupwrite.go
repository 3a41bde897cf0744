package postgres

import (
	"cmp"
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

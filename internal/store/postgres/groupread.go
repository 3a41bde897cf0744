package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// read locks and reads the rows that the calls change, in one round trip. Every transaction locks rows in the same
// order: sessions, artifacts, evidence, ranks of roles, each sorted by key.
func (g *group) read(ctx context.Context, tx groupConn) error {
	spaces, calls, sessions, artifacts, evidence, roots := g.needs()
	b := &pgx.Batch{}
	begin(b, spaces)
	b.Queue(heldSpaces, spaces).Query(g.readSpaces)
	b.Queue(dueSpaces, spaces)
	b.Queue(`SELECT s.ns, s.id, s.history_size, s.epoch, s.owner FROM sessions s JOIN unnest($1::int8[], $2::text[]) AS k(ns, id) USING (ns, id)
		ORDER BY s.ns, s.id FOR UPDATE OF s`, sessions.ns, sessions.a).Query(g.readSessions)
	// The range conditions imply the equality. They keep the planner from preferring another index of calls to the
	// primary key while the table is small: the plan is cached.
	b.Queue(`SELECT c.ns, c.call_id, c.doc FROM unnest($1::int8[], $2::text[]) AS k(ns, call_id) JOIN calls c
		ON (c.ns, c.call_id) >= (k.ns, k.call_id) AND (c.ns, c.call_id) <= (k.ns, k.call_id)
		AND c.call_id = k.call_id`, calls.ns, calls.a).Query(g.readCalls)
	reader := g.store.lockArtifacts(b, artifacts)
	g.queueEvidence(b, evidence, roots)
	tools := queueLockTools(b, g.roles())
	b.Queue("SELECT ns, revision, doc FROM policies WHERE ns = ANY($1::int8[])", g.limited()).Query(g.readPolicies)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	var err error
	if g.artifacts, err = reader.finish(); err != nil {
		return err
	}
	for k, t := range tools {
		g.setTool(k, t)
	}
	for k, known := range reader.known {
		g.surprised = g.surprised || g.artifacts[k] == nil || g.artifacts[k].version != known.version
	}
	for k, known := range g.knownEvidence {
		g.surprised = g.surprised || g.evidence[k] == nil || g.evidence[k].version != known.version
	}
	return nil
}

// begin queues the start of a group's transaction. It keeps the namespaces from being erased.
func begin(b *pgx.Batch, spaces []int64) {
	b.Queue("BEGIN")
	b.Queue(groupSettings)
	b.Queue(holdSpaces, spaces)
}

// groupSettings are the settings of a group's transaction. Its statements look up rows by key, in the order of the
// arguments, whatever the size of the tables. Thus a generic plan is good enough, and planning costs nothing.
const groupSettings = "SELECT set_config('idle_in_transaction_session_timeout', '" + idleLimit +
	`', true), set_config('plan_cache_mode', 'force_generic_plan', true),
	set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`

// needs lists the rows that the calls may change, each once.
func (g *group) needs() (spaces []int64, calls, sessions columns, artifacts, evidence, roots []rowKey) {
	type set = map[rowKey]bool
	ofSpace, ofCall, ofSession, ofArtifact, ofEvidence, ofRoot := map[int64]bool{}, set{}, set{}, set{}, set{}, set{}
	for _, w := range g.calls {
		c, ns := w.c, w.n.id.Load()
		ofSpace[ns] = true
		if c.SessionID != "" {
			ofSession[rowKey{ns: ns, a: key(c.SessionID)}] = true
		}
		if c.Log.CallID != "" {
			own := methodKey(ns, c.Log.Role, c.Log.Method)
			ofCall[rowKey{ns: ns, a: key(c.Log.CallID)}], ofArtifact[own] = true, true
			if c.Log.IsEvidence() {
				ofEvidence[own] = true
				if ref := c.Log.UserCorrectionReferenceCallID; ref != "" {
					ofRoot[rowKey{ns: ns, a: key(ref)}] = true
				}
			}
		}
		for i := range c.Artifacts {
			k := methodKey(ns, c.Artifacts[i].Role, c.Artifacts[i].MethodName)
			ofArtifact[k] = true
			if c.Artifacts[i].Verdict != nil {
				ofEvidence[k] = true
			}
		}
	}
	for ns := range ofSpace {
		spaces = append(spaces, ns)
	}
	for _, k := range sortedKeys(ofCall) {
		calls.addKey(k, 0)
	}
	for _, k := range sortedKeys(ofSession) {
		sessions.addKey(k, 0)
	}
	return spaces, calls, sessions, sortedKeys(ofArtifact), sortedKeys(ofEvidence), sortedKeys(ofRoot)
}

// readSpaces records which namespaces exist.
func (g *group) readSpaces(rows pgx.Rows) error {
	for rows.Next() {
		var ns int64
		if err := rows.Scan(&ns); err != nil {
			return err
		}
		g.spaces[ns] = true
	}
	return rows.Err()
}

// keptPolicy is the part of a namespace's policy that this replica caches.
type keptPolicy struct {
	revision  int64 // 0 means the default policy
	retention agent.RetentionPolicy
}

// readPolicies reads the policies. A namespace without a row has the default policy.
func (g *group) readPolicies(rows pgx.Rows) error {
	for _, ns := range g.limited() {
		g.policies[ns] = keptPolicy{retention: agent.DefaultPolicy().Retention}
	}
	for rows.Next() {
		var ns, revision int64
		var doc []byte
		if err := rows.Scan(&ns, &revision, &doc); err != nil {
			return err
		}
		p, err := decodePolicy(doc)
		if err != nil {
			return err
		}
		g.policies[ns] = keptPolicy{revision, p.Retention}
	}
	return rows.Err()
}

// readSessions reads sessions and notes whether they differ from the cached ones.
func (g *group) readSessions(rows pgx.Rows) error {
	for rows.Next() {
		var k rowKey
		var s keptSession
		if err := rows.Scan(&k.ns, &k.a, &s.size, &s.epoch, &s.owner); err != nil {
			return err
		}
		if known, ok := g.store.keptSessions.GetIfPresent(k); ok && known != s {
			g.surprised = true
		}
		g.sessions[k] = &groupSession{keptSession: s, was: s}
	}
	return rows.Err()
}

// readCalls records which calls are committed already.
func (g *group) readCalls(rows pgx.Rows) error {
	for rows.Next() {
		var k rowKey
		var doc []byte
		if err := rows.Scan(&k.ns, &k.a, &doc); err != nil {
			return err
		}
		e, err := decodeCall(doc)
		if err != nil {
			return err
		}
		g.done[k] = &e
	}
	return rows.Err()
}

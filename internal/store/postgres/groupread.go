package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// read locks and reads what the calls change, in one round trip. Rows are locked in the same order by everybody: sessions, artifacts, evidence,
// ranks of roles, each by its key.
func (g *group) read(ctx context.Context, tx groupConn) error {
	spaces, calls, sessions, artifacts, evidence, roots := g.needs()
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(groupSettings)
	b.Queue(holdSpaces, spaces)
	b.Queue(heldSpaces, spaces).Query(g.readSpaces)
	b.Queue(dueSpaces, spaces)
	b.Queue(`SELECT s.ns, s.id, s.history_size, s.epoch, s.owner FROM sessions s JOIN unnest($1::int8[], $2::text[]) AS k(ns, id) USING (ns, id)
		ORDER BY s.ns, s.id FOR UPDATE OF s`, sessions.ns, sessions.a).Query(g.readSessions)
	b.Queue("SELECT c.ns, c.call_id, c.doc FROM calls c JOIN unnest($1::int8[], $2::text[]) AS k(ns, call_id) USING (ns, call_id)", calls.ns, calls.a).Query(g.readCalls)
	reader := g.store.lockArtifacts(b, artifacts)
	g.queueEvidence(b, evidence, roots)
	g.tools = queueLockTools(b, g.roles())
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	var err error
	if g.artifacts, err = reader.finish(); err != nil {
		return err
	}
	return g.readRetention(ctx, tx)
}

// groupSettings are those of a group's transaction. Its statements look up rows by key, whatever the arguments: there is nothing to plan each time.
const groupSettings = "SELECT set_config('idle_in_transaction_session_timeout', '" + idleLimit + "', true), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true)"

// needs lists the rows that the calls may change: each once.
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

func (g *group) readSessions(rows pgx.Rows) error {
	for rows.Next() {
		var k rowKey
		s := &groupSession{}
		if err := rows.Scan(&k.ns, &k.a, &s.size, &s.epoch, &s.owner); err != nil {
			return err
		}
		g.sessions[k] = s
	}
	return rows.Err()
}

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

package postgres

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// rowKey identifies a row in a namespace: a session or a call (with an empty b), an artifact, or the evidence of a
// method. a and b are results of key.
type rowKey struct {
	ns   int64
	a, b string
}

// methodKey returns the key of an artifact or of a method's evidence.
func methodKey(ns int64, role, method string) rowKey { return rowKey{ns, key(role), key(method)} }

// group is one transaction that commits calls. It reads and locks the rows that the calls change, applies one call
// after another in memory, and writes the rows back.
type group struct {
	store *Store
	calls []*waiting

	spaces    map[int64]bool             // namespaces that exist
	done      map[rowKey]*agent.LogEntry // committed calls, by call id
	sessions  map[rowKey]*groupSession
	artifacts map[rowKey]*groupArtifact
	evidence  map[rowKey]*groupEvidence
	tools     map[roleKey]*agent.Tool
	toolsWere map[roleKey]*agent.Tool // as in the database
	toolUses  map[roleKey]bool        // changed tools; true if only their use changed
	roots     map[rowKey][]rowKey     // methods called below a corrected call
	repeated  bool                    // a call of the group was committed before
	rows      []*callRow              // one for each call, with the rows to insert

	at            feedPlace // place of the last change in the feed
	knownEvidence map[rowKey]*keptEvidence
	policies      map[int64]keptPolicy // of the namespaces whose calls leave contents
	surprised     bool                 // a row was not as this replica had cached it
	known         bool                 // the group was committed without reads
}

// keptSession is the part of a session that commits depend on, as this replica last read or wrote it.
type keptSession struct {
	size  int
	epoch int64 // sessions.epoch, compared with CallCommit.Fence
	owner string
}

// groupSession is a session in a group's transaction.
type groupSession struct {
	keptSession
	was     keptSession                // as in the database
	changes int64                      // number of calls that changed it
	at      *waiting                   // the last call that changed it
	context map[string]json.RawMessage // values set by the calls; nil deletes
}

// newGroup returns a group without any rows. It resets the results of an earlier attempt in the calls.
func newGroup(s *Store, calls []*waiting) *group {
	for _, w := range calls {
		w.err, w.log = nil, nil
	}
	return &group{store: s, calls: calls, spaces: map[int64]bool{}, done: map[rowKey]*agent.LogEntry{},
		sessions:  map[rowKey]*groupSession{},
		artifacts: map[rowKey]*groupArtifact{}, evidence: map[rowKey]*groupEvidence{}, tools: map[roleKey]*agent.Tool{},
		toolsWere: map[roleKey]*agent.Tool{}, toolUses: map[roleKey]bool{},
		roots: map[rowKey][]rowKey{}, knownEvidence: map[rowKey]*keptEvidence{}, policies: map[int64]keptPolicy{}}
}

// groupConn is the connection of a group. Its transaction begins with the first batch and ends with the last, so it
// takes two round trips.
type groupConn interface {
	batcher
	rower
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// run commits the group in a transaction that first locks and reads the rows that the calls change.
func (g *group) run(ctx context.Context, tx groupConn) error {
	if err := g.read(ctx, tx); err != nil {
		return err
	}
	for _, w := range g.calls {
		w.err = g.apply(w)
	}
	if err := g.countForges(ctx, tx); err != nil {
		return err
	}
	return g.finish(ctx, tx, &pgx.Batch{})
}

// finish appends the changes to the batch, sends it and commits.
func (g *group) finish(ctx context.Context, tx groupConn, b *pgx.Batch) error {
	if err := g.write(b); err != nil {
		return err
	}
	b.Queue("COMMIT")
	return tx.SendBatch(ctx, b).Close()
}

// apply applies a call to the rows in memory, completely or not at all.
func (g *group) apply(w *waiting) error {
	c, ns := w.c, w.n.id.Load()
	id := rowKey{ns: ns, a: key(c.Log.CallID)}
	// Already committed: the call gets what was assigned then.
	if was := g.done[id]; was != nil && c.Log.CallID != "" {
		w.log, g.repeated = was, true
		return nil
	}
	// The namespace was erased after the call was queued.
	if !g.spaces[ns] {
		g.store.dropSpace(w.n)
		return errErased
	}
	s := g.sessions[rowKey{ns: ns, a: key(c.SessionID)}]
	if err := g.refuse(w, s); err != nil {
		return err
	}
	log, record := c.Log, c.Record
	if record.CallID != "" {
		record.Seq = s.size + 1
		log.ConversationHistorySize = record.Seq
	}
	changed := g.changeArtifacts(ns, c.Artifacts)
	store.FillLog(&log, g.artifactAfter(changed, methodKey(ns, log.Role, log.Method)))
	row := &callRow{w: w, ns: ns, log: &log, record: &record, session: s}
	if err := row.encode(); err != nil {
		return err
	}
	// Nothing fails from here on.
	g.keep(changed)
	g.changeTools(ns, c.Tools)
	g.addSession(row)
	if log.CallID != "" {
		g.done[id] = &log
		g.note(ns, &log, c.Artifacts)
	}
	g.rows = append(g.rows, row)
	w.log = &log
	return nil
}

// refuse returns the reason why the call cannot be committed, or nil.
func (g *group) refuse(w *waiting, s *groupSession) error {
	c := w.c
	if c.Fence != 0 && (s == nil || s.epoch != c.Fence) {
		return store.ErrFenced
	}
	if s == nil && (c.Record.CallID != "" || !c.Context.Empty()) {
		return store.ErrNotFound
	}
	if slices.ContainsFunc(c.Artifacts, func(x agent.ArtifactChange) bool {
		return x.Conflicts(g.artifact(methodKey(w.n.id.Load(), x.Role, x.MethodName)))
	}) {
		return store.ErrConflict
	}
	return nil
}

// addSession applies a call to its session.
func (g *group) addSession(r *callRow) {
	if r.session == nil || r.record.CallID == "" && r.w.c.Context.Empty() {
		return
	}
	s := r.session
	s.changes++
	s.at = r.w
	if r.record.CallID != "" {
		s.size++
	}
	if c := r.w.c.Context; c != nil {
		if s.context == nil {
			s.context = map[string]json.RawMessage{}
		}
		for name, value := range c.Set {
			s.context[name] = value
		}
		for _, name := range c.Delete {
			s.context[name] = nil
		}
	}
}

// note adds the call to the evidence of its method, and its correction to the evidence of the methods below the
// corrected call.
func (g *group) note(ns int64, e *agent.LogEntry, changes []agent.ArtifactChange) {
	if e.IsEvidence() {
		own := methodKey(ns, e.Role, e.Method)
		if ref := e.UserCorrectionReferenceCallID; ref != "" {
			below := append([]rowKey{own}, g.roots[rowKey{ns: ns, a: key(ref)}]...)
			slices.SortFunc(below, compareRows)
			for _, k := range slices.Compact(below) {
				if x := g.evidence[k]; x != nil {
					x.change(func(m *agent.MethodEvidence) { m.Correct(ref, e.CallID, e.Timestamp) })
				}
			}
		}
		g.evidenceOf(own, e.Role, e.Method).change(func(m *agent.MethodEvidence) { m.Add(e) })
		if e.RootCallID != "" {
			root := rowKey{ns: ns, a: key(e.RootCallID)}
			g.roots[root] = append(g.roots[root], own)
		}
	}
	for i := range changes {
		if x := &changes[i]; x.Verdict != nil {
			g.evidenceOf(methodKey(ns, x.Role, x.MethodName), x.Role,
				x.MethodName).change(func(m *agent.MethodEvidence) { m.Judged = true })
		}
	}
}

// committed makes what the transaction wrote visible to this replica's readers: it updates the caches.
func (g *group) committed() {
	for k, a := range g.artifacts {
		g.store.keepArtifact(k, a)
	}
	for k, e := range g.evidence {
		g.store.keepEvidence(k, e)
	}
	for k, s := range g.sessions {
		g.store.keptSessions.Set(k, s.keptSession)
	}
	for k, t := range g.tools {
		g.store.keptTools.Set(k, t)
	}
	for k, p := range g.policies {
		g.store.keptPolicies.Set(k, p)
	}
	g.store.commits.calls.Add(int64(len(g.rows)))
	g.store.commits.transactions.Add(1)
	if g.known {
		g.store.commits.known.Add(1)
	}
	g.store.hint()
}

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

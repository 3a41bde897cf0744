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

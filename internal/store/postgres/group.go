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

// rowKey names a row below a namespace: a session or a call (b is ""), an artifact or the evidence of a method. a and b are made by key.
type rowKey struct {
	ns   int64
	a, b string
}

func methodKey(ns int64, role, method string) rowKey { return rowKey{ns, key(role), key(method)} }

// group is one transaction that commits calls: it reads and locks what they change, changes it in memory call by call, and writes it.
type group struct {
	store *Store
	calls []*waiting

	spaces    map[int64]bool // those that are there
	done      map[rowKey]*agent.LogEntry
	sessions  map[rowKey]*groupSession
	artifacts map[rowKey]*groupArtifact
	evidence  map[rowKey]*groupEvidence
	tools     map[roleKey]*agent.Tool
	toolsWere map[roleKey]*agent.Tool // in the database
	toolUses  map[roleKey]bool        // the tools that changed; true where only their use did
	roots     map[rowKey][]rowKey     // the methods that were called below a corrected call
	repeated  bool                    // a call was committed before
	rows      []*callRow              // what the calls add

	at            feedPlace // of the last change
	knownEvidence map[rowKey]*keptEvidence
	policies      map[int64]keptPolicy // of the namespaces whose calls leave contents
	surprised     bool                 // something is not as this replica knew it
	known         bool                 // nothing was asked for
}

// keptSession is of a session what a call's commit goes by, as this replica read or wrote it last.
type keptSession struct {
	size  int
	epoch int64
	owner string
}

type groupSession struct {
	keptSession
	was     keptSession // in the database
	changes int64       // calls that changed it
	at      *waiting
	context map[string]json.RawMessage // what they set; nil deletes
}

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

// groupConn is the connection of a group. Its transaction begins with the first batch and ends with the last, so that it takes two round trips.
type groupConn interface {
	batcher
	rower
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// run does all of it in a transaction that reads, under locks, what the calls change.
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

// finish writes the changes behind what the batch has, and commits.
func (g *group) finish(ctx context.Context, tx groupConn, b *pgx.Batch) error {
	if err := g.write(b); err != nil {
		return err
	}
	b.Queue("COMMIT")
	return tx.SendBatch(ctx, b).Close()
}

// apply changes what the group has read as the call does, all of it or nothing.
func (g *group) apply(w *waiting) error {
	c, ns := w.c, w.n.id.Load()
	id := rowKey{ns: ns, a: key(c.Log.CallID)}
	if was := g.done[id]; was != nil && c.Log.CallID != "" {
		w.log, g.repeated = was, true
		return nil
	}
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

// refuse returns why the call cannot be committed.
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

// addSession takes what a call adds to its session.
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

// note adds the call to the evidence of its method, and to that of the methods below the call that it corrects.
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

// committed shows what the transaction wrote to this replica's readers.
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

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/store"
)

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

package proof

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
)

// GuardFor returns the guard that holds a run of the method to its manifest, or nil if the policy does not enforce
// manifests. A method has no manifest before its first ok call, and then guard returns nil as well.
func GuardFor(c *call.Selection) *attempt.Guard {
	if c.Policy.Effects != agent.EffectsEnforce || c.Artifact == nil || c.Artifact.Manifest == nil {
		return nil
	}
	return &attempt.Guard{Role: c.Role, Method: c.Method, Manifest: c.Artifact.Manifest}
}

// A Reach describes how far the serving program reaches: the manifest of its method, the effects of its runs, and the
// names in its text.
type Reach struct {
	Manifest agent.Manifest
	Program  agent.Effects // "*" stands for names that it computes
}

// asksApproval reports whether a successor of the generation needs approval if it reaches further. A program for a
// single call, as a switch or the method demands it, has no predecessor in this sense.
func asksApproval(c *call.Selection, predecessor *agent.Generation) bool {
	return c.Policy.NewReach == agent.ReachAsk && predecessor != nil && c.Artifact != nil && !c.Alone()
}

// ReachBefore returns the reach of the generation, or nil if wider reach needs no approval. If the generation itself
// waits for approval, its nearest approved ancestor counts instead.
func ReachBefore(ctx context.Context, c *call.Selection, g *agent.Generation) *Reach {
	if !asksApproval(c, g) {
		return nil
	}
	for left := len(c.Artifact.Generations); g != nil && c.Artifact.AwaitsReach(g) && g.ParentID != nil &&
		left > 0; left-- {
		g = c.Artifact.Find(*g.ParentID)
	}
	b := &Reach{Program: c.Reached}
	if m := c.Artifact.Manifest; m != nil {
		b.Manifest = *m
	}
	if g == nil {
		return b
	}
	named := g.Named()
	// earlier versions stored fewer of the names
	if facts, refused := c.Env.Sandbox.Load(ctx, attempt.ProgramOf(g), c.Env.Owner(c.Owner)); refused == nil {
		found := agent.NamedIn(facts.Hosts, facts.Writes, facts.Tools)
		named = named.With(&found)
	}
	b.Program = b.Program.With(g.Reach())
	b.Program = b.Program.With(&named)
	return b
}

// Beyond returns the names in the program's text that exceed the reach. It returns nil if there are none, or if b is
// nil.
func (b *Reach) Beyond(g *agent.Generation) *agent.Effects {
	if b == nil {
		return nil
	}
	named := g.Named()
	return b.Manifest.Beyond(&b.Program, &named)
}

// all returns the whole reach as a manifest that a run can be held to. Reading needs no approval, so it allows GET and
// HEAD.
func (b *Reach) all() *agent.Manifest {
	all := b.Manifest.With(&b.Program)
	all = all.With(&agent.Effects{Methods: []string{"GET", "HEAD"}})
	return &agent.Manifest{Effects: all}
}

// GuardOfCandidate returns the guard for a run of the candidate: the method's manifest if that is enforced, otherwise
// the predecessor's reach if wider reach needs approval. It returns nil if nothing is enforced.
func GuardOfCandidate(c *call.Selection, cand *Candidate) *attempt.Guard {
	if g := GuardFor(c); g != nil || cand.Reach == nil {
		return g
	}
	return &attempt.Guard{Role: c.Role, Method: c.Method, Manifest: cand.Reach.all()}
}

// WentBeyond records that a run of the candidate tried to exceed its predecessor's reach. It reports whether the
// candidate waits for a person.
func (cand *Candidate) WentBeyond(g *attempt.Guard) bool {
	if cand.Reach != nil && g != nil && !g.Denied.Empty() {
		denied := g.Denied
		cand.Beyond.CompareAndSwap(nil, &denied)
	}
	return cand.Beyond.Load() != nil
}

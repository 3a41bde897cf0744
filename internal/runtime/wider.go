package runtime

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
)

// guardFor returns the guard that holds a run of the method to its manifest, or nil if the policy does not enforce
// manifests. A method has no manifest before its first ok call, and then guard returns nil as well.
func guardFor(c *call.Selection) *attempt.Guard {
	if c.Policy.Effects != agent.EffectsEnforce || c.Artifact == nil || c.Artifact.Manifest == nil {
		return nil
	}
	return &attempt.Guard{Role: c.Role, Method: c.Method, Manifest: c.Artifact.Manifest}
}

// A reach describes how far the serving program reaches: the manifest of its method, the effects of its runs, and the
// names in its text.
type reach struct {
	manifest agent.Manifest
	program  agent.Effects // "*" stands for names that it computes
}

// asksApproval reports whether a successor of the generation needs approval if it reaches further. A program for a
// single call, as a switch or the method demands it, has no predecessor in this sense.
func asksApproval(c *call.Selection, predecessor *agent.Generation) bool {
	return c.Policy.NewReach == agent.ReachAsk && predecessor != nil && c.Artifact != nil && !c.Alone()
}

// reachBefore returns the reach of the generation, or nil if wider reach needs no approval. If the generation itself
// waits for approval, its nearest approved ancestor counts instead.
func reachBefore(ctx context.Context, c *call.Selection, g *agent.Generation) *reach {
	if !asksApproval(c, g) {
		return nil
	}
	for left := len(c.Artifact.Generations); g != nil && c.Artifact.AwaitsReach(g) && g.ParentID != nil &&
		left > 0; left-- {
		g = c.Artifact.Find(*g.ParentID)
	}
	b := &reach{program: c.Reached}
	if m := c.Artifact.Manifest; m != nil {
		b.manifest = *m
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
	b.program = b.program.With(g.Reach())
	b.program = b.program.With(&named)
	return b
}

// beyond returns the names in the program's text that exceed the reach. It returns nil if there are none, or if b is
// nil.
func (b *reach) beyond(g *agent.Generation) *agent.Effects {
	if b == nil {
		return nil
	}
	named := g.Named()
	return b.manifest.Beyond(&b.program, &named)
}

// all returns the whole reach as a manifest that a run can be held to. Reading needs no approval, so it allows GET and
// HEAD.
func (b *reach) all() *agent.Manifest {
	all := b.manifest.With(&b.program)
	all = all.With(&agent.Effects{Methods: []string{"GET", "HEAD"}})
	return &agent.Manifest{Effects: all}
}

// guardOfCandidate returns the guard for a run of the candidate: the method's manifest if that is enforced, otherwise
// the predecessor's reach if wider reach needs approval. It returns nil if nothing is enforced.
func guardOfCandidate(c *call.Selection, cand *provable) *attempt.Guard {
	if g := guardFor(c); g != nil || cand.reach == nil {
		return g
	}
	return &attempt.Guard{Role: c.Role, Method: c.Method, Manifest: cand.reach.all()}
}

// wentBeyond records that a run of the candidate tried to exceed its predecessor's reach. It reports whether the
// candidate waits for a person.
func (cand *provable) wentBeyond(g *attempt.Guard) bool {
	if cand.reach != nil && g != nil && !g.Denied.Empty() {
		denied := g.Denied
		cand.beyond.CompareAndSwap(nil, &denied)
	}
	return cand.beyond.Load() != nil
}

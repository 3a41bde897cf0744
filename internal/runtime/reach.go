package runtime

import (
	"context"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
)

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

// describeReach adds what programs of the method may reach.
func (c *selected) describeReach(e *evidenceText) {
	if g := guardFor(&c.Selection); g != nil {
		e.say("programs of this method may reach only this, until a person allows more: %s",
			reachWords(&g.Manifest.Effects))
	} else if b := c.before; b != nil {
		all := b.manifest.With(&b.program)
		e.say("a program that reaches more than this waits for a person's approval, and the one of now goes on until then: %s", reachWords(&all))
	}
	if c.Artifact == nil {
		return
	}
	for _, g := range c.Artifact.Generations {
		if g.ID != c.Artifact.CurrentID && c.Artifact.AwaitsReach(g) {
			e.say("nobody has approved a program of this method that reaches more: %s", reachWords(g.Beyond))
		}
	}
}

// reachWords renders effects for a prompt.
func reachWords(e *agent.Effects) string {
	return "hosts " + attempt.ReachOf(e.Hosts) + "; HTTP methods " + attempt.ReachOf(e.Methods) + "; tools " +
		attempt.ReachOf(e.Tools)
}

// approvalOfReach describes what a person has to allow before the program serves.
func approvalOfReach(c *call.Selection, beyond *agent.Effects) *fetch.Approval {
	if m := c.Artifact.Manifest; c.Policy.Effects == agent.EffectsEnforce && m != nil &&
		!slices.ContainsFunc([][]string{beyond.Hosts, beyond.Methods, beyond.Tools},
			func(l []string) bool { return slices.Contains(l, "*") }) {
		if lacks := m.Missing(*beyond); !lacks.Empty() {
			return attempt.ApprovalOf(c.Role, c.Method, "reach what its predecessors did not", lacks)
		}
	}
	a := attempt.ApprovalOf(c.Role, c.Method, "", *beyond)
	a.Request = "POST " + attempt.ToolPath(c.Role, c.Method) + "/approve"
	a.Message = "it would reach what its predecessors did not (" + strings.Join(reached(beyond), ", ") +
		"): recurgentd tools approve " + attempt.ShellWord(c.Role) + " " + attempt.ShellWord(c.Method)
	return a
}

// reached returns the names of the effects. A "*" becomes a description.
func reached(e *agent.Effects) (all []string) {
	for _, l := range []struct {
		computed string
		list     []string
	}{{"hosts that it computes", e.Hosts}, {"HTTP methods that it computes", e.Methods},
		{"tools that it computes", e.Tools}} {
		for _, name := range l.list {
			if name == "*" {
				name = l.computed
			}
			all = append(all, name)
		}
	}
	return all
}

// repairAwaits is the value of metadata.repair of a failure while a program that may do better waits for a person.
const repairAwaits = "awaiting_approval"

// withWaiting adds to a failure that a newer program waits for a person's approval, and of what. It returns o unchanged
// if beyond is nil.
func withWaiting(c *call.Selection, o agent.Outcome, beyond *agent.Effects) agent.Outcome {
	if o.OK() || beyond == nil {
		return o
	}
	a := approvalOfReach(c, beyond)
	o.ErrorMessage += "; another program waits for a person's approval: " + a.Message
	o.Metadata = judge.With(judge.With(judge.With(o.Metadata, "approve", a.Request), "lacks", a.Details), "repair",
		repairAwaits)
	return o
}

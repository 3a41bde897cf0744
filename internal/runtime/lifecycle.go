package runtime

import (
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Decisions of the promotion gates (solver_promotion_v1).
const (
	decidePromote = "promote"
	decideHold    = "hold"
	decideDemote  = "demote"
)

// Events that move a generation in its lifecycle.
const (
	onAdopted   = "adopted"   // it became a generation
	onFirstOK   = "first_ok"  // it answered with a value that kept the contract
	onGates     = "gates"     // it passed the gates of solver_promotion_v1
	onFailing   = "failing"   // it is degraded by decision 6
	onPromotion = "promotion" // a person blessed it
)

// transition is one edge of the lifecycle. From "" is the beginning.
type transition struct{ from, event, to string }

// transitions are all edges, as docs/lifecycle.md draws them; whatever is not here does not happen.
func transitions() []transition {
	return []transition{
		{"", onAdopted, agent.StateCandidate},
		{agent.StateCandidate, onFirstOK, agent.StateProbation},
		{agent.StateProbation, onGates, agent.StateDurable},
		{agent.StateDegraded, onGates, agent.StateDurable},
		{agent.StateCandidate, onFailing, agent.StateDegraded},
		{agent.StateProbation, onFailing, agent.StateDegraded},
		{agent.StateDurable, onFailing, agent.StateDegraded},
		{agent.StateCandidate, onPromotion, agent.StateDurable},
		{agent.StateProbation, onPromotion, agent.StateDurable},
		{agent.StateDegraded, onPromotion, agent.StateDurable},
	}
}

// after returns the state that the event leads to, the same one when it leads nowhere.
func after(state, event string) string {
	edges := transitions()
	if i := slices.IndexFunc(edges, func(t transition) bool { return t.from == state && t.event == event }); i >= 0 {
		return edges[i].to
	}
	return state
}

// stateRank orders the states for selection; a degraded generation is repaired before it runs, whatever its rank.
func stateRank(state string) int {
	switch state {
	case agent.StateDurable:
		return 3
	case agent.StateProbation:
		return 2
	case agent.StateCandidate:
		return 1
	}
	return 0
}

// lifecycle notes the state of the program that answered and what the gates decide, and moves generations where they do.
func (c *call) lifecycle(o agent.Outcome) {
	f := &c.found
	c.demote()
	g := c.ran()
	switch {
	case c.adopting != nil:
		f.state = after("", onAdopted)
		if o.OK() {
			f.state = after(f.state, onFirstOK)
		}
	case g == nil && c.artifact != nil:
		f.state = c.artifact.LifecycleState
	case g == nil:
		f.state = agent.StateCandidate
	case f.state == "": // not demoted
		f.state, f.decision = stateOf(c.artifact, g), decideHold
		c.promote(o, g)
	}
}

// ran is the stored generation that answered, or nil.
func (c *call) ran() *agent.Generation {
	if c.artifact == nil || c.found.source != agent.SourcePersisted {
		return nil
	}
	return c.artifact.Find(c.found.generation)
}

// stateOf is the generation's state; of generations of older files the artifact's.
func stateOf(a *agent.Artifact, g *agent.Generation) string {
	if g.State == "" {
		return a.LifecycleState
	}
	return g.State
}

// demote moves a stored generation that this call's failure degrades. The failing path may copy the artifact to see.
func (c *call) demote() {
	if c.artifact == nil || !c.gated() {
		return
	}
	for i := range c.changes {
		change := &c.changes[i]
		if change.Generation != nil || change.Result != agent.ClassIntrinsic && change.Result != agent.ClassAdaptive {
			continue
		}
		id := change.ResultOf
		if id == "" {
			id = c.artifact.CurrentID
		}
		was, is := c.artifact.Find(id), c.artifact.Apply(*change).Find(id)
		if was == nil || is == nil || !Degraded(is, c.p.Degraded) {
			continue
		}
		state := after(stateOf(c.artifact, was), onFailing)
		if state != stateOf(c.artifact, was) {
			change.State = state
		}
		if id == c.found.generation {
			c.found.state, c.found.decision = state, decideDemote
		}
	}
}

func (c *call) gated() bool { return c.p.Promotion.Shadow || c.p.Promotion.Enforce }

// promote moves the generation that answered, when its first ok or the gates say so.
func (c *call) promote(o agent.Outcome, g *agent.Generation) {
	f := &c.found
	if !o.OK() || len(c.changes) == 0 {
		return
	}
	next := f.state
	switch f.state {
	case agent.StateCandidate:
		next = after(f.state, onFirstOK) // the store does it as it counts
	case agent.StateProbation, agent.StateDegraded:
		if c.gated() && g.ID == c.artifact.CurrentID && Promotable(c.artifact, c.session.ID, c.p) {
			next = after(f.state, onGates)
			c.changes[len(c.changes)-1].State = next
		}
	}
	if next != f.state {
		f.state, f.decision = next, decidePromote
	}
}

// Promotable reports whether the current generation, with one more ok call of that session, passes the gates of
// solver_promotion_v1: enough counted calls from enough sessions, a value that keeps its contract nearly always, no
// exhausted recoveries, no referral to another tool, no provenance violation, not degraded, and no worse than the durable
// generation whose place it would take.
func Promotable(a *agent.Artifact, session string, p *agent.Policy) bool {
	g := a.Current()
	if g == nil || Degraded(g, p.Degraded) {
		return false
	}
	s := &a.Scorecard
	calls := g.SuccessCount + g.IntrinsicFailureCount + g.AdaptiveFailureCount + 1
	sessions := len(s.Sessions)
	if !slices.Contains(s.Sessions, session) {
		sessions++
	}
	if slices.ContainsFunc(a.Generations, func(other *agent.Generation) bool { return outdoes(other, g) }) {
		return false
	}
	kept := s.ContractChecked == 0 || float64(s.ContractPassed)/float64(s.ContractChecked) >= p.Promotion.ContractPass
	return calls >= int64(p.Promotion.MinCalls) && sessions >= p.Promotion.MinSessions && kept && s.GuardrailExhausted == 0 &&
		s.OutcomeRepairExhausted == 0 && s.WrongToolBoundary == 0 && s.ProvenanceViolations == 0
}

// outdoes reports whether the incumbent, a durable generation under the same machine-checked contract, fails more seldom
// than the generation that would become durable beside it.
func outdoes(incumbent, g *agent.Generation) bool {
	if incumbent == g || incumbent.State != agent.StateDurable || incumbent.CheckedFingerprint != g.CheckedFingerprint {
		return false
	}
	was, _ := incumbent.FailureRate()
	is, _ := g.FailureRate()
	return is > was
}

package runtime

import (
	"github.com/recurgentd/recurgentd/internal/agent"
)

// Decisions of the promotion gates (solver_promotion_v1).
const (
	decidePromote = "promote"
	decideHold    = "hold"
	decideDemote  = "demote"
)

// lifecycle notes the artifact's state and what the gates decide, and moves the artifact where they do.
func (c *call) lifecycle(o agent.Outcome) {
	f := &c.found
	if c.artifact == nil || f.source != agent.SourcePersisted {
		f.state = agent.StateCandidate
		if o.OK() && c.adopting != nil {
			f.state = agent.StateProbation // the first ok
		}
		return
	}
	f.state, f.decision = c.artifact.LifecycleState, decideHold
	g := c.artifact.Find(f.generation)
	if len(c.changes) == 0 || g == nil || !c.p.Promotion.Shadow && !c.p.Promotion.Enforce {
		return
	}
	next := f.state
	switch {
	case Degraded(g, c.p.Degraded):
		next = agent.StateDegraded
	case o.OK() && f.state != agent.StateDurable && Promotable(c.artifact, c.p.Promotion):
		next = agent.StateDurable
	case f.state == agent.StateCandidate && o.OK():
		next = agent.StateProbation
	}
	if next == f.state {
		return
	}
	f.decision = decidePromote
	if next == agent.StateDegraded {
		f.decision = decideDemote
	}
	f.state = next
	c.changes[len(c.changes)-1].State = next
}

// Promotable reports whether the artifact passes the gates of solver_promotion_v1.
func Promotable(a *agent.Artifact, p agent.PromotionPolicy) bool {
	s := a.Scorecard
	calls := a.SuccessCount + a.IntrinsicFailureCount + a.AdaptiveFailureCount
	passed := s.ContractChecked == 0 || float64(s.ContractPassed)/float64(s.ContractChecked) >= p.ContractPass
	return calls >= int64(p.MinCalls) && len(s.Sessions) >= p.MinSessions && passed && s.GuardrailExhausted == 0 &&
		s.OutcomeRepairExhausted == 0 && s.WrongToolBoundary == 0 && s.ProvenanceViolations == 0
}

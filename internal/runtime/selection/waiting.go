package selection

import (
	"github.com/recurgentd/recurgentd/internal/agent"
)

// others reports whether the call has no contract although the generation was made for the contract of a call.
func (in *Input) others(g *agent.Generation) bool {
	return g != nil && in.CheckedFingerprint == agent.FingerprintNone && !g.Keeps(agent.FingerprintNone)
}

// waits returns why the generation waits for a person, or "".
func (in *Input) waits(a *agent.Artifact, g *agent.Generation) string {
	switch {
	case g == nil:
		return ""
	case in.Policy.ApprovalRequired && !g.Approved:
		return ReasonApprovalRequired
	case in.Policy.NewReach == agent.ReachAsk && a.AwaitsReach(g):
		return ReasonNewReach
	case a.AwaitsExamples(g):
		return ReasonBreaksExamples
	}
	return ""
}

// selectServing selects while the current generation waits for a person. The generation that serving returns answers;
// without one, the call is refused.
func selectServing(in Input, a *agent.Artifact, d Decision, why string) Decision {
	if g := in.serving(a); g != nil {
		return Decision{Decision: agent.DecideRun, Reason: why, Generation: g}
	}
	d.Decision, d.Reason = agent.DecideRefuse, why
	return d
}

// serving returns the newest healthy generation that does not wait for a person and keeps the contract, otherwise the
// newest one that may run, otherwise nil. It considers the lineage of the current generation first, so a rollback is
// not undone. Generations outside the lineage are considered only if the policy requires approval, and then only
// approved ones.
func (in *Input) serving(a *agent.Artifact) *agent.Generation {
	candidates := a.Lineage()
	if in.Policy.ApprovalRequired {
		candidates = append(candidates, a.Generations...)
	}
	var any *agent.Generation
	for _, g := range candidates {
		if in.waits(a, g) != "" || g.Aside || runnable(*in, a, g) != "" {
			continue
		}
		if g.Keeps(in.CheckedFingerprint) && !Degraded(g, in.Policy.Degraded) {
			return g
		}
		if any == nil && !in.others(g) {
			any = g
		}
	}
	return any
}

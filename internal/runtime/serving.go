package runtime

import (
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// Serving returns the generation that would answer a call of the artifact's method now, made without a contract. If a
// program would be forged or repaired first, or nothing may run, it returns nil and the reason. If all generations were
// made for callers' contracts, it returns the one that answers calls with the current one's contract. The first call
// without a contract would then get another program, whose parameters may differ.
func (r *Runtime) Serving(a *agent.Artifact) (g *agent.Generation, why string) {
	in := SelectInput{Role: a.Role, Method: a.MethodName, Artifact: a, CheckedFingerprint: agent.FingerprintNone,
		Policy: r.policy.Load(),
		Now:    r.o.Now(), ImportAllowed: r.o.AllowImport, IgnoresArgs: r.ignoresArgs, Intact: r.intact.has}
	d := Select(in)
	if d.Reason == ReasonContractChanged {
		in.CheckedFingerprint = a.Current().CheckedFingerprint
		d = Select(in)
	}
	if d.Decision != agent.DecideRun {
		return nil, d.Reason
	}
	return d.Generation, ""
}

// Next returns the selection for a call of the artifact's method made now, without arguments and without a contract. k
// is the method's registered contract, resolved.
func (r *Runtime) Next(k *contract.Resolved, a *agent.Artifact) Decision {
	return Select(SelectInput{Role: a.Role, Method: a.MethodName, Artifact: a,
		CheckedFingerprint: checkedOf(a, k.Checked, k.Written), Words: k.Words.ByPerson, Policy: r.policy.Load(),
		Now: r.o.Now(), ImportAllowed: r.o.AllowImport, IgnoresArgs: r.ignoresArgs, Intact: r.intact.has})
}

// Answering returns the stored generation that would answer the call described at Next: the one that runs, or the
// fallback. It returns nil if there is none.
func (r *Runtime) Answering(k *contract.Resolved, a *agent.Artifact) *agent.Generation {
	d := r.Next(k, a)
	if d.Decision == agent.DecideRun {
		return d.Generation
	}
	return d.Fallback
}

// Outdated returns agent.StalePurpose if the generation that Answering returns was made for a wording other than the
// registered one, otherwise "". a may be the result of agent.Artifact.Selectable.
func (r *Runtime) Outdated(k *contract.Resolved, a *agent.Artifact) string {
	now := k.Words.ByPerson
	if !slices.ContainsFunc(a.Generations, func(g *agent.Generation) bool { return g.Outdated(now) }) {
		return "" // most methods were never reworded
	}
	if g := r.Answering(k, a); g == nil || !g.Outdated(now) {
		return ""
	}
	return agent.StalePurpose
}

// others reports whether the call has no contract although the generation was made for the contract of a call.
func (in *SelectInput) others(g *agent.Generation) bool {
	return g != nil && in.CheckedFingerprint == agent.FingerprintNone && !g.Keeps(agent.FingerprintNone)
}

// waits returns why the generation waits for a person, or "".
func (in *SelectInput) waits(a *agent.Artifact, g *agent.Generation) string {
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
func selectServing(in SelectInput, a *agent.Artifact, d Decision, why string) Decision {
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
func (in *SelectInput) serving(a *agent.Artifact) *agent.Generation {
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

package runtime

import "github.com/recurgentd/recurgentd/internal/agent"

// Serving returns the generation that would answer a call of the artifact's method now, without a contract of the
// caller's, or nil and why there is none: a program would be forged or repaired first, or nothing may run.
func (r *Runtime) Serving(a *agent.Artifact) (g *agent.Generation, why string) {
	d := Select(SelectInput{Role: a.Role, Method: a.MethodName, Artifact: a, CheckedFingerprint: agent.FingerprintNone, Policy: r.policy.Load(),
		Now: r.o.Now(), ImportAllowed: r.o.AllowImport, IgnoresArgs: r.ignoresArgs, Intact: r.intact.has})
	if d.Decision != agent.DecideRun {
		return nil, d.Reason
	}
	return d.Generation, ""
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

// selectServing selects while the current generation waits for a person: the newest healthy generation that keeps the contract and does not wait answers,
// else the newest one that may run, else nothing runs.
func selectServing(in SelectInput, a *agent.Artifact, d Decision, why string) Decision {
	if g := in.serving(a); g != nil {
		return Decision{Decision: agent.DecideRun, Reason: why, Generation: g}
	}
	d.Decision, d.Reason = agent.DecideRefuse, why
	return d
}

// serving returns the newest healthy generation that does not wait for a person and keeps the contract, else the newest one that may
// run, else nil. Those that the current one comes of go before others: after a rollback what was left behind stays behind. Of the others only
// those answer that a person approved.
func (in *SelectInput) serving(a *agent.Artifact) *agent.Generation {
	fits := func(g *agent.Generation) bool {
		return in.CheckedFingerprint == agent.FingerprintNone || g.CheckedFingerprint == in.CheckedFingerprint
	}
	candidates := a.Lineage()
	if in.Policy.ApprovalRequired {
		candidates = append(candidates, a.Generations...)
	}
	var any *agent.Generation
	for _, g := range candidates {
		if in.waits(a, g) != "" || g.Aside || runnable(*in, a, g) != "" {
			continue
		}
		if fits(g) && !Degraded(g, in.Policy.Degraded) {
			return g
		}
		if any == nil {
			any = g
		}
	}
	return any
}

package runtime

import (
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// Serving returns the generation that would answer a call of the artifact's method now, without a contract of the
// caller's, or nil and why there is none: a program would be forged or repaired first, or nothing may run. Where all were made for contracts of
// callers it returns the one that answers those of the current one's: the first call without a contract has another one written, which may take something else.
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

// Next returns how a call of the artifact's method without arguments and without a contract of its own would be selected now, where k is what is registered of the method.
func (r *Runtime) Next(k *contract.Resolved, a *agent.Artifact) Decision {
	return Select(SelectInput{Role: a.Role, Method: a.MethodName, Artifact: a,
		CheckedFingerprint: checkedOf(a, k.Checked, k.Written), Words: k.Words.ByPerson, Policy: r.policy.Load(),
		Now: r.o.Now(), ImportAllowed: r.o.AllowImport, IgnoresArgs: r.ignoresArgs, Intact: r.intact.has})
}

// Answering returns the stored generation that would answer that call, or nil: the one that Next runs, or the fallback.
func (r *Runtime) Answering(k *contract.Resolved, a *agent.Artifact) *agent.Generation {
	d := r.Next(k, a)
	if d.Decision == agent.DecideRun {
		return d.Generation
	}
	return d.Fallback
}

// Outdated returns agent.StalePurpose if the generation that Answering returns was made for other words than the registered ones, and "" otherwise. The artifact may be
// agent.Artifact.Selectable's.
func (r *Runtime) Outdated(k *contract.Resolved, a *agent.Artifact) string {
	now := k.Words.ByPerson
	if !slices.ContainsFunc(a.Generations, func(g *agent.Generation) bool { return g.Outdated(now) }) {
		return "" // of most methods no word was ever changed
	}
	if g := r.Answering(k, a); g == nil || !g.Outdated(now) {
		return ""
	}
	return agent.StalePurpose
}

// others reports whether the call has no contract, and the generation was made for that of somebody's call.
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

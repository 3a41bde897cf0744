package verify

import (
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// Reselect repeats Select for a past call, with the daemon's knowledge of programs.
func (v *Verifier) Reselect(in selection.Input) selection.Decision {
	in.ImportAllowed, in.IgnoresArgs, in.Intact = v.env.AllowImport, v.env.Facts.IgnoresArgs, v.env.Intact.Has
	return selection.Select(in)
}

// Serving returns the generation that would answer a call of the artifact's method now, made without a contract. If a
// program would be forged or repaired first, or nothing may run, it returns nil and the reason. If all generations were
// made for callers' contracts, it returns the one that answers calls with the current one's contract. The first call
// without a contract would then get another program, whose parameters may differ.
func (v *Verifier) Serving(a *agent.Artifact) (g *agent.Generation, why string) {
	in := selection.Input{Role: a.Role, Method: a.MethodName, Artifact: a, CheckedFingerprint: agent.FingerprintNone,
		Policy: v.policies.PolicyInForce(),
		Now:    v.env.Now(), ImportAllowed: v.env.AllowImport, IgnoresArgs: v.env.Facts.IgnoresArgs,
		Intact: v.env.Intact.Has}
	d := selection.Select(in)
	if d.Reason == selection.ReasonContractChanged {
		in.CheckedFingerprint = a.Current().CheckedFingerprint
		d = selection.Select(in)
	}
	if d.Decision != agent.DecideRun {
		return nil, d.Reason
	}
	return d.Generation, ""
}

// Next returns the selection for a call of the artifact's method made now, without arguments and without a contract. k
// is the method's registered contract, resolved.
func (v *Verifier) Next(k *contract.Resolved, a *agent.Artifact) selection.Decision {
	return selection.Select(selection.Input{Role: a.Role, Method: a.MethodName, Artifact: a,
		CheckedFingerprint: call.CheckedOf(a, k.Checked, k.Written), Words: k.Words.ByPerson,
		Policy: v.policies.PolicyInForce(),
		Now:    v.env.Now(), ImportAllowed: v.env.AllowImport, IgnoresArgs: v.env.Facts.IgnoresArgs,
		Intact: v.env.Intact.Has})
}

// Answering returns the stored generation that would answer the call described at Next: the one that runs, or the
// fallback. It returns nil if there is none.
func (v *Verifier) Answering(k *contract.Resolved, a *agent.Artifact) *agent.Generation {
	d := v.Next(k, a)
	if d.Decision == agent.DecideRun {
		return d.Generation
	}
	return d.Fallback
}

// Outdated returns agent.StalePurpose if the generation that Answering returns was made for a wording other than the
// registered one, otherwise "". a may be the result of agent.Artifact.Selectable.
func (v *Verifier) Outdated(k *contract.Resolved, a *agent.Artifact) string {
	now := k.Words.ByPerson
	if !slices.ContainsFunc(a.Generations, func(g *agent.Generation) bool { return g.Outdated(now) }) {
		return "" // most methods were never reworded
	}
	if g := v.Answering(k, a); g == nil || !g.Outdated(now) {
		return ""
	}
	return agent.StalePurpose
}

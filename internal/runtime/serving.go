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

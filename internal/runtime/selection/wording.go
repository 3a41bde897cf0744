package selection

import (
	"github.com/recurgentd/recurgentd/internal/agent"
)

// reworded reports whether a person changed the method's purpose since the generation was made.
func (in *Input) reworded(g *agent.Generation) bool { return g != nil && g.Reworded(in.Words) }

// outdated reports whether the generation needs a recheck because of such a change.
func (in *Input) outdated(g *agent.Generation) bool {
	return g != nil && g.Outdated(in.Words)
}

// worded returns the newest kept generation that may answer and was made for the registered wording, or nil.
func (in *Input) worded(a *agent.Artifact) *agent.Generation {
	for _, g := range a.Generations {
		fits := in.CheckedFingerprint == agent.FingerprintNone &&
			g.CheckedFingerprint == a.Current().CheckedFingerprint && !in.others(g) ||
			g.CheckedFingerprint == in.CheckedFingerprint
		if fits && g.MadeFor != nil && !in.reworded(g) && in.serves(a, g) {
			return g
		}
	}
	return nil
}

// whileWaiting selects while the current generation waits for a person. A generation made for the registered wording
// takes precedence over the waiting one's predecessor.
func (in *Input) whileWaiting(a *agent.Artifact, d Decision, why string) Decision {
	serving := selectServing(*in, a, d, why)
	if serving.Decision != agent.DecideRun || a.Pinned || !in.reworded(serving.Generation) {
		return serving
	}
	if made := in.worded(a); made != nil {
		serving.Generation = made
		return serving
	}
	if in.outdated(d.Generation) {
		return recheck(d, serving.Generation) // the waiting program was written for an outdated wording
	}
	return serving
}

// recheck decides to ask a model whether the generation fits the registered wording; otherwise the model writes a new
// one. The generation is the fallback.
func recheck(d Decision, g *agent.Generation) Decision {
	d.Decision, d.Reason, d.Generation, d.Fallback, d.Reworded = agent.DecideForge, ReasonPurposeChanged, g, g, true
	return d
}

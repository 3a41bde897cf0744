package agent

import (
	"slices"
	"strings"
)

// count adds the result of a run to the counters, the scorecard and the evidence of the artifact and the generation.
func (a *Artifact) count(c ArtifactChange) {
	if c.Result == ClassNone && c.Fixture == nil && c.Shapes == nil && c.ErrorType == "" {
		return
	}
	// A counted call ends the time in which pushed-out generations are held for an undo.
	a.Displaced = nil
	g := a.change(c.ResultOf)
	if g == nil {
		g = &Generation{} // pruned meanwhile, or NoGeneration: the totals still count it
	}
	if c.At.After(a.LastUsedAt) {
		a.LastUsedAt = c.At
	}
	a.tally(g, c.Result)
	if c.Result == ClassOK {
		g.calledBy(c.Caller)
	}
	a.FailureCount = a.IntrinsicFailureCount + a.AdaptiveFailureCount + a.ExtrinsicFailureCount
	if c.Result.Counts() {
		a.LastFailureReason, a.LastFailureClass, a.LastFailureOwner = c.Reason, c.Result, c.Owner
	}
	g.streak(c)
	if c.ResultOf == "" || c.ResultOf == a.CurrentID {
		a.score(c)
	}
	if c.Fixture != nil && len(g.Fixtures) < MaxFixtures {
		g.Fixtures = append(slices.Clip(g.Fixtures), *c.Fixture)
	}
	if c.Shapes != nil {
		g.Shapes, g.Outlines, g.ShapesOwner = c.Shapes, c.Outlines, c.Owner
	}
	if c.Effects != nil {
		a.record(g, c.Effects, c.Grow)
	}
}

// tally counts a result on the artifact and on the generation that gave it.
func (a *Artifact) tally(g *Generation, result Class) {
	switch result {
	case ClassOK:
		a.SuccessCount++
		g.SuccessCount++
		if g.State == StateCandidate || g.State == "" && a.LifecycleState == StateCandidate {
			g.State = StateProbation // the first ok
		}
		g.see('o')
	case ClassIntrinsic:
		a.IntrinsicFailureCount++
		g.IntrinsicFailureCount++
		g.see('i')
	case ClassAdaptive:
		a.AdaptiveFailureCount++
		g.AdaptiveFailureCount++
		g.see('a')
	case ClassExtrinsic:
		a.ExtrinsicFailureCount++
		g.ExtrinsicFailureCount++
	case ClassAuthored:
		a.AuthoredErrorCount++
		g.AuthoredErrorCount++
	}
}

// maxAnswered bounds the inputs that a generation is recorded to have answered.
const maxAnswered = 64

// streak updates the counts of consecutive results.
func (g *Generation) streak(c ArtifactChange) {
	switch {
	case c.Result == ClassOK:
		g.AuthoredStreak, g.DriftStreak = 0, 0
	case c.Result == ClassAuthored && !honest(c.ErrorType) && !c.Unrun:
		g.AuthoredStreak++
	}
	if c.Drifting {
		g.DriftStreak++
	}
	if g.UnknownStreak++; !c.Misnamed {
		g.UnknownStreak = 0
	}
	if c.Answered != "" && !slices.Contains(g.Answered, c.Answered) {
		g.Answered = append(slices.Clip(g.Answered), c.Answered)
		g.Answered = g.Answered[max(0, len(g.Answered)-maxAnswered):]
	}
}

// score updates the scorecard of the current generation.
func (a *Artifact) score(c ArtifactChange) {
	s := &a.Scorecard
	if c.SessionID != "" && c.Result == ClassOK && len(s.Sessions) < maxSessions &&
		!slices.Contains(s.Sessions, c.SessionID) {
		s.Sessions = append(slices.Clip(s.Sessions), c.SessionID)
	}
	if c.Checked {
		s.ContractChecked++
		if c.CheckPassed {
			s.ContractPassed++
		}
	}
	switch c.ErrorType {
	case ErrGuardrailExhausted:
		s.GuardrailExhausted++
	case ErrOutcomeRepairExhausted:
		s.OutcomeRepairExhausted++
	case ErrWrongToolBoundary:
		s.WrongToolBoundary++
	}
}

// see appends a result to the window, which keeps the newest Window results.
func (g *Generation) see(result byte) {
	if len(g.Window) == Window && strings.Count(g.Window, string(result)) == Window {
		return // the window already holds only that result: avoid a new string
	}
	g.Window += string(result)
	if len(g.Window) > Window {
		g.Window = g.Window[len(g.Window)-Window:]
	}
}

// resetMetrics clears the artifact's counters and those of the current generation.
func (a *Artifact) resetMetrics() {
	a.SuccessCount, a.FailureCount, a.AuthoredErrorCount = 0, 0, 0
	a.IntrinsicFailureCount, a.AdaptiveFailureCount, a.ExtrinsicFailureCount = 0, 0, 0
	a.LastFailureReason, a.LastFailureClass = "", ClassNone
	a.Scorecard = Scorecard{}
	if g := a.change(""); g != nil {
		g.SuccessCount, g.AuthoredErrorCount = 0, 0
		g.IntrinsicFailureCount, g.AdaptiveFailureCount, g.ExtrinsicFailureCount = 0, 0, 0
		g.Window = ""
	}
}

// bless empties the current generation's window, so that its past calls do not count towards its failure rate. The
// counters stay.
func (a *Artifact) bless() {
	if g := a.change(""); g != nil {
		g.Window = ""
	}
}

// change replaces the generation with a copy that may be written, and returns the copy; nil if it is not kept. "" means
// the current one.
func (a *Artifact) change(id string) *Generation {
	if id == "" {
		id = a.CurrentID
	}
	for i, g := range a.Generations {
		if g.ID == id {
			g2 := *g
			a.Generations[i] = &g2
			return &g2
		}
	}
	return nil
}

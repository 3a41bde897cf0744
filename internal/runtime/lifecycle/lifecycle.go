// Package lifecycle decides which state generations have after an answer: candidate, probation, durable or degraded.
// Its edges are those that docs/concepts.md draws. It reads nothing and keeps nothing.
package lifecycle

import (
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
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
	onFailing   = "failing"   // it is degraded
	onPromotion = "promotion" // a person promoted it
)

// transition is an edge of the lifecycle. A from of "" means that the generation is new.
type transition struct{ from, event, to string }

// transitions returns all edges, as docs/concepts.md draws them. No other transition happens.
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

// after returns the state that the event leads to, or the same state if it leads nowhere.
func after(state, event string) string {
	edges := transitions()
	if i := slices.IndexFunc(edges, func(t transition) bool { return t.from == state && t.event == event }); i >= 0 {
		return edges[i].to
	}
	return state
}

// An Answer is what the lifecycle of generations depends on: a call's answer, and what it changes in its artifact.
type Answer struct {
	Artifact   *agent.Artifact // as the call read it; nil if none was stored
	Policy     *agent.Policy
	Session    string
	Generation string // ID of the generation that answered; "" if none did
	Stored     bool   // it was stored before the call
	Adopts     bool   // the call adopts a candidate
	OK         bool
	Changes    []agent.ArtifactChange
}

// Of returns the state of the program that answered and the decision of the gates. It adds the transitions of
// generations to the call's changes.
func Of(a *Answer) (state, decision string) {
	if state, decision = a.demote(); state != "" {
		return state, decision
	}
	g := a.storedProgram()
	switch {
	case a.Adopts:
		state = after("", onAdopted)
		if a.OK {
			state = after(state, onFirstOK)
		}
		return state, ""
	case g == nil && a.Artifact != nil:
		return a.Artifact.LifecycleState, ""
	case g == nil:
		return agent.StateCandidate, ""
	}
	return a.promote(g)
}

// storedProgram returns the stored generation that answered, or nil.
func (a *Answer) storedProgram() *agent.Generation {
	if a.Artifact == nil || !a.Stored {
		return nil
	}
	return a.Artifact.Find(a.Generation)
}

// demote degrades the stored generations that this call's failures cause to be degraded. It returns the new state of
// the generation that answered, or "" if that one is not degraded. The artifact is copied only for failing calls.
func (a *Answer) demote() (state, decision string) {
	if a.Artifact == nil || !a.gated() {
		return "", ""
	}
	for i := range a.Changes {
		change := &a.Changes[i]
		if change.Generation != nil || change.Result != agent.ClassIntrinsic && change.Result != agent.ClassAdaptive {
			continue
		}
		id := change.ResultOf
		if id == "" {
			id = a.Artifact.CurrentID
		}
		was, is := a.Artifact.Find(id), a.Artifact.Apply(*change).Find(id)
		if was == nil || is == nil || !selection.Degraded(is, a.Policy.Degraded) {
			continue
		}
		next := after(a.Artifact.StateOf(was), onFailing)
		if next != a.Artifact.StateOf(was) {
			change.State = next
		}
		if id == a.Generation {
			state, decision = next, decideDemote
		}
	}
	return state, decision
}

// gated reports whether the promotion gates decide about generations, in effect or in shadow mode.
func (a *Answer) gated() bool { return a.Policy.Promotion.Shadow || a.Policy.Promotion.Enforce }

// promote promotes the generation that answered, if its first ok value or the gates allow it.
func (a *Answer) promote(g *agent.Generation) (state, decision string) {
	state = a.Artifact.StateOf(g)
	if !a.OK || len(a.Changes) == 0 {
		return state, decideHold
	}
	next := state
	switch state {
	case agent.StateCandidate:
		next = after(state, onFirstOK) // the store itself makes this transition when it counts the call
	case agent.StateProbation, agent.StateDegraded:
		if a.gated() && g.ID == a.Artifact.CurrentID && promotable(a.Artifact, a.Session, a.Policy) {
			next = after(state, onGates)
			a.Changes[len(a.Changes)-1].State = next
		}
	}
	if next == state {
		return state, decideHold
	}
	return next, decidePromote
}

// promotable reports whether the current generation, with one more ok call in the given session, passes the gates of
// solver_promotion_v1: enough counted calls from enough sessions, a high rate of values that keep the contract, no
// exhausted retries, no referral to another tool, not degraded, and no worse than a durable generation under the same
// contract.
func promotable(a *agent.Artifact, session string, p *agent.Policy) bool {
	g := a.Current()
	if g == nil || selection.Degraded(g, p.Degraded) {
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
	return calls >= int64(p.Promotion.MinCalls) && sessions >= p.Promotion.MinSessions && kept &&
		s.GuardrailExhausted == 0 &&
		s.OutcomeRepairExhausted == 0 && s.WrongToolBoundary == 0
}

// outdoes reports whether the incumbent is a durable generation under the same machine-checked contract that fails less
// often than g.
func outdoes(incumbent, g *agent.Generation) bool {
	if incumbent == g || incumbent.State != agent.StateDurable || incumbent.CheckedFingerprint != g.CheckedFingerprint {
		return false
	}
	was, _ := incumbent.FailureRate()
	is, _ := g.FailureRate()
	return is > was
}

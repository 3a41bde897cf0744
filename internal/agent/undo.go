package agent

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Standing is a snapshot of the parts of an artifact that an operator's operation can change. The audit trail keeps it
// from before and after each operation, so that it can be undone. It holds no arguments and no values.
type Standing struct {
	Role           string `json:"role"`
	MethodName     string `json:"method_name"`
	Revision       int64  `json:"revision"`
	Adoptions      int64  `json:"adoptions,omitempty"`
	CurrentID      string `json:"current_generation"`
	Sequence       int    `json:"sequence"`
	CodeChecksum   string `json:"code_checksum"`
	LifecycleState string `json:"lifecycle_state"`
	// GenerationState is the state of the current generation; "" in older files.
	GenerationState       string                   `json:"generation_state,omitempty"`
	Quarantined           bool                     `json:"quarantined"`
	QuarantineReason      string                   `json:"quarantine_reason,omitempty"`
	Pinned                bool                     `json:"pinned"`
	Approved              bool                     `json:"approved"`
	ApprovedGenerations   []string                 `json:"approved_generations,omitempty"`
	Confirmed             map[string]WordingDigest `json:"confirmed,omitempty"` // by generation
	ForceRegenerate       string                   `json:"force_regenerate,omitempty"`
	RepairCountSinceRegen int                      `json:"repair_count_since_regen"`
	LastFailureReason     string                   `json:"last_failure_reason,omitempty"`
	LastFailureClass      Class                    `json:"last_failure_class,omitempty"`
	Scorecard             Scorecard                `json:"scorecard"`
	Manifest              *Manifest                `json:"effects,omitempty"`
	Counters
	Generation GenerationCounters `json:"generation"` // of the current one
}

// Counters are an artifact's totals.
type Counters struct {
	SuccessCount          int64 `json:"success_count"`
	IntrinsicFailureCount int64 `json:"intrinsic_failure_count"`
	AdaptiveFailureCount  int64 `json:"adaptive_failure_count"`
	ExtrinsicFailureCount int64 `json:"extrinsic_failure_count"`
	AuthoredErrorCount    int64 `json:"authored_error_count"`
}

// GenerationCounters are the counters of one generation.
type GenerationCounters struct {
	Counters
	Window string `json:"window"`
}

// A Revert undoes an operator's operation. From is the artifact's standing after the operation, To that before it. If
// nothing happened since, the artifact is afterwards equal to the earlier one to the byte, including its revision. If
// calls came in between, the operation's changes are reverted and the counts of the calls stay: counters always equal
// the sum of the calls.
type Revert struct {
	From Standing `json:"from"`
	To   Standing `json:"to"`
}

// Standing returns the artifact's standing, or nil if a is nil.
func (a *Artifact) Standing() *Standing {
	if a == nil {
		return nil
	}
	s := &Standing{Role: a.Role, MethodName: a.MethodName, Revision: a.Revision, Adoptions: a.Adoptions,
		CurrentID: a.CurrentID, Sequence: a.Sequence, CodeChecksum: a.CodeChecksum,
		LifecycleState: a.LifecycleState, Quarantined: a.Quarantined, QuarantineReason: a.QuarantineReason,
		Pinned: a.Pinned, Approved: a.Approved,
		ForceRegenerate: a.ForceRegenerate, RepairCountSinceRegen: a.RepairCountSinceRegen,
		LastFailureReason: a.LastFailureReason,
		LastFailureClass:  a.LastFailureClass, Scorecard: a.Scorecard, Manifest: a.Manifest,
		Counters: Counters{a.SuccessCount, a.IntrinsicFailureCount, a.AdaptiveFailureCount, a.ExtrinsicFailureCount,
			a.AuthoredErrorCount}}
	for _, g := range a.Generations {
		if g.Approved {
			s.ApprovedGenerations = append(s.ApprovedGenerations, g.ID)
		}
		if g.Confirmed != "" {
			if s.Confirmed == nil {
				s.Confirmed = map[string]WordingDigest{}
			}
			s.Confirmed[g.ID] = g.Confirmed
		}
	}
	if g := a.Current(); g != nil {
		s.GenerationState, s.Generation.Window = g.State, g.Window
		s.Generation.Counters = Counters{g.SuccessCount, g.IntrinsicFailureCount, g.AdaptiveFailureCount,
			g.ExtrinsicFailureCount, g.AuthoredErrorCount}
	}
	return s
}

// moves reports whether the operation made another generation current, or requested a new program that has been made
// since.
func (r *Revert) moves(a *Artifact) bool {
	return r.From.CurrentID != r.To.CurrentID || r.From.ForceRegenerate != r.To.ForceRegenerate &&
		a.ForceRegenerate != r.From.ForceRegenerate
}

// Hinders returns the reason why the revert cannot be applied to the artifact as it is now: a later operation changed
// the same things. It returns "" if it can be applied.
func (r *Revert) Hinders(a *Artifact) string {
	from, to := &r.From, &r.To
	switch {
	case from.Quarantined != to.Quarantined && a.Quarantined != from.Quarantined:
		return "it was quarantined or released again since"
	case from.Pinned != to.Pinned && a.Pinned != from.Pinned:
		return "it was pinned or unpinned again since"
	case from.Approved != to.Approved && a.Approved != from.Approved:
		return "it was approved again, or has another program, since"
	case from.CurrentID != to.CurrentID && a.CurrentID != from.CurrentID:
		return "another program, " + a.CurrentID + ", has come since"
	case !reflect.DeepEqual(from.Manifest, to.Manifest) && !reflect.DeepEqual(a.Manifest, from.Manifest):
		return "its effects manifest was changed again since"
	case r.moves(a) && !slices.ContainsFunc(a.Held(), func(g *Generation) bool { return g.ID == to.CurrentID }):
		return to.CurrentID + " is not kept any more"
	}
	return ""
}

// revert applies the revert to the artifact, which must be a copy.
func (a *Artifact) revert(r *Revert) {
	from, to := &r.From, &r.To
	exact := a.Revision == from.Revision+1 // Apply has already counted the copy
	moves := r.moves(a)
	if from.Quarantined != to.Quarantined || from.QuarantineReason != to.QuarantineReason {
		a.Quarantined, a.QuarantineReason = to.Quarantined, to.QuarantineReason
	}
	if from.Pinned != to.Pinned {
		a.Pinned = to.Pinned
	}
	for _, g := range slices.Clone(a.Generations) {
		was, is := slices.Contains(to.ApprovedGenerations, g.ID), slices.Contains(from.ApprovedGenerations, g.ID)
		if was != is {
			a.change(g.ID).Approved = was
		}
		if to.Confirmed[g.ID] != from.Confirmed[g.ID] && g.Confirmed == from.Confirmed[g.ID] {
			a.change(g.ID).Confirmed = to.Confirmed[g.ID]
		}
	}
	if a.ForceRegenerate == from.ForceRegenerate {
		a.ForceRegenerate = to.ForceRegenerate
	}
	if !reflect.DeepEqual(from.Manifest, to.Manifest) {
		a.Manifest = to.Manifest
	}
	if from.RepairCountSinceRegen != to.RepairCountSinceRegen {
		a.RepairCountSinceRegen = max(0, a.RepairCountSinceRegen+to.RepairCountSinceRegen-from.RepairCountSinceRegen)
	}
	a.revertTotals(from, to)
	if moves {
		a.revertCurrent(r, exact)
	} else {
		a.revertGeneration(from, to)
	}
	if exact {
		a.Revision, a.Adoptions = to.Revision, to.Adoptions
	}
}

// revertCurrent makes the previously current generation current again. If nothing happened since, it also removes the
// generation that replaced it and brings back those that were pushed out.
func (a *Artifact) revertCurrent(r *Revert, exact bool) {
	if exact && r.To.Sequence < r.From.Sequence {
		a.Generations = slices.DeleteFunc(a.Generations, func(g *Generation) bool { return g.ID == r.From.CurrentID })
		a.bringBack(func(g *Generation, by string) bool { return by == r.From.CurrentID })
		a.Sequence = r.To.Sequence
		if len(a.Generations) == 0 {
			a.Owner = ""
		}
	}
	a.bringBack(func(g *Generation, _ string) bool { return g.ID == r.To.CurrentID })
	if a.Find(r.To.CurrentID) != nil {
		a.CurrentID, a.Scorecard = r.To.CurrentID, r.To.Scorecard
		if a.Current().State == "" {
			a.LifecycleState = r.To.LifecycleState
		}
	}
}

// bringBack moves the wanted displaced generations back to their places.
func (a *Artifact) bringBack(wanted func(g *Generation, by string) bool) {
	var left []Displaced
	for _, d := range a.Displaced {
		stay := d.Generations[:0:0]
		for _, g := range d.Generations {
			if wanted(g, d.By) {
				a.Generations = append(a.Generations, g)
			} else {
				stay = append(stay, g)
			}
		}
		if len(stay) > 0 || len(d.Generations) == 0 {
			d.Generations = stay
			left = append(left, d)
		}
	}
	a.Displaced = left
	a.sortGenerations()
}

// sortGenerations sorts newest first, with restored generations after all others.
func (a *Artifact) sortGenerations() {
	slices.SortStableFunc(a.Generations, func(x, y *Generation) int {
		if restored := x.Restored != nil; restored != (y.Restored != nil) {
			if restored {
				return 1
			}
			return -1
		}
		return y.number() - x.number()
	})
}

// number returns the number in the generation's id.
func (g *Generation) number() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(g.ID, "gen-")) // 0, and so oldest, for an id of another form
	return n
}

// revertTotals adds the difference between the two standings to the totals, so that the counts of later calls stay.
func (a *Artifact) revertTotals(from, to *Standing) {
	a.SuccessCount += to.SuccessCount - from.SuccessCount
	a.IntrinsicFailureCount += to.IntrinsicFailureCount - from.IntrinsicFailureCount
	a.AdaptiveFailureCount += to.AdaptiveFailureCount - from.AdaptiveFailureCount
	a.ExtrinsicFailureCount += to.ExtrinsicFailureCount - from.ExtrinsicFailureCount
	a.AuthoredErrorCount += to.AuthoredErrorCount - from.AuthoredErrorCount
	a.FailureCount = a.IntrinsicFailureCount + a.AdaptiveFailureCount + a.ExtrinsicFailureCount
	if a.LastFailureReason == from.LastFailureReason && a.LastFailureClass == from.LastFailureClass {
		a.LastFailureReason, a.LastFailureClass = to.LastFailureReason, to.LastFailureClass
	}
}

// revertGeneration reverts the operation's changes to a generation, which may no longer be current.
func (a *Artifact) revertGeneration(from, to *Standing) {
	g := a.change(to.CurrentID)
	if g == nil {
		return // pruned meanwhile; the totals are reverted anyway
	}
	was, is := &from.Generation, &to.Generation
	g.SuccessCount += is.SuccessCount - was.SuccessCount
	g.IntrinsicFailureCount += is.IntrinsicFailureCount - was.IntrinsicFailureCount
	g.AdaptiveFailureCount += is.AdaptiveFailureCount - was.AdaptiveFailureCount
	g.ExtrinsicFailureCount += is.ExtrinsicFailureCount - was.ExtrinsicFailureCount
	g.AuthoredErrorCount += is.AuthoredErrorCount - was.AuthoredErrorCount
	if was.Window != is.Window {
		g.Window = is.Window + strings.TrimPrefix(g.Window, was.Window)
		g.Window = g.Window[max(0, len(g.Window)-Window):]
	}
	if from.GenerationState != to.GenerationState && g.State == from.GenerationState {
		g.State = to.GenerationState
		if g.ID == a.CurrentID {
			a.LifecycleState = to.LifecycleState
		}
	}
	if g.ID == a.CurrentID && !reflect.DeepEqual(from.Scorecard, to.Scorecard) {
		a.Scorecard = a.Scorecard.with(from.Scorecard, to.Scorecard)
	}
}

// with returns to plus whatever s has counted since from.
func (s Scorecard) with(from, to Scorecard) Scorecard {
	next := to
	next.ContractChecked += s.ContractChecked - from.ContractChecked
	next.ContractPassed += s.ContractPassed - from.ContractPassed
	next.GuardrailExhausted += s.GuardrailExhausted - from.GuardrailExhausted
	next.OutcomeRepairExhausted += s.OutcomeRepairExhausted - from.OutcomeRepairExhausted
	next.WrongToolBoundary += s.WrongToolBoundary - from.WrongToolBoundary
	next.Sessions = slices.Clone(to.Sessions)
	for _, id := range s.Sessions {
		if !slices.Contains(from.Sessions, id) && !slices.Contains(next.Sessions, id) &&
			len(next.Sessions) < maxSessions {
			next.Sessions = append(next.Sessions, id)
		}
	}
	return next
}

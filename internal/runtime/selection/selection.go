// Package selection decides which program answers a call: a stored one, a repaired one or a new one. Select is a pure
// function of the artifact, the contract, the policy and the clock. The package reads nothing and runs nothing.
package selection

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Reasons of a selection. The set is closed.
const (
	ReasonHealthy          = "healthy"
	ReasonPinned           = "pinned"
	ReasonMissing          = "missing" // or corrupt: the store has then moved the file away
	ReasonDispatch         = "dispatch_method"
	ReasonForced           = "force_generation"
	ReasonReadDisabled     = "read_disabled"
	ReasonNotCanary        = "not_a_canary_role"
	ReasonQuarantined      = "quarantined"
	ReasonRequested        = "regenerate_requested"
	ReasonSchema           = "schema_incompatible"
	ReasonRuntime          = "runtime_incompatible"
	ReasonChecksum         = "checksum_mismatch"
	ReasonDependencies     = "dependencies_not_allowed"
	ReasonNotCacheable     = "not_cacheable"
	ReasonArgsIgnored      = "arguments_ignored"
	ReasonContractChanged  = "contract_changed"
	ReasonDegraded         = "degraded"
	ReasonApprovalRequired = "approval_required"
	// the current program reaches further than every predecessor and waits for a person
	ReasonNewReach       = "new_reach"
	ReasonUnproven       = "unproven"     // it never answered with a value, and returned authored errors in a row
	ReasonCorrection     = "correction"   // a person judged an answer wrong
	ReasonNotPromoted    = "not_promoted" // another generation is further in its lifecycle
	ReasonSetter         = "setter"
	ReasonPurposeChanged = "purpose_changed" // a person changed the method's purpose since its program was made
	// as purpose_changed, but the model confirmed the program in this call
	ReasonPurposeChecked = "purpose_checked"
	// the current program was written for a changed purpose, breaks examples, and waits for a person
	ReasonBreaksExamples = "breaks_examples"
)

// An Input holds everything that a selection depends on.
type Input struct {
	Role, Method       string
	HasArgs            bool            // the call has positional or keyword arguments
	Positional         int             // number of positional arguments
	Kwargs             json.RawMessage // keyword arguments
	Artifact           *agent.Artifact // nil if there is none
	CheckedFingerprint string          // fingerprint of the contract's machine-checked parts
	// digest of the registered wording; "" if the call has a wording of its own, or if wording does not count
	Words         agent.WordingDigest
	Policy        *agent.Policy
	Now           time.Time
	ImportAllowed func(path string) bool
	IgnoresArgs   func(g *agent.Generation) bool
	Intact        func(g *agent.Generation) bool // reports whether the text matches its checksum; nil: compute the hash
}

// intact reports whether the text of the generation's program matches its checksum.
func (in *Input) intact(g *agent.Generation) bool {
	if in.Intact == nil {
		return agent.Checksum(g.Code) == g.CodeChecksum
	}
	return in.Intact(g)
}

// Decision is the result of a selection, with the reason and the figures that it used.
type Decision struct {
	Decision   string
	Reason     string
	Generation *agent.Generation // to run or repair, or the predecessor of the program to forge; nil if there is none
	Fallback   *agent.Generation // answers if no new program can be obtained; nil if none may
	Figures    Figures           // set unless the decision is to run
	Reworded   bool              // a person changed the method's purpose since Generation was made
}

// Figures are the numbers that a decision used.
type Figures struct {
	RecentFailureRate float64
	Counted           int // calls in the window
	Successes         int64
	Failures          int64 // counted failures of the generation
	Repairs           int   // since the last regeneration
}

// Select decides which program answers a call. It is pure: the same input gives the same decision.
func Select(in Input) Decision {
	p, a := in.Policy, in.Artifact
	if a == nil {
		return Decision{Decision: agent.DecideForge, Reason: ReasonMissing}
	}
	g := a.Current()
	d := Decision{Decision: agent.DecideForge, Generation: g, Figures: figures(a, g)}
	// The checks are ordered by precedence: what must never run, then what waits for a person, then a person's pin, and
	// only then the contract and the generation's health.
	if d.Reason = forgeReason(in, a, g); d.Reason != "" {
		d.Fallback = fallback(in, a, g, d.Reason)
		if why := in.waits(a, g); why == ReasonNewReach || why == ReasonBreaksExamples {
			d.Generation = in.serving(a) // nobody has approved the newest one as a predecessor
		}
		d.Reworded = in.reworded(d.Generation)
		return d
	}
	if why := in.waits(a, g); why != "" {
		return in.whileWaiting(a, d, why)
	}
	if a.Pinned {
		return Decision{Decision: agent.DecideRun, Reason: ReasonPinned, Generation: g}
	}
	match := a.Matching(in.CheckedFingerprint, func(other *agent.Generation) bool {
		return other == g || in.serves(a, other)
	})
	if in.reworded(match) {
		match = cmp.Or(in.worded(a), match)
	}
	if p.Promotion.Enforce && match != nil && match == g {
		if better := promoted(in, a, g); better != nil {
			return Decision{Decision: agent.DecideRun, Reason: ReasonNotPromoted, Generation: better}
		}
	}
	if why := in.stale(match); why != "" {
		if why == ReasonPurposeChanged {
			return recheck(d, match)
		}
		if d.Reworded = in.reworded(g); in.others(g) {
			d.Reason = why // it must neither be repaired for this call nor answer it
			return d
		}
		d.Fallback = g
		return repairOrForge(d, in, why)
	}
	return Decision{Decision: agent.DecideRun, Reason: ReasonHealthy, Generation: match}
}

// stale returns why the generation that matches the contract must not run as it is, or "".
func (in *Input) stale(match *agent.Generation) string {
	p := in.Policy
	switch {
	case match == nil:
		return ReasonContractChanged
	case in.outdated(match):
		return ReasonPurposeChanged
	case Degraded(match, p.Degraded), p.Promotion.Enforce && match.State == agent.StateDegraded:
		return ReasonDegraded
	case in.HasArgs && in.IgnoresArgs(match) && !match.Ignores(in.Positional, in.Kwargs):
		return ReasonArgsIgnored
	case match.Unproven() && match.AuthoredStreak >= unprovenStreak:
		return ReasonUnproven
	}
	return ""
}

// unprovenStreak is how many authored errors in a row a generation that never answered ok may return before it is
// replaced.
const unprovenStreak = 2

// serves reports whether a generation other than the current one may answer.
func (in *Input) serves(a *agent.Artifact, g *agent.Generation) bool {
	return !g.Aside && in.waits(a, g) == "" && !Degraded(g, in.Policy.Degraded) && forgeReason(*in, a, g) == ""
}

// fallback returns the generation that answers if no new program can be obtained for that reason, or nil. Such a
// generation may run, but a person or the evidence demands another.
func fallback(in Input, a *agent.Artifact, g *agent.Generation, reason string) *agent.Generation {
	switch {
	case reason != ReasonRequested && reason != ReasonCorrection:
		return nil
	case in.Policy.ApprovalRequired, in.waits(a, g) != "", in.others(g):
		return in.serving(a)
	case runnable(in, a, g) != "":
		return nil
	}
	return g
}

// promoted returns the healthy generation for the call's contract that is furthest in its lifecycle: durable before
// probation before candidate, and the newest of equals. It returns nil if that is the current one. It skips restored
// generations outside the current one's lineage.
func promoted(in Input, a *agent.Artifact, current *agent.Generation) *agent.Generation {
	best := current
	for _, g := range a.Generations {
		if g.Restored != nil && !slices.Contains(a.Lineage(), g) {
			continue
		}
		fits := in.CheckedFingerprint == agent.FingerprintNone && g.CheckedFingerprint == current.CheckedFingerprint &&
			!in.others(g) || g.CheckedFingerprint == in.CheckedFingerprint
		if g != current && fits && !in.reworded(g) && StateRank(g.State) > StateRank(best.State) && in.serves(a, g) {
			best = g
		}
	}
	if best == current {
		return nil
	}
	return best
}

// Repairable reports whether a generation selected for that reason is repaired first while the budget lasts.
func Repairable(reason string) bool {
	return reason == ReasonContractChanged || reason == ReasonDegraded || reason == ReasonArgsIgnored ||
		reason == ReasonUnproven
}

// repairOrForge decides to repair while the policy and the budget allow it, otherwise to forge.
func repairOrForge(d Decision, in Input, reason string) Decision {
	d.Decision, d.Reason = agent.DecideForge, reason
	if in.Policy.RepairEnabled && in.Artifact.RepairCountSinceRegen < in.Policy.MaxRepairsBeforeRegen {
		d.Decision = agent.DecideRepair
	}
	return d
}

// forgeReason returns why the generation must not run regardless of its health, or "".
func forgeReason(in Input, a *agent.Artifact, g *agent.Generation) string {
	p := in.Policy
	switch {
	case slices.Contains(p.DispatchMethods, in.Method):
		return ReasonDispatch
	case Switch(p, in.Role) != "":
		return Switch(p, in.Role)
	case a.Quarantined:
		return ReasonQuarantined
	case a.ForceRegenerate != "":
		return ReasonRequested
	case a.Correction.Pending() && p.Correction == agent.CorrectNextCall:
		return ReasonCorrection
	}
	return runnable(in, a, g)
}

// Switch returns the policy's switch that makes each call of the role forge, or "". The forged program answers its
// call without displacing the stored one, which serves again once the switch is off.
func Switch(p *agent.Policy, role string) string {
	switch {
	case p.ForceGeneration:
		return ReasonForced
	case !p.ArtifactReadEnabled:
		return ReasonReadDisabled
	case len(p.ArtifactReadRoles) > 0 && !slices.Contains(p.ArtifactReadRoles, role):
		return ReasonNotCanary
	}
	return ""
}

// runnable returns why the generation cannot run at all, or "".
func runnable(in Input, a *agent.Artifact, g *agent.Generation) string {
	switch {
	case g == nil:
		return ReasonMissing
	case a.SchemaVersion != agent.SchemaVersion:
		return ReasonSchema
	case g.RuntimeVersion != agent.ABI:
		return ReasonRuntime
	case !in.intact(g):
		return ReasonChecksum
	case slices.ContainsFunc(g.Dependencies, func(path string) bool { return !in.ImportAllowed(path) }):
		return ReasonDependencies
	case !g.Cacheable:
		return ReasonNotCacheable
	}
	return ""
}

// Degraded reports whether a generation is degraded. At least MinFailures of its last Window counted results must be
// failures. In addition, either their rate exceeds Rate, or the newest MinFailures are all failures. Older results do
// not count.
func Degraded(g *agent.Generation, p agent.DegradedPolicy) bool {
	recent := g.Window[max(0, len(g.Window)-p.Window):]
	failures := len(recent) - strings.Count(recent, "o")
	if failures < p.MinFailures {
		return false
	}
	row := len(recent) - 1 - strings.LastIndexByte(recent, 'o')
	return row >= p.MinFailures || float64(failures)/float64(len(recent)) > p.Rate
}

// figures returns the numbers of the artifact and the generation. g may be nil.
func figures(a *agent.Artifact, g *agent.Generation) Figures {
	f := Figures{Repairs: a.RepairCountSinceRegen}
	if g != nil {
		f.RecentFailureRate, f.Counted = g.FailureRate()
		f.Successes, f.Failures = g.SuccessCount, g.IntrinsicFailureCount+g.AdaptiveFailureCount
	}
	return f
}

// Logged returns the decision in the form of replies and the log. It omits the figures of a run, which the log has
// as the artifact's counters.
func (d Decision) Logged() agent.Selection {
	s := agent.Selection{Decision: d.Decision, Reason: d.Reason}
	if d.Generation != nil {
		s.Generation = d.Generation.ID
	}
	if d.Decision != agent.DecideRun && d.Generation != nil {
		s.Figures = map[string]any{"recent_failure_rate": d.Figures.RecentFailureRate, "counted": d.Figures.Counted,
			"successes": d.Figures.Successes, "failures": d.Figures.Failures, "repairs_since_regen": d.Figures.Repairs}
	}
	return s
}

// StateRank orders the states for selection. A degraded generation is repaired before it runs, whatever its rank.
func StateRank(state string) int {
	switch state {
	case agent.StateDurable:
		return 3
	case agent.StateProbation:
		return 2
	case agent.StateCandidate:
		return 1
	}
	return 0
}

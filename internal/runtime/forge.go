package runtime

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// failing is what a model is told of the program that it shall mend.
type failing struct {
	code, checksum string
	class          string // intrinsic, adaptive, stale, degraded
	reason         string // of the trigger: an error type or a selection's reason
	message        string
	attempt        attempt // zero when nothing ran
}

func (f failing) text() string {
	text := f.message
	if text == "" {
		text = f.attempt.outcome.ErrorType + ": " + f.attempt.outcome.ErrorMessage
	}
	if f.attempt.hint != "" {
		text += "\n" + f.attempt.hint
	}
	return text
}

// order is what a flight is to bring: a program of that kind, for that reason.
type order struct {
	kind        string // provider.KindForge or KindRepair
	trigger     string
	basis       failing           // of a repair
	predecessor *agent.Generation // what the program would replace; nil for the first one
	alone       bool              // not shared with other calls
}

// budgetExhausted is the trigger of a program that takes the place of one which was repaired often enough.
const budgetExhausted = "regenerate:budget_exhausted"

// forgeTrigger names why a program is written anew. A generation that would have been repaired first, had its budget not
// been spent, says so.
func forgeTrigger(a *agent.Artifact, p *agent.Policy, reason string) string {
	switch {
	case a == nil || len(a.Generations) == 0:
		return "initial_forge"
	case reason == ReasonRequested:
		return "regenerate:" + a.ForceRegenerate
	case mendable(reason) && p.RepairEnabled && a.RepairCountSinceRegen >= p.MaxRepairsBeforeRegen:
		return budgetExhausted
	}
	return "regenerate:" + reason
}

// mend has the generation repaired. A repair that does not serve goes on to a new program in the same call.
func (c *call) mend(ctx context.Context, g *agent.Generation, why failing) agent.Outcome {
	c.found.repairAttempted = true
	trigger := "repair:" + why.reason
	cand, out := c.obtain(ctx, order{kind: provider.KindRepair, trigger: trigger, basis: why, predecessor: g})
	if cand == nil {
		return c.noRepair(ctx, g, why, out)
	}
	if c.p.ApprovalRequired {
		return c.keepUnapproved(cand)
	}
	a := c.tryCandidate(ctx, cand)
	c.serveCandidate(agent.SourceRepaired, cand, a)
	if a.served() {
		return c.settleRepair(cand, a)
	}
	c.note(a)
	c.repairFailed(rejected{cand.generation.Trigger, cand.generation.CodeChecksum, a})
	return c.replace(ctx, g, "regenerate:repair_failed", a)
}

// settleRepair keeps a repair that served. An honest error of a program that proved nothing is no proof of having been
// mended: the predecessor stays, and a repair is spent, so that the budget bounds the chain (P-61). An outage or an
// interruption teaches nothing.
func (c *call) settleRepair(cand *candidate, a attempt) agent.Outcome {
	o := c.settle(cand, a)
	c.found.repairSucceeded = c.adopting != nil
	if c.found.repairSucceeded {
		c.r.metrics.ObserveRepair(true)
	} else if a.class == agent.ClassAuthored {
		c.repairFailed(rejected{cand.generation.Trigger, cand.generation.CodeChecksum, a})
	}
	return o
}

// noRepair ends or goes on when no repaired program could be had: a dead provider or an interruption ends the call, for
// it teaches nothing; refused programs are a failed repair.
func (c *call) noRepair(ctx context.Context, g *agent.Generation, why failing, out *agent.Outcome) agent.Outcome {
	if c.found.class != agent.ClassIntrinsic {
		if why.attempt.id != "" && out.ErrorType == agent.ErrProvider {
			o := c.keep(why.attempt)
			o.Metadata = with(o.Metadata, "repair_error", out.ErrorMessage)
			return o
		}
		return *out
	}
	c.repairFailed(rejected{"repair:" + why.reason, c.found.refused, attempt{stage: stageValidation, outcome: *out}})
	return c.replace(ctx, g, "regenerate:repair_failed", why.attempt)
}

// rejected is a program that was written in the place of a generation and does not get it, and the attempt that showed why.
type rejected struct {
	trigger, checksum string
	attempt           attempt
}

// reject notes the program with its artifact, where there is one.
func (c *call) reject(r rejected, repairFailed bool) {
	if c.artifact == nil {
		return
	}
	o := r.attempt.outcome
	change := agent.ArtifactChange{Role: c.role, MethodName: c.method, At: c.started, RepairFailed: repairFailed, Rejected: &agent.Rejection{At: c.started,
		CallID: c.id, Trigger: r.trigger, CodeChecksum: r.checksum, Stage: r.attempt.stage, Reason: clip(o.ErrorType+": "+o.ErrorMessage, 400), Fixture: brokenFixture(r.attempt)}}
	if policyBreach(o.ErrorType) {
		change.ErrorType = agent.ErrGuardrailExhausted // the promotion gates look at it
	}
	c.changes = append(c.changes, change)
}

func (c *call) repairFailed(r rejected) {
	c.r.metrics.ObserveRepair(false)
	c.reject(r, true)
}

// replace forges a program in the place of a generation that could not be mended.
func (c *call) replace(ctx context.Context, g *agent.Generation, trigger string, last attempt) agent.Outcome {
	if last.outcome.ErrorType != "" {
		c.found.feedback = true
	}
	return c.forge(ctx, g, trigger)
}

// forge has a model write a program anew and runs it. A program that fails is mended within this call's budgets.
func (c *call) forge(ctx context.Context, predecessor *agent.Generation, trigger string) agent.Outcome {
	if predecessor != nil {
		c.r.metrics.ObserveRegeneration()
	}
	o := order{kind: provider.KindForge, trigger: trigger, predecessor: predecessor, alone: c.alone()}
	for {
		cand, out := c.obtain(ctx, o)
		if cand == nil {
			if c.found.class == agent.ClassIntrinsic {
				refused := attempt{stage: stageValidation, outcome: *out}
				c.reject(rejected{trigger, c.found.refused, refused}, false)
				return c.exhausted(refused)
			}
			return *out
		}
		if cand.existing != nil {
			c.artifact = cand.existing
			c.selectProgram() // this call may have arguments that the other one had not
			return c.follow(ctx)
		}
		if c.p.ApprovalRequired {
			return c.keepUnapproved(cand)
		}
		a := c.tryCandidate(ctx, cand)
		c.serveCandidate(agent.SourceGenerated, cand, a)
		if a.served() {
			return c.settle(cand, a)
		}
		c.note(a)
		c.reject(rejected{trigger, cand.generation.CodeChecksum, a}, false)
		if !c.spend(a.stage) {
			c.exhaustedRepairs(a.stage)
			c.keep(a)
			return c.exhausted(a)
		}
		c.found.feedback = true
		o = order{kind: provider.KindRepair, trigger: trigger, predecessor: predecessor, alone: o.alone, basis: failing{code: cand.generation.Code,
			checksum: cand.generation.CodeChecksum, class: string(a.class), reason: a.outcome.ErrorType, attempt: a}}
	}
}

// spend takes one recovery of the attempt's lane, if there is one left.
func (c *call) spend(stage string) bool {
	left, used := &c.budgets.execution, &c.found.executionRepairs
	if stage == stageOutcome || stage == stageProof {
		left, used = &c.budgets.outcome, &c.found.outcomeRepairs
	}
	if *left == 0 {
		return false
	}
	*left--
	*used++
	return true
}

// exhaustedRepairs tells the artifact's scorecard that a value could not be mended within the call.
func (c *call) exhaustedRepairs(stage string) {
	if c.artifact != nil && stage == stageOutcome {
		c.changes = append(c.changes, agent.ArtifactChange{Role: c.role, MethodName: c.method, At: c.started, ErrorType: agent.ErrOutcomeRepairExhausted})
	}
}

// alone reports whether the program is for this call only: a switch demands a new one each time, or the method's
// programs answer one question.
func (c *call) alone() bool {
	switch c.decision.Reason {
	case ReasonDispatch, ReasonForced, ReasonReadDisabled, ReasonNotCanary, ReasonNotCacheable, ReasonQuarantined:
		return true
	}
	return c.dispatch()
}

// keepUnapproved stores the candidate without running it: a person has to approve it first.
func (c *call) keepUnapproved(cand *candidate) agent.Outcome {
	if c.artifact != nil && (c.artifact.Quarantined || c.artifact.Pinned) {
		return c.waitsForApproval() // a person holds the artifact as it is
	}
	c.adopting = &adoption{candidate: cand, result: agent.ClassNone}
	return c.waitsForApproval()
}

// settle keeps a candidate that served, where it may be kept, and answers the call with its outcome.
func (c *call) settle(cand *candidate, a attempt) agent.Outcome {
	proven := len(cand.proof.kept) > 0
	switch {
	case c.artifact != nil && (c.artifact.Quarantined || c.artifact.Pinned):
		// a person holds the artifact as it is
	case a.class == agent.ClassOK,
		a.class == agent.ClassAuthored && (a.outcome.ErrorType == agent.ErrInvalidInput || proven):
		c.adopting = &adoption{candidate: cand, result: a.class, attempt: a}
	}
	return c.keep(a)
}

// tryCandidate runs a candidate, once it has proved that it answers as its predecessor did.
func (c *call) tryCandidate(ctx context.Context, cand *candidate) attempt {
	if broken := c.prove(ctx, cand, c.drifted); broken != nil {
		return *broken
	}
	c.progress.tell(EventRunning, map[string]any{"trigger": cand.generation.Trigger, "checksum": cand.generation.CodeChecksum})
	return c.try(ctx, &cand.generation)
}

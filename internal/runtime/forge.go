package runtime

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// failing describes the program that the model is to repair.
type failing struct {
	code, checksum string
	class          string       // intrinsic, adaptive, stale, degraded
	reason         string       // of the trigger: an error type or a selection's reason
	message        prompt.Quote // zero: what the attempt ended in
	attempt        judged       // zero when nothing ran
}

// failure is what the prompt says of the failure.
func (c *opened) failure(f *failing) []prompt.Quote {
	message := f.message
	if message == (prompt.Quote{}) {
		message = c.mine(f.attempt.outcome.ErrorType + ": " + f.attempt.outcome.ErrorMessage)
	}
	return []prompt.Quote{message, f.attempt.hint}
}

// A forgeRequest describes the program to forge.
type forgeRequest struct {
	kind        string // provider.KindForge or KindRepair
	trigger     string
	basis       failing           // of a repair
	predecessor *agent.Generation // what the program would replace; nil for the first one
	alone       bool              // not shared with other calls
	recheck     bool              // predecessor is shown: a person has changed what the method is for since it was made
}

// budgetExhausted is the trigger of a program that replaces one which was repaired often enough.
const budgetExhausted = "regenerate:budget_exhausted"

// forgeTrigger names why a new program is forged. A generation that would have been repaired first, had its budget not
// been used up, gets a trigger of its own.
func forgeTrigger(a *agent.Artifact, p *agent.Policy, reason string) string {
	switch {
	case a == nil || len(a.Generations) == 0:
		return "initial_forge"
	case reason == ReasonCorrection:
		return reasonOfCorrection
	case reason == ReasonRequested:
		return "regenerate:" + a.ForceRegenerate
	case repairable(reason) && p.RepairEnabled && a.RepairCountSinceRegen >= p.MaxRepairsBeforeRegen:
		return budgetExhausted
	}
	return "regenerate:" + reason
}

// repair has the generation repaired. When the repair fails, the same call goes on to a new program.
func (rec *recovery) repair(ctx context.Context, g *agent.Generation, why failing) agent.Outcome {
	cand, out := rec.obtain(ctx, forgeRequest{kind: provider.KindRepair, trigger: "repair:" + why.reason, basis: why,
		predecessor: g})
	if cand == nil {
		return rec.noRepair(ctx, g, why, out)
	}
	if why.attempt.id != "" {
		rec.trail.countRepair(why.attempt.stage)
	}
	j := rec.tryCandidate(ctx, cand)
	if j.id == "" {
		return rec.keepUnapproved(cand)
	}
	rec.ranCandidate(agent.SourceRepaired, cand, j)
	if j.served() {
		return rec.adoptRepair(ctx, cand, j)
	}
	rec.note(j)
	rec.repairFailed(rejected{cand.generation.Trigger, cand.generation.CodeChecksum, j})
	if j.overran {
		return rec.keep(j)
	}
	return rec.replace(ctx, g, "regenerate:repair_failed", j)
}

// adoptRepair keeps a successful repair. An authored error of a program that reproduced no fixture does not show that the
// fault is repaired: then the predecessor stays, and the repair counts against the budget, which bounds the chain. An
// outage or an interruption teaches nothing.
func (rec *recovery) adoptRepair(ctx context.Context, cand *candidate, j judged) agent.Outcome {
	o := rec.adoptOrDrop(ctx, cand, j)
	if rec.adopting == nil && j.class == agent.ClassAuthored && !rec.reused {
		rec.repairFailed(rejected{cand.generation.Trigger, cand.generation.CodeChecksum, j})
	}
	return o
}

// noRepair goes on when no repaired program could be had. A failing provider or an interruption ends the call, since it
// teaches nothing; refused programs are a failed repair.
func (rec *recovery) noRepair(ctx context.Context, g *agent.Generation, why failing, out *agent.Outcome) agent.Outcome {
	if rec.class != agent.ClassIntrinsic {
		if why.attempt.id != "" && modelOut(out) {
			rec.outage = true
			o := rec.keep(why.attempt)
			o.Metadata = with(o.Metadata, "repair_error", out.ErrorMessage)
			return o
		}
		return *out
	}
	rec.repairFailed(rejected{"repair:" + why.reason, rec.trail.refused, judged{stage: stageValidation, outcome: *out}})
	return rec.replace(ctx, g, "regenerate:repair_failed", why.attempt)
}

// rejected is a program that was forged to replace a generation and does not, and the attempt that showed why.
type rejected struct {
	trigger, checksum string
	attempt           judged
}

// reject records the program at its artifact, where there is one.
func (rec *recovery) reject(r rejected, repairFailed bool) {
	if rec.artifact == nil {
		return
	}
	change := agent.ArtifactChange{Role: rec.role, MethodName: rec.method, At: rec.started, RepairFailed: repairFailed,
		Rejected: rec.rejection(r, rec.started)}
	if policyBreach(r.attempt.outcome.ErrorType) && !rec.underSwitch() {
		change.ErrorType = agent.ErrGuardrailExhausted // the promotion gates look at it
	}
	rec.changes = append(rec.changes, change)
}

// rejection is what an artifact keeps of the program. Only models see the hint, and only in requests of the same owner's.
func (c *opened) rejection(r rejected, at time.Time) *agent.Rejection {
	o := r.attempt.outcome
	return &agent.Rejection{At: at, CallID: c.id, Owner: agent.LoggedOwner(c.reader()), Trigger: r.trigger,
		CodeChecksum: r.checksum, Stage: r.attempt.stage, Reason: Clip(c.mask(o.ErrorType+": "+o.ErrorMessage), 400),
		Hint: Clip(c.mask(r.attempt.hint.For(c.reader())), 1200), Fixture: r.attempt.fixture,
		Example: r.attempt.example}
}

func (rec *recovery) repairFailed(r rejected) { rec.reject(r, true) }

// replace forges a program to replace a generation that could not be repaired.
func (rec *recovery) replace(ctx context.Context, g *agent.Generation, trigger string, last judged) agent.Outcome {
	if last.outcome.ErrorType != "" {
		rec.trail.feedback = true
	}
	return rec.forge(ctx, g, trigger)
}

// forge has a model write a new program and runs it. A failing program is repaired within this call's budgets.
func (rec *recovery) forge(ctx context.Context, predecessor *agent.Generation, trigger string) agent.Outcome {
	q := forgeRequest{kind: provider.KindForge, trigger: trigger, predecessor: predecessor, alone: rec.alone(),
		recheck: rec.decision.Reason == ReasonPurposeChanged}
	for {
		cand, out := rec.obtain(ctx, q)
		switch {
		case cand == nil:
			return rec.noProgram(trigger, out)
		case cand.existing != nil:
			rec.selected = rec.of(cand.existing) // this call may have arguments that the other one had not
			return rec.follow(ctx)
		}
		j, answer := rec.tryForged(ctx, cand)
		if answer != nil {
			return *answer
		}
		rec.note(j)
		rec.reject(rejected{trigger, cand.generation.CodeChecksum, j}, false)
		if j.overran || !rec.spend(&j, q.basis) {
			rec.countExhaustion(j.stage)
			rec.keep(j)
			return rec.exhausted(j)
		}
		rec.trail.feedback = true
		q = forgeRequest{kind: provider.KindRepair, trigger: trigger, predecessor: predecessor, alone: q.alone,
			basis: failing{code: cand.generation.Code,
				checksum: cand.generation.CodeChecksum, class: string(j.class), reason: j.outcome.ErrorType,
				attempt: j}}
	}
}

// tryForged returns the answer of what the model gave, where that serves, else the attempt that shows why it does not.
func (rec *recovery) tryForged(ctx context.Context, cand *candidate) (j judged, answer *agent.Outcome) {
	var o agent.Outcome
	switch j = rec.tryKept(ctx, cand); {
	case cand.keeps && j.id == "":
		o = rec.keepProgram(ctx, cand)
	case cand.keeps && j.served(): // it was interrupted
		o = rec.keep(j)
	case cand.keeps:
		return j, nil
	default:
		if j = rec.tryCandidate(ctx, cand); j.id == "" {
			o = rec.keepUnapproved(cand)
			break
		}
		if rec.ranCandidate(agent.SourceGenerated, cand, j); !j.served() {
			return j, nil
		}
		o = rec.adoptOrDrop(ctx, cand, j)
	}
	return j, &o
}

// noProgram ends a call for which no program could be had.
func (rec *recovery) noProgram(trigger string, out *agent.Outcome) agent.Outcome {
	if rec.class != agent.ClassIntrinsic {
		return *out
	}
	refused := judged{stage: stageValidation, outcome: *out}
	rec.reject(rejected{trigger, rec.trail.refused, refused}, false)
	return rec.exhausted(refused)
}

// countExhaustion adds to the artifact's scorecard that a value could not be repaired within the call.
func (rec *recovery) countExhaustion(stage string) {
	if rec.artifact != nil && stage == stageOutcome && rec.policy.RepairEnabled && !rec.underSwitch() {
		rec.changes = append(rec.changes, agent.ArtifactChange{Role: rec.role, MethodName: rec.method, At: rec.started,
			ErrorType: agent.ErrOutcomeRepairExhausted})
	}
}

// alone reports whether the program is for this call only: a switch demands a new one each time, or the method's
// programs answer one question.
func (s *selected) alone() bool {
	switch s.decision.Reason {
	case ReasonDispatch, ReasonNotCacheable:
		return true
	}
	return s.switchedOff() || s.dispatch()
}

// askedByPerson reports whether a person asked for another program: it may answer differently than its predecessor.
func (rec *recovery) askedByPerson() bool { return rec.personAsked() }

func (s *selected) personAsked() bool {
	return s.decision.Reason == ReasonRequested || s.decision.Reason == ReasonCorrection
}

// tryCandidate runs a candidate, once it has proved that it holds what people expect and answers as its predecessor did.
// It returns no attempt when the candidate has to wait for a person's approval first.
func (rec *recovery) tryCandidate(ctx context.Context, cand *candidate) judged {
	if broken := rec.prove(ctx, cand, rec.adaptive, rec.askedByPerson()); broken != nil {
		return *broken
	}
	if rec.policy.ApprovalRequired || cand.beyond.Load() != nil || len(cand.proof.breaks) > 0 {
		return judged{}
	}
	rec.progress.Add(progress.Running, map[string]any{"trigger": cand.generation.Trigger,
		"checksum": cand.generation.CodeChecksum})
	j := rec.try(ctx, &cand.generation, rec.guardOf(cand))
	if cand.wentBeyond(j.guard) {
		return judged{}
	}
	if j.misnamed() && (!j.misfit || cand.generation.Trigger == widening) { // it was written for this very call
		j.class, j.hint = agent.ClassIntrinsic, rec.mine(j.unread()+" to this program. The call gives them.")
	}
	return j
}

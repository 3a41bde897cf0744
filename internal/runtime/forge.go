package runtime

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/correct"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// budgetExhausted is the trigger of a program that replaces one whose repair budget is used up.
const budgetExhausted = "regenerate:budget_exhausted"

// forgeTrigger names why a new program is forged. A generation that would be repaired if its repair budget were not
// used up has its own trigger.
func forgeTrigger(a *agent.Artifact, p *agent.Policy, reason string) string {
	switch {
	case a == nil || len(a.Generations) == 0:
		return "initial_forge"
	case reason == selection.ReasonCorrection:
		return correct.Trigger
	case reason == selection.ReasonRequested:
		return "regenerate:" + a.ForceRegenerate
	case selection.Repairable(reason) && p.RepairEnabled && a.RepairCountSinceRegen >= p.MaxRepairsBeforeRegen:
		return budgetExhausted
	}
	return "regenerate:" + reason
}

// repair requests a repair of the generation and runs it. If the repair fails, the same call forges a new program.
func (rec *recovery) repair(ctx context.Context, g *agent.Generation, why forge.Failing) agent.Outcome {
	cand, out := rec.obtain(ctx, forge.Request{Kind: provider.KindRepair, Trigger: "repair:" + why.Reason, Basis: why,
		Predecessor: g})
	if cand == nil {
		return rec.noRepair(ctx, g, why, out)
	}
	if why.Attempt.ID != "" {
		rec.trail.CountRepair(why.Attempt.Stage)
	}
	t := rec.tryCandidate(ctx, cand)
	j := t.attempt
	if j.ID == "" {
		return rec.keepUnapproved(&t)
	}
	rec.ranCandidate(agent.SourceRepaired, cand, j)
	if j.Served() {
		return rec.adoptRepair(ctx, &t)
	}
	rec.note(j)
	rec.repairFailed(cand.Rejected(j))
	if j.Overran {
		return rec.keep(j)
	}
	return rec.replace(ctx, g, "regenerate:repair_failed", j)
}

// adoptRepair adopts a successful repair. If the program returned an authored error and reproduced no fixture, nothing
// shows that the fault is repaired. In that case the predecessor stays, and the repair counts against the budget, which
// bounds the chain. An outage or an interruption counts neither way.
func (rec *recovery) adoptRepair(ctx context.Context, t *tried) agent.Outcome {
	o := rec.adoptOrDrop(ctx, t)
	if rec.adopting == nil && t.attempt.Class == agent.ClassAuthored && !rec.trail.Reused {
		rec.repairFailed(t.Rejected(t.attempt))
	}
	return o
}

// noRepair continues after no repaired program could be obtained. A failing provider or an interruption ends the call,
// because it proves nothing about the program. If the gate refused the programs, the repair has failed.
func (rec *recovery) noRepair(ctx context.Context, g *agent.Generation, why forge.Failing,
	out *agent.Outcome) agent.Outcome {
	if rec.class != agent.ClassIntrinsic {
		if why.Attempt.ID != "" && forge.ModelOut(out) {
			rec.outage = true
			o := rec.keep(why.Attempt)
			o.Metadata = judge.With(o.Metadata, "repair_error", out.ErrorMessage)
			return o
		}
		return *out
	}
	rec.repairFailed(forge.Rejected{Trigger: "repair:" + why.Reason, Checksum: rec.trail.refused,
		Attempt: judge.Judged{Stage: attempt.StageValidation, Outcome: *out}})
	return rec.replace(ctx, g, "regenerate:repair_failed", why.Attempt)
}

// reject records the program in its artifact, if there is one.
func (rec *recovery) reject(r forge.Rejected, repairFailed bool) {
	if rec.Artifact == nil {
		return
	}
	change := agent.ArtifactChange{Role: rec.Role, MethodName: rec.Method, At: rec.Started, RepairFailed: repairFailed,
		Rejected: r.Kept(rec.Call, rec.Started)}
	if policyBreach(r.Attempt.Outcome.ErrorType) && !rec.UnderSwitch() {
		change.ErrorType = agent.ErrGuardrailExhausted // the promotion gates count it
	}
	rec.changes = append(rec.changes, change)
}

func (rec *recovery) repairFailed(r forge.Rejected) { rec.reject(r, true) }

// replace forges a program to replace a generation that could not be repaired.
func (rec *recovery) replace(ctx context.Context, g *agent.Generation, trigger string,
	last judge.Judged) agent.Outcome {
	if last.Outcome.ErrorType != "" {
		rec.trail.Feedback = true
	}
	return rec.forge(ctx, g, trigger)
}

// forge asks a model for a new program and runs it. A failing program is repaired within the call's retry budgets.
func (rec *recovery) forge(ctx context.Context, predecessor *agent.Generation, trigger string) agent.Outcome {
	q := forge.Request{Kind: provider.KindForge, Trigger: trigger, Predecessor: predecessor, Alone: rec.Alone(),
		Recheck: rec.Decision.Reason == selection.ReasonPurposeChanged}
	for {
		cand, out := rec.obtain(ctx, q)
		switch {
		case cand == nil:
			return rec.noProgram(trigger, out)
		case cand.Existing != nil:
			rec.selected = rec.of(cand.Existing) // select again: this call may have arguments that the other one lacked
			return rec.follow(ctx)
		}
		j, answer := rec.tryForged(ctx, cand)
		if answer != nil {
			return *answer
		}
		rec.note(j)
		rec.reject(forge.Rejected{Trigger: trigger, Checksum: cand.Generation.CodeChecksum, Attempt: j}, false)
		if j.Overran || !rec.trail.Spend(&j, q.Basis) {
			rec.countExhaustion(j.Stage)
			rec.keep(j)
			return exhausted(j, rec.Depth, &rec.trail.Ledger)
		}
		rec.trail.Feedback = true
		q = forge.Request{Kind: provider.KindRepair, Trigger: trigger, Predecessor: predecessor, Alone: q.Alone,
			Basis: forge.Failing{Code: cand.Generation.Code,
				Checksum: cand.Generation.CodeChecksum, Class: string(j.Class), Reason: j.Outcome.ErrorType,
				Attempt: j}}
	}
}

// tryForged tries the model's reply. It returns the answer if the reply serves, otherwise the attempt that shows why it
// does not.
func (rec *recovery) tryForged(ctx context.Context, cand *forge.Candidate) (j judge.Judged, answer *agent.Outcome) {
	var o agent.Outcome
	switch j = rec.tryKept(ctx, cand); {
	case cand.Keeps && j.ID == "":
		o = rec.keepProgram(ctx, cand)
	case cand.Keeps && j.Served(): // interrupted
		o = rec.keep(j)
	case cand.Keeps:
		return j, nil
	default:
		t := rec.tryCandidate(ctx, cand)
		if j = t.attempt; j.ID == "" {
			o = rec.keepUnapproved(&t)
			break
		}
		if rec.ranCandidate(agent.SourceGenerated, cand, j); !j.Served() {
			return j, nil
		}
		o = rec.adoptOrDrop(ctx, &t)
	}
	return j, &o
}

// noProgram ends a call for which no program could be obtained.
func (rec *recovery) noProgram(trigger string, out *agent.Outcome) agent.Outcome {
	if rec.class != agent.ClassIntrinsic {
		return *out
	}
	refused := judge.Judged{Stage: attempt.StageValidation, Outcome: *out}
	rec.reject(forge.Rejected{Trigger: trigger, Checksum: rec.trail.refused, Attempt: refused}, false)
	return exhausted(refused, rec.Depth, &rec.trail.Ledger)
}

// countExhaustion records in the artifact's scorecard that a value could not be repaired within the call.
func (rec *recovery) countExhaustion(stage string) {
	if rec.Artifact != nil && stage == attempt.StageOutcome && rec.Policy.RepairEnabled && !rec.UnderSwitch() {
		rec.changes = append(rec.changes, agent.ArtifactChange{Role: rec.Role, MethodName: rec.Method, At: rec.Started,
			ErrorType: agent.ErrOutcomeRepairExhausted})
	}
}

// tried is a candidate with its proof, and with its attempt if it ran.
type tried struct {
	*forge.Candidate
	proof proof.Verdict
	// the failed proof if there is one; zero if the candidate must wait for a person's approval before it runs
	attempt judge.Judged
}

// tryCandidate proves the candidate against examples and fixtures, then runs it.
func (rec *recovery) tryCandidate(ctx context.Context, cand *forge.Candidate) tried {
	t := tried{Candidate: cand, proof: rec.prove(ctx, cand, rec.PersonAsked())}
	if t.proof.Broken != nil {
		t.attempt = *t.proof.Broken
		return t
	}
	if rec.Policy.ApprovalRequired || cand.Beyond.Load() != nil || len(t.proof.Breaks) > 0 {
		return t
	}
	rec.Progress.Add(progress.Running, map[string]any{"trigger": cand.Generation.Trigger,
		"checksum": cand.Generation.CodeChecksum})
	j := rec.try(ctx, &cand.Generation, proof.GuardOfCandidate(&rec.Selection, cand.Candidate))
	if cand.WentBeyond(j.Guard) {
		return t
	}
	// the program was written for this very call
	if j.Misnamed() && (!j.Misfit || cand.Generation.Trigger == forge.Widening) {
		j.Class, j.Hint = agent.ClassIntrinsic, rec.Mine(j.Unread()+" to this program. The call gives them.")
	}
	t.attempt = j
	return t
}

// prove proves the candidate for this call. mayChange means that it may answer differently from its predecessor.
func (rec *recovery) prove(ctx context.Context, cand *forge.Candidate, mayChange bool) proof.Verdict {
	against := rec.Against
	against.Adaptive, against.MayChange = rec.adaptive, mayChange
	return proof.Prove(ctx, cand.Candidate, &against)
}

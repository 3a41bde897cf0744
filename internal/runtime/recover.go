package runtime

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/classify"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// A recovery takes a selected call to its answer. It runs programs, and repairs or replaces failing ones within the
// call's budgets. One goroutine owns it. It builds up the answered call.
type recovery struct {
	*answered
	outage bool         // the provider failed, so the failure does not count against the method
	waits  bool         // a candidate waits for a person, and the previous program answers
	failed judge.Judged // the stored program's attempt; zero if it did not run
}

// serve answers the call according to its selection.
func (s selected) serve(ctx context.Context, c *opened) *answered {
	rec := recovery{answered: &answered{open: c, selected: s}}
	rec.trail.Open(s.Policy)
	rec.changes = rec.room[:0]
	for _, w := range s.Terms.Warnings {
		rec.trail.warn(w)
	}
	rec.stages.Select = s.Took
	rec.outcome = rec.follow(ctx)
	return rec.answered
}

// follow carries out the selection's decision.
func (rec *recovery) follow(ctx context.Context) agent.Outcome {
	g := rec.Decision.Generation
	switch wait, is := rec.course(); is {
	case courseRun:
		return rec.runStored(ctx, g)
	case courseRefuse:
		return rec.refused()
	case courseWait:
		return rec.fallBack(ctx, rec.triedBefore(wait))
	}
	var o agent.Outcome
	if rec.Decision.Decision == agent.DecideRepair {
		o = rec.repairFirst(ctx, g)
	} else {
		o = rec.forge(ctx, g, forgeTrigger(rec.Artifact, rec.Policy, rec.Decision.Reason))
	}
	// another call stored a program meanwhile, or the model judged that the stored one still serves
	if rec.source == agent.SourcePersisted || rec.Decision.Decision == agent.DecideRun {
		return o
	}
	return rec.fallBack(ctx, rec.updateBackoff(o))
}

// A course is how a call continues after its selection.
type course int

const (
	courseForge  course = iota // request a program, or use one held from an earlier call
	courseRun                  // run the selected generation
	courseWait                 // forging just failed: only the fallback may answer
	courseRefuse               // the program waits for a person
)

// course returns how the call continues, and the delay if the course is courseWait.
func (s *selected) course() (wait forge.Backoff, is course) {
	switch s.Decision.Decision {
	case agent.DecideRun:
		return wait, courseRun
	case agent.DecideRefuse:
		return wait, courseRefuse
	}
	if wait, yes := s.r.forges.Waits(&s.Selection); yes {
		return wait, courseWait
	}
	return wait, courseForge
}

// answersStored reports whether a stored program answers the call without a model request.
func (s *selected) answersStored() bool {
	_, is := s.course()
	return is == courseRun || is == courseWait && s.Decision.Fallback != nil
}

// refused answers a call whose only program waits for a person.
func (rec *recovery) refused() agent.Outcome {
	if rec.Decision.Reason == selection.ReasonNewReach {
		return rec.waitsForApproval(rec.Artifact.Current().Beyond)
	}
	return rec.waitsForApproval(nil)
}

// fallBack answers with the fallback program if no new program could be obtained: a repair, regeneration or correction
// must not take a working program out of service before it succeeds. o is the answer without a fallback.
func (rec *recovery) fallBack(ctx context.Context, o agent.Outcome) agent.Outcome {
	g := rec.Decision.Fallback
	if g == nil || o.OK() || ctx.Err() != nil || rec.adopting != nil && !rec.waits {
		return o
	}
	j := rec.try(ctx, g, proof.GuardFor(&rec.Selection))
	rec.count(ctx, g, j)
	if rec.adopting == nil && (rec.class == agent.ClassAuthored || rec.last.Unallowed) && !j.Outcome.OK() {
		// keep the candidate's error: it is honest, or names what a person can do, and the old program has no value
		// either
		return o
	}
	rec.ran(agent.SourcePersisted, g, j)
	if !j.Served() {
		rec.note(j)
	}
	answer := rec.keep(j)
	if after, waits := o.Metadata["retry_after_ms"]; waits && !answer.OK() {
		answer.Metadata, answer.Retriable = judge.With(answer.Metadata, "retry_after_ms", after), true
	}
	if rec.waits {
		return withWaiting(&rec.Selection, answer, rec.adopting.waitsFor())
	}
	return answer
}

// try runs and judges a stored generation or a candidate, within the limits of the guard.
func (rec *recovery) try(ctx context.Context, g *agent.Generation, guard *attempt.Guard) judge.Judged {
	rec.attempts++
	a := attempt.Run(ctx, attempt.Request{Call: rec.Call, Memory: rec.Memory, Attempt: rec.ID + "." +
		strconv.Itoa(rec.attempts),
		Program: g, Guard: guard, Nester: nester{rec.r}})
	rec.predicted.Add(a.Predicted)
	rec.stages.Gate += a.Result.Timing.Gate + a.Result.Timing.Build
	rec.trail.Built += a.Result.Timing.Build
	rec.stages.Run += a.Result.Timing.Run
	began := rec.Env.Now()
	j := judge.Attempt(ctx, &rec.Selection, a)
	ended := rec.Env.Now()
	rec.stages.Judge += ended.Sub(began)
	traceAttempt(rec.Call, &a, began, ended)
	rec.noteReach(&j)
	return j
}

// runStored runs a stored generation. If it fails, the call recovers: first by repair, then by a new program.
func (rec *recovery) runStored(ctx context.Context, g *agent.Generation) agent.Outcome {
	j := rec.try(ctx, g, proof.GuardFor(&rec.Selection))
	rec.ran(agent.SourcePersisted, g, j)
	rec.count(ctx, g, j)
	// Remember the attempt even if it served: a widened program may replace it and then wait for approval.
	rec.failed, rec.Reached = j, j.EffectsOfRun()
	// An invalid_input counts as served, so a program that misses callers' names is widened before that check.
	if rec.widens(g, j) {
		return rec.updateBackoff(rec.widen(ctx, g, j))
	}
	if j.Served() {
		return rec.keep(j)
	}
	rec.note(j)
	if j.Class == agent.ClassAdaptive {
		rec.drifted = classify.ChangedSources(classify.Evidence{Fetches: j.Result.Effects.Fetches, Shapes: g.Shapes,
			Outlines: g.Outlines,
			Words:    rec.Env.Words.Of(g)})
		rec.adaptive = true
	}
	switch {
	case j.Overran, rec.Artifact.Pinned, rec.Decision.Reason == selection.ReasonApprovalRequired:
		return rec.keep(j)
	case rec.Decision.Reason == selection.ReasonBreaksExamples:
		return rec.keep(j)
	case rec.Decision.Reason == selection.ReasonNewReach: // a newer program waits already
		return withWaiting(&rec.Selection, rec.keep(j), rec.Artifact.Current().Beyond)
	}
	if wait, yes := rec.r.forges.Waits(&rec.Selection); yes {
		o := rec.keep(j)
		o.Metadata, o.Retriable = judge.With(o.Metadata, "retry_after_ms",
			wait.Until.Sub(rec.Env.Now()).Milliseconds()), true
		return o
	}
	return rec.updateBackoff(rec.recoverFrom(ctx, g, j))
}

// recoverFrom repairs a failing stored generation, or replaces it if its repairs are used up or switched off.
func (rec *recovery) recoverFrom(ctx context.Context, g *agent.Generation, j judge.Judged) agent.Outcome {
	switch {
	case !rec.Policy.RepairEnabled:
		return rec.replace(ctx, g, "regenerate:repair_disabled", j)
	case rec.Artifact.RepairCountSinceRegen >= rec.Policy.MaxRepairsBeforeRegen:
		return rec.replace(ctx, g, budgetExhausted, j)
	}
	return rec.repair(ctx, g, forge.Failing{Code: g.Code, Checksum: g.CodeChecksum, Class: string(j.Class),
		Reason: rec.NamedType(j.Outcome.ErrorType), Attempt: j})
}

// repairFirst repairs a generation that must not run as it is: its contract changed, it ignores arguments that matter,
// it fails too often, or it has returned nothing but errors.
func (rec *recovery) repairFirst(ctx context.Context, g *agent.Generation) agent.Outcome {
	why := forge.Failing{Code: g.Code, Checksum: g.CodeChecksum, Class: "stale", Reason: rec.Decision.Reason}
	switch rec.Decision.Reason {
	case selection.ReasonContractChanged:
		why.Message = prompt.Public(
			"The contract changed since this program was written. It must keep the contract given above." +
				rec.rewordedToo(g))
	case selection.ReasonArgsIgnored:
		why.Message = prompt.Public("This program ignores its arguments; the call has arguments that must matter.")
	case selection.ReasonUnproven:
		why.Class = selection.ReasonUnproven
		why.Message = prompt.Public(fmt.Sprintf(
			"This program has never answered with a value. Its last %d answers were errors that it returned.",
			g.AuthoredStreak))
	default:
		why.Class = "degraded"
		often := fmt.Sprintf("This program fails too often: %.0f%% of its recent calls.",
			100*rec.Decision.Figures.RecentFailureRate)
		why.Message = rec.Quote(cmp.Or(rec.Artifact.LastFailureOwner, agent.LocalOwner),
			often+" Last failure: "+rec.Artifact.LastFailureReason, often)
		if rec.Artifact.LastFailureClass != agent.ClassNone {
			why.Class = string(rec.Artifact.LastFailureClass)
		}
		// only if this program met the changed source, not just an earlier one
		if rec.Artifact.LastFailureClass == agent.ClassAdaptive && g.AdaptiveFailureCount > 0 {
			rec.adaptive, rec.drifted = true, classify.SourcesOf(rec.Artifact, g)
		}
	}
	return rec.repair(ctx, g, why)
}

// count adds the result of a stored generation's run to its artifact. An interrupted run does not count.
func (rec *recovery) count(ctx context.Context, g *agent.Generation, j judge.Judged) {
	if j.Class == agent.ClassNone {
		return
	}
	change := agent.ArtifactChange{Role: rec.Role, MethodName: rec.Method, At: rec.Started, ResultOf: g.ID,
		Result:    j.Class,
		SessionID: rec.Session.ID, Checked: j.Checked, CheckPassed: j.Passed(), Drifting: j.Drifting,
		Misnamed: j.Misnamed(), Unrun: j.Misfit}
	if g.Interface == nil {
		change.Interface = j.Takes // generations of earlier versions have no interface
	}
	if j.Outcome.OK() {
		change.Caller, change.Answered = callerOf(rec.Call, g), judge.AnsweredInput(rec.Call, j)
		change.Fixture = rec.ProvenFixture(ctx, g, j)
		change.Effects, change.Grow = j.FirstSeen(g.Effects), rec.Policy.Effects == agent.EffectsObserve
		if j.Shapes != nil && !maps.Equal(j.Shapes, g.Shapes) {
			change.Shapes, change.Outlines, change.Owner = j.Shapes, j.Outlines, agent.LoggedOwner(rec.Reader())
		}
	} else {
		change.ErrorType, change.Reason, change.Owner = j.Outcome.ErrorType,
			agent.Clip(rec.Mask(j.Outcome.ErrorMessage), 400), agent.LoggedOwner(rec.Reader())
		if !j.Misfit || j.Misnamed() { // a missing argument proves nothing
			change.Failure = forge.FailureOf(rec.Call, g, j)
		}
	}
	rec.changes = append(rec.changes, change)
}

// note records a failed attempt in the call's trail.
func (rec *recovery) note(j judge.Judged) {
	if rec.trail.Note(rec.Call, &j) && (j.Stage == attempt.StageExecution || j.Stage == attempt.StageOutcome) {
		rec.trail.rolledBack = true
	}
}

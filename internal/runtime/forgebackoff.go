package runtime

import (
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/correct"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
)

// ForgetFailures lets the method be forged again at once, because a person's operation on it is a new beginning. If
// replicas share the store, the others learn of the operation from the change feed.
func (r *Runtime) ForgetFailures(role, method string) {
	r.forges.ClearMethod(turns.Method{Role: role, Method: method})
}

// triedBefore returns the outcome of a call during the delay after a failed forge. It reveals nothing about other
// callers' requests.
func (rec *recovery) triedBefore(wait forge.Backoff) agent.Outcome {
	errorType := wait.ErrorType
	if wait.Owner != rec.Reader() {
		errorType = rec.NamedType(errorType)
	}
	o := agent.Failed(errorType, "no program could be had for this method a moment ago; it is tried again later")
	o.Metadata = map[string]any{"retry_after_ms": wait.Until.Sub(rec.Env.Now()).Milliseconds()}
	o.Retriable = true
	rec.class = agent.ClassIntrinsic
	return o
}

// updateBackoff records how forging ended, and returns the outcome unchanged. A success clears earlier failures; a
// failure delays the next attempt.
//
// A candidate that only gave an honest error counts as neither. It is held instead of adopted and runs in the calls of
// the delay; the first call that it answers with a value adopts it. A first candidate that reported that the task
// belongs to another tool runs after the delay as well. A candidate whose source failed is held in the same way,
// because the failure is not evidence against it. A candidate that needs a person's approval is held until it has the
// approval.
func (rec *recovery) updateBackoff(o agent.Outcome) agent.Outcome {
	forged := rec.trail.Requested > 0 || len(rec.trail.Leaves) > 0
	honest := rec.fresh != nil && (rec.class == agent.ClassAuthored || rec.last.Unallowed)
	switch {
	case rec.trail.Slow:
		rec.pause(forge.Lapse{ErrorType: o.ErrorType, Owner: rec.Reader(), Waited: rec.Patience()})
	case rec.Decision.Reason == selection.ReasonPurposeChanged && o.ErrorType == agent.ErrProvider && !o.Authored:
		rec.pause(forge.Lapse{ErrorType: o.ErrorType, Owner: rec.Reader()})
	case rec.Alone(), rec.outage:
	case rec.adopting != nil && rec.adopting.proven():
		rec.clearBackoff()
	case !forged || o.OK():
	case honest && rec.adopting == nil && rec.fresh.Generation.Cacheable:
		rec.holdHonest(o)
	case rec.fresh != nil && rec.class == agent.ClassExtrinsic && rec.adopting == nil && rec.fresh.Generation.Cacheable:
		rec.holdThrough(o)
	// no backoff: the program cannot answer other inputs, so each call forges
	case honest && rec.fresh.Predecessor == nil && rec.adopting == nil:
	case honest, rec.class == agent.ClassIntrinsic, rec.class == agent.ClassAdaptive:
		rec.forgeFailed(o, nil)
	}
	return o
}

// holdHonest holds a candidate that gave an honest error: a person may allow what it lacks, or the error may be the
// right answer.
func (rec *recovery) holdHonest(o agent.Outcome) {
	rec.fresh.Charge(rec.trail.Usage)
	if rec.last.Unallowed {
		rec.fresh.Unallowed.Store(true)
	}
	if rec.fresh.Predecessor == nil && rec.last.Outcome.ErrorType == agent.ErrWrongToolBoundary {
		rec.fresh.Answers.Store(true)
	}
	rec.forgeFailed(o, rec.fresh)
}

// pause delays the next attempt without counting a failure.
func (rec *recovery) pause(last forge.Lapse) {
	rec.r.forges.Pause(forge.KeyOf(&rec.Selection), last, rec.Env.Now(), rec.Policy.Backoff)
}

// clearBackoff forgets earlier failures. If the new program is a patch, it counts towards the row of patches instead.
// If calls share a program, only the call that requested it counts it.
func (rec *recovery) clearBackoff() {
	if !rec.patches() || rec.trail.Reused {
		rec.r.forges.Clear(forge.KeyOf(&rec.Selection))
		return
	}
	if rec.trail.Requested == 0 {
		return
	}
	failed := forge.Lapse{ErrorType: agent.ErrExecution, Owner: rec.Reader()}
	if len(rec.trail.Failures) > 0 { // the failure of the replaced program
		failed.ErrorType = rec.trail.Failures[0].ErrorType
	}
	lasted := rec.Decision.Generation.SuccessCount >= agent.Window
	rec.r.forges.Patched(forge.KeyOf(&rec.Selection), failed, lasted, rec.Env.Now(), rec.Policy)
	rec.r.forges.Saw(forge.KeyOf(&rec.Selection), rec.Artifact)
}

// patches reports whether the new program is a patch: it replaces one that failed.
func (rec *recovery) patches() bool {
	d := &rec.Decision
	return d.Generation != nil && (d.Decision == agent.DecideRun || d.Reason == selection.ReasonDegraded ||
		d.Reason == selection.ReasonUnproven)
}

// proven reports whether more than an honest error speaks for the candidate. A first generation counts as proven,
// because it has no predecessor that it could be worse than.
func (a *adoption) proven() bool {
	return a.attempt.Class != agent.ClassAuthored || a.attempt.PassedOn || len(a.proof.Kept) > 0 ||
		a.Predecessor == nil
}

// forgeFailed delays the next attempt. If a person asked for the program, the artifact records the failure. cand,
// unless nil, runs during the delay.
func (rec *recovery) forgeFailed(o agent.Outcome, cand *forge.Candidate) {
	// mask secrets: another call's model request may show it
	o.ErrorMessage, o.Metadata = rec.Mask(o.ErrorMessage), rec.MaskData(o.Metadata)
	until := rec.r.forges.Failed(forge.KeyOf(&rec.Selection), forge.Lapse{ErrorType: o.ErrorType,
		Message: o.ErrorMessage,
		Owner:   rec.Reader()}, cand, rec.Env.Now(), rec.Policy.Backoff)
	rec.r.forges.Saw(forge.KeyOf(&rec.Selection), rec.Artifact)
	if !rec.PersonAsked() || rec.Artifact == nil {
		return
	}
	c := correct.Failed(rec.Artifact.Correction, o, until)
	if rec.Decision.Reason == selection.ReasonCorrection && c.Attempts >= correct.Most {
		c.State, c.NextTryAt = agent.CorrectionFailed, nil
	}
	rec.changes = append(rec.changes, agent.ArtifactChange{Role: rec.Role, MethodName: rec.Method, At: rec.Started,
		Correction: c})
}

// holdThrough lets the calls of the delay run the candidate, whose source failed. The message is left out, because the
// failure must not be shown as that of a discarded program.
func (rec *recovery) holdThrough(o agent.Outcome) {
	rec.fresh.Charge(rec.trail.Usage)
	rec.r.forges.Failed(forge.KeyOf(&rec.Selection), forge.Lapse{ErrorType: o.ErrorType, Owner: rec.Reader()},
		rec.fresh,
		rec.Env.Now(), rec.Policy.Backoff)
	rec.r.forges.Saw(forge.KeyOf(&rec.Selection), rec.Artifact)
}

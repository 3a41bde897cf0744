package forge

import (
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// A Ledger holds what a call or a correction may still ask the model for, what it asked for, and what came of it. One
// goroutine owns it.
type Ledger struct {
	Cost
	Failures []agent.AttemptFailure // at most MaxFailures
	Feedback bool                   // the model was shown an earlier failure
	Reused   bool                   // the candidate comes from an earlier call
	Slow     bool                   // the model delivered no program in its share of the call's time
	Leaves   []func()               // leave the flights

	RepairAttempted, RepairSucceeded bool
	ExecutionRepairs, OutcomeRepairs int // retries used

	left     retries
	repeated int  // programs requested after two runs in a row that failed the same way
	open     bool // a repair was requested, and its success is not known yet
	shared   bool // another call asked for the open repair, and counts it
}

// retries are the retries that a call has left.
type retries struct{ guardrail, execution, outcome int }

// Open allows the ledger the retries of the policy. They are zero while repair is switched off: failing programs are
// then replaced, never repaired.
func (l *Ledger) Open(p *agent.Policy) {
	if p.RepairEnabled {
		l.left = retries{p.GuardrailRecoveryBudget, p.ExecutionRepairBudget, p.OutcomeRepairBudget}
	}
}

// Enter completes the request with what the ledger says of earlier ones. A call gets a held candidate once.
func (l *Ledger) Enter(q *Request) {
	q.Guardrails, q.Earlier, q.Unheld = l.left.guardrail, l.Failures, l.Reused
}

// Add adds what came of a request.
func (l *Ledger) Add(c *call.Call, got *Forged) {
	l.Leaves = append(l.Leaves, got.Leaves...)
	l.Slow, l.Reused = l.Slow || got.Slow, l.Reused || got.Held
	for _, asked := range got.Repairs {
		for range asked.Count {
			l.RepairEnded(c, false)
			l.RepairAttempted, l.open, l.shared = true, true, asked.Shared
		}
	}
	l.Cost.Add(&got.Cost)
	l.left.guardrail -= got.Cost.Guardrails
	l.Feedback = l.Feedback || got.Cost.Guardrails+got.Cost.Repeated > 0
	l.Failures = AppendFailures(l.Failures, got.Attempts)
	if got.Candidate == nil && got.Class == agent.ClassIntrinsic {
		l.RepairEnded(c, false)
	}
}

// RepairEnded closes the open repair, if there is one. If calls share it, only the call that requested it counts it.
func (l *Ledger) RepairEnded(c *call.Call, ok bool) {
	if !l.open {
		return
	}
	if l.open, l.RepairSucceeded = false, ok; !l.shared {
		c.Env.Metrics.ObserveRepair(ok)
	}
}

// Note records a failed attempt. It reports whether there was room for it.
func (l *Ledger) Note(c *call.Call, j *judge.Judged) bool {
	l.RepairEnded(c, false)
	if len(l.Failures) >= MaxFailures {
		return false
	}
	message := agent.Clip(c.Mask(j.Outcome.ErrorMessage), 400)
	c.Progress.Add(progress.AttemptFailed, map[string]any{"attempt_id": j.ID, "stage": j.Stage,
		"error_type":    j.Outcome.ErrorType,
		"error_message": message, "failure_class": j.Class})
	l.Failures = append(l.Failures, agent.AttemptFailure{AttemptID: j.ID, Stage: j.Stage,
		ErrorType: j.Outcome.ErrorType, ErrorMessage: message, FailureClass: j.Class,
		Metadata: c.MaskData(j.Outcome.Metadata), Hint: c.Mask(j.Hint.For(c.Reader()))})
	return true
}

// Spend uses one retry of the kind that the attempt's stage needs, and returns false if none is left. An attempt that
// failed in the same way as the program it repairs uses none, up to maxRepeated times.
func (l *Ledger) Spend(j *judge.Judged, repaired Failing) bool {
	if repeats(j, repaired) && l.repeated < maxRepeated {
		l.repeated++
		return true
	}
	left := &l.left.execution
	if ofOutcome(j.Stage) {
		left = &l.left.outcome
	}
	if *left == 0 {
		return false
	}
	*left--
	l.CountRepair(j.Stage)
	return true
}

// CountRepair counts a repair after a failure at the stage.
func (l *Ledger) CountRepair(stage string) {
	if ofOutcome(stage) {
		l.OutcomeRepairs++
		return
	}
	l.ExecutionRepairs++
}

// ofOutcome reports whether a failure at the stage uses the outcome budget rather than the execution budget.
func ofOutcome(stage string) bool {
	return stage == attempt.StageOutcome || stage == attempt.StageProof
}

// Recovered reports whether the call tried more than once.
func (l *Ledger) Recovered() bool {
	return l.RepairAttempted || l.Guardrails+l.ExecutionRepairs+l.OutcomeRepairs > 0 || len(l.Failures) > 1
}

// Rejected is a program that was forged to replace a generation but was not adopted, with the attempt that showed why.
type Rejected struct {
	Trigger, Checksum string
	Attempt           judge.Judged
}

// Rejected returns the candidate as one that was not adopted because of the attempt.
func (c *Candidate) Rejected(j judge.Judged) Rejected {
	return Rejected{Trigger: c.Generation.Trigger, Checksum: c.Generation.CodeChecksum, Attempt: j}
}

// Kept returns what an artifact keeps of the program. Only models see the hint, and only in requests of the same owner.
func (r *Rejected) Kept(c *call.Call, at time.Time) *agent.Rejection {
	o := r.Attempt.Outcome
	return &agent.Rejection{At: at, CallID: c.ID, Owner: agent.LoggedOwner(c.Reader()), Trigger: r.Trigger,
		CodeChecksum: r.Checksum, Stage: r.Attempt.Stage, Reason: agent.Clip(c.Mask(o.ErrorType+": "+o.ErrorMessage),
			400),
		Hint: agent.Clip(c.Mask(r.Attempt.Hint.For(c.Reader())), 1200), Fixture: r.Attempt.Fixture,
		Example: r.Attempt.Example}
}

// Leave leaves the flights of all requests so far.
func (l *Ledger) Leave() {
	for _, leave := range l.Leaves {
		leave()
	}
	l.Leaves = nil
}

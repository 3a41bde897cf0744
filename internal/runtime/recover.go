package runtime

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// A recovery takes a selected call to its answer: it runs programs, and has failing ones repaired or replaced within the
// call's budgets. One goroutine owns it. It ends with the answered call that it builds up.
type recovery struct {
	*answered
	budgets budgets
	drifted bool // the stored program failed because an external response changed shape
}

// budgets are the recoveries that the policy leaves to this call.
type budgets struct{ guardrail, execution, outcome int }

// serve answers the call as the selection decided.
func (s selected) serve(ctx context.Context) *answered {
	rec := recovery{answered: &answered{selected: s}, budgets: budgets{s.policy.GuardrailRecoveryBudget, s.policy.ExecutionRepairBudget, s.policy.OutcomeRepairBudget}}
	for _, w := range s.terms.warnings {
		rec.trail.warn(w)
	}
	rec.stages.Select = s.took
	rec.outcome = rec.follow(ctx)
	return rec.answered
}

// follow does what the selection decided.
func (rec *recovery) follow(ctx context.Context) agent.Outcome {
	switch g := rec.decision.Generation; rec.decision.Decision {
	case agent.DecideRun:
		return rec.runStored(ctx, g)
	case agent.DecideRepair:
		return rec.repairFirst(ctx, g)
	case agent.DecideRefuse:
		return rec.waitsForApproval()
	default:
		return rec.forge(ctx, g, forgeTrigger(rec.artifact, rec.policy, rec.decision.Reason))
	}
}

// try runs and judges the generation, a stored one or a candidate's.
func (rec *recovery) try(ctx context.Context, g *agent.Generation) judged {
	rec.attempts++
	a := rec.run(ctx, rec.id+"."+strconv.Itoa(rec.attempts), g)
	rec.stages.Gate += a.result.Timing.Gate
	rec.stages.Run += a.result.Timing.Run
	began := rec.r.o.Now()
	j := rec.judge(ctx, a)
	ended := rec.r.o.Now()
	rec.stages.Judge += ended.Sub(began)
	rec.traceAttempt(&a, began, ended)
	return j
}

// runStored runs a stored generation. When it fails, the call recovers: repair first, then a new program.
func (rec *recovery) runStored(ctx context.Context, g *agent.Generation) agent.Outcome {
	j := rec.try(ctx, g)
	rec.ran(agent.SourcePersisted, g, j)
	rec.count(g, j)
	if j.served() {
		return rec.keep(j)
	}
	rec.note(j)
	rec.drifted = j.class == agent.ClassAdaptive
	switch {
	case rec.artifact.Pinned:
		return rec.keep(j)
	case !rec.policy.RepairEnabled:
		return rec.replace(ctx, g, "regenerate:repair_disabled", j)
	case rec.artifact.RepairCountSinceRegen >= rec.policy.MaxRepairsBeforeRegen:
		return rec.replace(ctx, g, budgetExhausted, j)
	}
	return rec.repair(ctx, g, failing{code: g.Code, checksum: g.CodeChecksum, class: string(j.class), reason: j.outcome.ErrorType, attempt: j})
}

// repairFirst repairs a generation that must not run as it is: its contract changed, or it fails too often.
func (rec *recovery) repairFirst(ctx context.Context, g *agent.Generation) agent.Outcome {
	why := failing{code: g.Code, checksum: g.CodeChecksum, class: "stale", reason: rec.decision.Reason}
	switch rec.decision.Reason {
	case ReasonContractChanged:
		why.message = "The contract changed since this program was written. It must keep the contract given above."
	case ReasonArgsIgnored:
		why.message = "This program ignores its arguments; the call has arguments that must matter."
	default:
		why.class = "degraded"
		why.message = fmt.Sprintf("This program fails too often: %.0f%% of its recent calls. Last failure: %s",
			100*rec.decision.Figures.RecentFailureRate, rec.artifact.LastFailureReason)
		if rec.artifact.LastFailureClass != agent.ClassNone {
			why.class = string(rec.artifact.LastFailureClass)
		}
		rec.drifted = rec.artifact.LastFailureClass == agent.ClassAdaptive
	}
	return rec.repair(ctx, g, why)
}

// count adds the result of a stored generation's run to its artifact. An interrupted run does not count.
func (rec *recovery) count(g *agent.Generation, j judged) {
	if j.class == agent.ClassNone {
		return
	}
	change := agent.ArtifactChange{Role: rec.role, MethodName: rec.method, At: rec.started, ResultOf: g.ID, Result: j.class,
		SessionID: rec.session.ID, Checked: j.checked, CheckPassed: j.passed()}
	if j.outcome.OK() {
		change.Fixture = rec.fixture(g, j)
		if j.shapes != nil && !maps.Equal(j.shapes, g.Shapes) {
			change.Shapes = j.shapes
		}
	} else {
		change.ErrorType, change.Reason = j.outcome.ErrorType, Clip(j.outcome.ErrorMessage, 400)
	}
	rec.changes = append(rec.changes, change)
}

// note puts a failed attempt on the call's trail.
func (rec *recovery) note(j judged) {
	if len(rec.trail.failures) >= maxAttemptFailures {
		return
	}
	message := Clip(j.outcome.ErrorMessage, 400)
	rec.progress.Add(progress.AttemptFailed, map[string]any{"attempt_id": j.id, "stage": j.stage, "error_type": j.outcome.ErrorType,
		"error_message": message, "failure_class": j.class})
	rec.trail.failures = append(rec.trail.failures, agent.AttemptFailure{AttemptID: j.id, Stage: j.stage,
		ErrorType: j.outcome.ErrorType, ErrorMessage: message, FailureClass: j.class, Metadata: j.outcome.Metadata, Hint: j.hint})
	if j.stage == stageExecution || j.stage == stageOutcome {
		rec.trail.rolledBack = true
	}
}

// spend uses one recovery of the kind that the stage needs. It returns false when none is left.
func (rec *recovery) spend(stage string) bool {
	left, used := &rec.budgets.execution, &rec.trail.executionRepairs
	if stage == stageOutcome || stage == stageProof {
		left, used = &rec.budgets.outcome, &rec.trail.outcomeRepairs
	}
	if *left == 0 {
		return false
	}
	*left--
	*used++
	return true
}

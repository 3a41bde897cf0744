package runtime

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Stages of an attempt.
const (
	stageValidation = "validation"
	stageExecution  = "execution"
	stageOutcome    = "outcome_policy"
	stageProof      = "proof"
)

// attempt is one run of one program for a call, judged.
type attempt struct {
	id        string
	stage     string
	outcome   agent.Outcome
	class     agent.Class
	result    sandbox.Result
	checked   bool                // the value met a contract
	violation *contract.Violation // and broke it
	shapes    map[string]string   // of what came in, on ok
	hint      string              // a correction for the model
}

// served reports whether the attempt answers the call: an ok, an honest error, an interruption, or an outage that
// another program would not mend. What is left are failures to recover from.
func (a attempt) served() bool {
	return a.class != agent.ClassIntrinsic && a.class != agent.ClassAdaptive
}

// programOf is the generation's program as a runner takes it.
func programOf(g *agent.Generation) sandbox.Program {
	return sandbox.Program{Source: g.Code, Checksum: g.CodeChecksum}
}

// try runs the generation, a stored one or a candidate's, for this call and judges how it ended.
func (c *call) try(ctx context.Context, g *agent.Generation) attempt {
	c.attempts++
	a := attempt{id: c.id + "." + strconv.Itoa(c.attempts), stage: stageExecution}
	h := &host{c: c, attempt: a.id}
	a.result = c.r.box.Run(ctx, sandbox.Request{
		Program: programOf(g), Owner: c.owner,
		Role: c.role, Method: c.method, CallID: c.id, TraceID: c.traceID, Depth: c.depth,
		Args: c.args, Kwargs: c.kwargs, Context: c.contextFor(ctx, g, h), InputHistory: c.inputHistory,
		Now: c.r.o.Now(), Seed: seed(c.id), Timeout: c.r.o.RunTimeout,
	}, h)
	if engine, _ := engineOf(a.result.Facts); engine != "" {
		c.r.metrics.EngineRun(engine)
	}
	a.result.Context = withoutHistory(a.result.Context)
	c.stages.Gate += a.result.Timing.Gate
	c.stages.Run += a.result.Timing.Run
	began := c.r.o.Now()
	c.judge(ctx, &a, g.Shapes, h.shapes)
	ended := c.r.o.Now()
	c.stages.Judge += ended.Sub(began)
	c.tellAttempt(&a, began, ended)
	return a
}

// seed derives a program's chance from the call's id (FNV-1a), so that a replay has it too.
func seed(callID string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(callID) {
		h = (h ^ uint64(callID[i])) * 1099511628211
	}
	return h
}

// judge turns a run's result into an outcome, checks it against the contract and classes it by evidence: the shapes of
// what came in at the last ok run, and of the nested values of this one.
func (c *call) judge(ctx context.Context, a *attempt, last, nested map[string]string) {
	res := &a.result
	e := Evidence{Fetches: res.Effects.Fetches, Nested: nested, Shapes: last}
	switch {
	case ctx.Err() != nil && res.Value == nil:
		a.outcome, a.class = interrupted(ctx)
		return
	case res.Failure != nil:
		a.outcome = failed(res.Failure)
		a.hint = res.Failure.Hint
		if refusal(res.Failure.Type) {
			a.stage = stageValidation
		}
		e.Interrupted, e.WaitingEnded = res.Failure.Ours, res.Failure.Waiting
	case res.Authored != nil:
		a.outcome = agent.Failed(res.Authored.Type, res.Authored.Message)
		a.outcome.Authored = true
		e.Authored = true
	default:
		a.outcome = agent.Outcome{Status: agent.StatusOK, Value: res.Value}
		if c.schema == nil {
			break
		}
		a.checked = true
		if a.violation = c.schema.CheckCall(res.Value, c.args, c.kwargs); a.violation != nil {
			a.stage = stageOutcome
			a.outcome = agent.Failed(agent.ErrContractViolation, a.violation.Message)
			a.outcome.Metadata = a.violation.Metadata
		}
	}
	if a.outcome.OK() {
		a.class, a.shapes = agent.ClassOK, shapesOf(res.Effects.Fetches, nested)
		return
	}
	e.ErrorType = a.outcome.ErrorType
	a.class = Classify(e)
}

// refusal reports whether the error type is one of the gate's.
func refusal(errorType string) bool {
	return errorType == agent.ErrInvalidCode || errorType == agent.ErrToolRegistry || errorType == agent.ErrDependencyPolicy
}

func failed(f *sandbox.Failure) agent.Outcome {
	o := agent.Failed(f.Type, f.Message)
	if f.Detail != "" {
		o.Metadata = map[string]any{"detail": f.Detail}
	}
	return o
}

// note puts a failed attempt on the call's log, with a message of at most 400 characters.
func (c *call) note(a attempt) {
	if len(c.found.attemptFailures) >= maxAttemptFailures {
		return
	}
	c.progress.tell(EventAttemptFailed, map[string]any{"attempt_id": a.id, "stage": a.stage, "error_type": a.outcome.ErrorType,
		"error_message": clip(a.outcome.ErrorMessage, 400), "failure_class": a.class})
	c.found.attemptFailures = append(c.found.attemptFailures, agent.AttemptFailure{AttemptID: a.id, Stage: a.stage,
		ErrorType: a.outcome.ErrorType, ErrorMessage: clip(a.outcome.ErrorMessage, 400), FailureClass: a.class, Metadata: a.outcome.Metadata,
		Hint: a.hint})
	if a.stage == stageExecution || a.stage == stageOutcome {
		c.found.rolledBack = true // it ran: what it did to the context is dropped
	}
}

// clip cuts text to at most n characters.
func clip(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

// runStored runs a stored generation; when it fails, the call recovers: repair first, then a new program.
func (c *call) runStored(ctx context.Context, g *agent.Generation) agent.Outcome {
	a := c.try(ctx, g)
	c.serveFrom(agent.SourcePersisted, g, a)
	c.count(g, a)
	if a.served() {
		return c.keep(a)
	}
	c.note(a)
	c.drifted = a.class == agent.ClassAdaptive
	if c.artifact.Pinned {
		return c.keep(a)
	}
	why := failing{code: g.Code, checksum: g.CodeChecksum, class: string(a.class), reason: a.outcome.ErrorType, attempt: a}
	if !c.p.RepairEnabled {
		return c.replace(ctx, g, "regenerate:repair_disabled", a)
	}
	if c.artifact.RepairCountSinceRegen >= c.p.MaxRepairsBeforeRegen {
		return c.replace(ctx, g, budgetExhausted, a)
	}
	return c.mend(ctx, g, why)
}

// mendFirst repairs a generation that must not run as it is: stale or degraded.
func (c *call) mendFirst(ctx context.Context, g *agent.Generation) agent.Outcome {
	why := failing{code: g.Code, checksum: g.CodeChecksum, class: "stale", reason: c.decision.Reason}
	switch c.decision.Reason {
	case ReasonContractChanged:
		why.message = "The contract changed since this program was written. It must keep the contract given above."
	case ReasonArgsIgnored:
		why.message = "This program ignores its arguments; the call has arguments that must matter."
	default:
		why.class = "degraded"
		why.message = fmt.Sprintf("This program fails too often: %.0f%% of its recent calls. Last failure: %s",
			100*c.decision.Figures.RecentFailureRate, c.artifact.LastFailureReason)
		if c.artifact.LastFailureClass != agent.ClassNone {
			why.class = string(c.artifact.LastFailureClass)
		}
		c.drifted = c.artifact.LastFailureClass == agent.ClassAdaptive
	}
	return c.mend(ctx, g, why)
}

// keep takes the context change, effects and shapes of the attempt that answers the call, and its outcome.
func (c *call) keep(a attempt) agent.Outcome {
	f := &c.found
	f.attempt, f.stage, f.class = a.id, a.stage, a.class
	f.effects = a.result.Effects
	f.facts = a.result.Facts
	f.checked, f.passed = a.checked, a.checked && a.violation == nil
	if a.violation != nil {
		f.mismatch = a.violation.Mismatch
	}
	if a.outcome.OK() && c.depth == 0 {
		f.context = a.result.Context
	}
	return a.outcome
}

// count adds the end of a stored generation's run to its artifact. An interrupted run counts for nothing.
func (c *call) count(g *agent.Generation, a attempt) {
	if a.class == agent.ClassNone {
		return
	}
	change := agent.ArtifactChange{Role: c.role, MethodName: c.method, At: c.started, ResultOf: g.ID, Result: a.class,
		SessionID: c.session.ID, Checked: a.checked, CheckPassed: a.checked && a.violation == nil}
	if a.outcome.OK() {
		change.Fixture = c.fixture(g, a)
		if a.shapes != nil && !maps.Equal(a.shapes, g.Shapes) {
			change.Shapes = a.shapes
		}
	} else {
		change.ErrorType, change.Reason = a.outcome.ErrorType, clip(a.outcome.ErrorMessage, 400)
	}
	c.changes = append(c.changes, change)
}

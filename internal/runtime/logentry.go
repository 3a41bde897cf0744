package runtime

import (
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
)

// logEntry returns the call's entry in the call log, which is kept in addition to its history record. Args, kwargs and
// prompts are masked. The store fills in the artifact's counters, since only it knows them as of the commit.
func (a *answered) logEntry(n noticed, rec *agent.Record) agent.LogEntry {
	o, t := a.outcome, &a.trail
	e := agent.LogEntry{
		Timestamp: rec.Timestamp, Runtime: "go", SessionID: a.Session.ID, Owner: agent.LoggedOwner(a.Session.Owner),
		TraceID: a.TraceID, CallID: a.ID, ParentCallID: a.Parent,
		RootCallID: a.Root, Depth: a.Depth, Role: a.Role, Model: a.Model(), Method: a.Method, Args: a.Shown().Args,
		Kwargs:     a.Shown().Kwargs,
		DurationMs: rec.DurationMs, GenerationAttempt: t.Requested, OutcomeStatus: o.Status,
		OutcomeRetriable: o.Retriable, OutcomeErrorType: o.ErrorType,
		OutcomeErrorMessage: o.ErrorMessage, OutcomeAuthored: o.Authored, OutcomePassedOn: o.Authored &&
			a.last.Authored[o.ErrorType],
		ContractSource: a.Terms.Source, ContractFingerprint: a.Terms.Fingerprint,
		ProgramSource: rec.ProgramSource, ArtifactHit: rec.ArtifactHit, Generation: a.generation,
		RepairAttempted: t.RepairAttempted, RepairSucceeded: t.RepairSucceeded, FailureClass: a.failureClass(),
		Selection: a.Decision.Logged(),
		AttemptID: a.last.ID, AttemptStage: a.last.Stage, AttemptFailures: t.Failures,
		GuardrailRecoveryAttempts: t.Guardrails, ExecutionRepairAttempts: t.ExecutionRepairs,
		OutcomeRepairAttempts: t.OutcomeRepairs,
		RetryFeedbackInjected: t.Feedback, RollbackApplied: t.rolledBack,
		LifecycleState: n.state, LifecycleDecision: n.decision, HistoryRecordAppended: true,
		WeakSuccess: len(n.weak) > 0, WeakSuccessReasons: n.weak, WeakNestedCalls: int(a.WeakBelow.Load()),
		UserCorrectionDetected: n.correction.signal != "", UserCorrectionSignal: n.correction.signal,
		UserCorrectionReferenceCallID: n.correction.reference,
		Usage:                         a.usage(), SandboxLevel: string(a.Env.Level), Warnings: t.warnings,
		BeyondManifest: a.beyond,
	}
	if o.OK() {
		e.OutcomeValueClass = agent.Kind(o.Value)
	} else {
		e.OutcomeErrorMetadata = o.Metadata
	}
	if e.ContractSource == "" {
		e.ContractSource, e.ContractFingerprint = "none", agent.FingerprintNone
	}
	a.logStages(&e)
	a.logProgram(&e)
	a.replayable(&e)
	if a.Session.Debug {
		a.debug(&e)
	}
	a.MaskEntry(&e)
	return e
}

// briefCall is the duration below which a call without model requests does not log its stages.
const briefCall = 10 // milliseconds

// logStages adds the durations of the stages.
func (a *answered) logStages(e *agent.LogEntry) {
	if e.DurationMs < briefCall && e.Usage.ModelRequests == 0 {
		return
	}
	st, ms := a.stages, agent.Milliseconds
	e.Stages = &agent.CallStages{Queue: ms(st.Queue), Select: ms(st.Select), Forge: ms(max(0, st.Forge-a.trail.Gated)),
		Gate: ms(st.Gate), Run: ms(st.Run), Judge: ms(st.Judge)}
}

// logProgram adds details of the program that ran and of the attempt that answered.
func (a *answered) logProgram(e *agent.LogEntry) {
	if g := a.program; g != nil {
		e.CodeChecksum, e.ArtifactGenerationTrigger = g.CodeChecksum, g.Trigger
		e.ArtifactPromptVersion, e.ArtifactContractFingerprint = g.PromptVersion, g.ContractFingerprint
		e.Cacheable, e.CacheabilityReason, e.SolverShape = g.Cacheable, g.CacheabilityReason, g.SolverShape
		if a.fresh != nil {
			e.Code = g.Code
		}
	}
	if !a.Shown().Masked { // the arranged arguments may lack the keyword by which a secret is recognised
		e.ProgramArgs, e.ProgramKwargs = a.last.Args, a.last.Kwargs
	}
	for _, note := range a.last.Result.Effects.Notes {
		e.Notes = append(e.Notes, a.Mask(note))
	}
	e.ProgramEngine, e.ProgramTier = a.last.RanOn(a.facts)
	e.ProgramDoubted, e.ProgramStale, e.ProgramUnkept, e.PromptTools = a.doubted(), a.staleness(), a.unkept,
		a.trail.Tools
	if f := a.facts; f != nil {
		e.HistoryAccessDetected, e.HistoryQueryPatterns, e.CapabilityPatterns = f.NamesHistory(), f.HistoryPatterns,
			f.CapabilityPatterns
	}
	if a.kept {
		e.ContractValidationApplied, e.ContractValidationPassed = a.last.Checked, a.last.Passed()
		if v := a.last.Violation; v != nil {
			e.ContractValidationMismatch = v.Mismatch
		}
	}
}

// failureClass returns the class of the call's failure. If the answer has none that counts, it returns the class of the
// stored program that failed and was repaired or replaced in this call. It returns agent.ClassNone if nothing failed.
func (a *answered) failureClass() agent.Class {
	if a.class.Counts() {
		return a.class
	}
	for i := range a.changes {
		if result := a.changes[i].Result; result.Counts() {
			return result
		}
	}
	if a.class == agent.ClassOK {
		return agent.ClassNone
	}
	return a.class
}

// replayable records whether the call can be run again on the same inputs and effects, or why not.
func (a *answered) replayable(e *agent.LogEntry) {
	switch {
	case a.programSource() == agent.SourceNone, a.kept && a.last.Misfit:
		e.ReplayableReason = agent.ReasonNoProgram
	case a.Shown().Masked:
		e.ReplayableReason = agent.ReasonMasked
	case a.hidden:
		e.ReplayableReason = agent.ReasonMaskedEffects
	case a.kept && a.last.Result.Effects.Truncated:
		e.ReplayableReason = agent.ReasonManyEffects
	default:
		e.Replayable = true
	}
}

// debug adds prompts and the context, which the log keeps only for sessions with Debug set.
func (a *answered) debug(e *agent.LogEntry) {
	e.SystemPrompt, e.UserPrompt = a.trail.System, a.trail.User
	if raw, err := json.Marshal(a.Memory); err == nil && len(a.Memory) > 0 {
		e.Context = raw
	}
	if raw, ok := a.Memory[attempt.HistoryKey]; ok && agent.Kind(raw) != "array" {
		e.Warnings = append(e.Warnings,
			"conversation_history in the context is no array: programs see the session's own records")
	}
}

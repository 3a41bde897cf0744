package runtime

import (
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// logEntry is the call's line in the call log, beside its history record. Args, kwargs and prompts are masked; the counters of the artifact are
// the store's to fill, since only it knows them as of the commit.
func (c *call) logEntry(o agent.Outcome, rec *agent.Record) agent.LogEntry {
	f := &c.found
	e := agent.LogEntry{
		Timestamp: rec.Timestamp, Runtime: "go", SessionID: c.session.ID, TraceID: c.traceID, CallID: c.id, ParentCallID: c.parent,
		Depth: c.depth, Role: c.role, Model: c.model(), Method: c.method, Args: c.maskedArgs, Kwargs: c.maskedKwargs, Code: f.code, CodeChecksum: f.checksum,
		DurationMs: rec.DurationMs, GenerationAttempt: f.requested, OutcomeStatus: o.Status, OutcomeRetriable: o.Retriable, OutcomeErrorType: o.ErrorType,
		OutcomeErrorMessage: o.ErrorMessage, OutcomeErrorMetadata: o.Metadata, OutcomeAuthored: o.Authored,
		ContractSource: c.contractSource, ContractFingerprint: c.fingerprint,
		ProgramSource: rec.ProgramSource, ArtifactHit: rec.ArtifactHit, Generation: f.generation, ArtifactPromptVersion: f.promptVersion,
		ArtifactContractFingerprint: f.contractFingerprint, ArtifactGenerationTrigger: f.trigger,
		RepairAttempted: f.repairAttempted, RepairSucceeded: f.repairSucceeded, FailureClass: failureClass(f.class), Selection: f.selection,
		AttemptID: f.attempt, AttemptStage: f.stage, AttemptFailures: f.attemptFailures,
		GuardrailRecoveryAttempts: f.guardrails, ExecutionRepairAttempts: f.executionRepairs, OutcomeRepairAttempts: f.outcomeRepairs,
		RetryFeedbackInjected: f.feedback, RollbackApplied: f.rolledBack, SolverShape: f.solverShape,
		LifecycleState: f.state, LifecycleDecision: f.decision, Cacheable: f.cacheable, CacheabilityReason: f.cacheReason,
		HistoryRecordAppended: true, ContractValidationApplied: f.checked, ContractValidationPassed: f.passed, ContractValidationMismatch: f.mismatch,
		WeakSuccess: len(f.weak) > 0, WeakSuccessReasons: f.weak,
		UserCorrectionDetected: f.correction.signal != "", UserCorrectionSignal: f.correction.signal, UserCorrectionReferenceCallID: f.correction.reference,
		Usage: f.usage, SandboxLevel: string(c.r.level), Warnings: f.warnings,
	}
	e.ProgramEngine, e.ProgramTier = engineOf(f.facts)
	if o.OK() {
		e.OutcomeValueClass = agent.Kind(o.Value)
	}
	if e.ContractSource == "" {
		e.ContractSource, e.ContractFingerprint = "none", agent.FingerprintNone
	}
	if f.facts != nil {
		e.HistoryAccessDetected, e.HistoryQueryPatterns, e.CapabilityPatterns = f.facts.HistoryAccess || namesHistory(f.facts), f.facts.HistoryPatterns, f.facts.CapabilityPatterns
	}
	c.replayable(&e)
	if c.session.Debug {
		c.debug(&e)
	}
	return e
}

// milliseconds is the duration as replies, records and the log tell it, exact to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// failureClass is the class as the log has it: ok is none.
func failureClass(c agent.Class) agent.Class {
	if c == agent.ClassOK {
		return agent.ClassNone
	}
	return c
}

// replayable says whether the call can be run again on the same inputs and effects, or why not.
func (c *call) replayable(e *agent.LogEntry) {
	switch {
	case c.found.source == "" || c.found.source == agent.SourceNone:
		e.ReplayableReason = "no program ran"
	case c.masked:
		e.ReplayableReason = "inputs were masked"
	case namesHistory(c.found.facts):
		e.ReplayableReason = "the history came in by the context"
	case c.found.effects.Truncated:
		e.ReplayableReason = "too many effects to keep"
	default:
		e.Replayable = true
	}
}

func (c *call) debug(e *agent.LogEntry) {
	e.SystemPrompt, e.UserPrompt = c.found.system, c.found.user
	if raw, err := json.Marshal(c.context); err == nil && len(c.context) > 0 {
		e.Context = raw
	}
	if raw, ok := c.context["conversation_history"]; ok && agent.Kind(raw) != "array" {
		e.Warnings = append(e.Warnings, "conversation_history in the context is no array: programs see the session's own records")
	}
}

func (c *call) model() string {
	if c.session.Model != "" {
		return c.session.Model
	}
	return c.r.o.Model
}

package disk

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// appendLog appends a log entry as encoding/json would write it, at a fifth of the cost: every call pays it. When it
// is not full, zero fields stay out (nil and empty lists are told apart): that is the journal's form; calls.jsonl has
// the full one. A test compares both with encoding/json over every field.
func appendLog(b []byte, e *agent.LogEntry, full bool) ([]byte, error) {
	w := lineWriter{b: append(b, '{'), full: full}
	w.str("timestamp", e.Timestamp, false)
	w.str("runtime", e.Runtime, false)
	w.str("session_id", e.SessionID, false)
	w.str("trace_id", e.TraceID, false)
	w.str("call_id", e.CallID, false)
	w.str("parent_call_id", e.ParentCallID, true)
	w.int("depth", int64(e.Depth), false)
	w.str("role", e.Role, false)
	w.str("model", e.Model, false)
	w.str("method", e.Method, false)
	w.list("args", e.Args)
	w.raw("kwargs", e.Kwargs, false)
	w.str("code", e.Code, true)
	w.str("code_checksum", e.CodeChecksum, true)
	w.float("duration_ms", e.DurationMs)
	w.int("generation_attempt", int64(e.GenerationAttempt), false)
	w.str("outcome_status", e.OutcomeStatus, false)
	w.bool("outcome_retriable", e.OutcomeRetriable, false)
	w.str("outcome_value_class", e.OutcomeValueClass, true)
	w.str("outcome_error_type", e.OutcomeErrorType, true)
	w.str("outcome_error_message", e.OutcomeErrorMessage, true)
	w.any("outcome_error_metadata", e.OutcomeErrorMetadata, len(e.OutcomeErrorMetadata) == 0)
	w.bool("outcome_authored", e.OutcomeAuthored, true)
	w.str("contract_source", e.ContractSource, false)
	w.str("contract_fingerprint", e.ContractFingerprint, false)
	w.str("program_source", e.ProgramSource, false)
	w.bool("artifact_hit", e.ArtifactHit, false)
	w.str("generation", e.Generation, true)
	w.str("program_engine", e.ProgramEngine, true)
	w.str("program_tier", e.ProgramTier, true)
	w.str("artifact_prompt_version", e.ArtifactPromptVersion, false)
	w.str("artifact_contract_fingerprint", e.ArtifactContractFingerprint, false)
	w.int("artifact_success_count", e.ArtifactSuccessCount, false)
	w.int("artifact_failure_count", e.ArtifactFailureCount, false)
	w.int("artifact_intrinsic_failure_count", e.ArtifactIntrinsicFailureCount, false)
	w.int("artifact_adaptive_failure_count", e.ArtifactAdaptiveFailureCount, false)
	w.int("artifact_extrinsic_failure_count", e.ArtifactExtrinsicFailureCount, false)
	w.str("artifact_generation_trigger", e.ArtifactGenerationTrigger, false)
	w.bool("repair_attempted", e.RepairAttempted, false)
	w.bool("repair_succeeded", e.RepairSucceeded, false)
	w.str("failure_class", string(e.FailureClass), false)
	if len(e.Selection.Figures) == 0 {
		w.key("selection")
		w.object(func() {
			w.str("decision", e.Selection.Decision, false)
			w.str("reason", e.Selection.Reason, false)
			w.str("generation", e.Selection.Generation, true)
		})
	} else {
		w.any("selection", e.Selection, false)
	}
	w.str("attempt_id", e.AttemptID, false)
	w.str("attempt_stage", e.AttemptStage, false)
	if len(e.AttemptFailures) == 0 {
		w.empty("attempt_failures", e.AttemptFailures == nil)
	} else {
		w.any("attempt_failures", e.AttemptFailures, false)
	}
	w.int("guardrail_recovery_attempts", int64(e.GuardrailRecoveryAttempts), false)
	w.int("execution_repair_attempts", int64(e.ExecutionRepairAttempts), false)
	w.int("outcome_repair_attempts", int64(e.OutcomeRepairAttempts), false)
	w.bool("retry_feedback_injected", e.RetryFeedbackInjected, false)
	w.bool("rollback_applied", e.RollbackApplied, false)
	w.raw("solver_shape", e.SolverShape, true)
	w.str("lifecycle_state", e.LifecycleState, false)
	w.str("lifecycle_decision", e.LifecycleDecision, false)
	w.bool("cacheable", e.Cacheable, false)
	w.str("cacheability_reason", e.CacheabilityReason, false)
	w.bool("history_record_appended", e.HistoryRecordAppended, false)
	w.int("conversation_history_size", int64(e.ConversationHistorySize), false)
	w.bool("history_access_detected", e.HistoryAccessDetected, false)
	w.strs("history_query_patterns", e.HistoryQueryPatterns, false)
	w.strs("capability_patterns", e.CapabilityPatterns, false)
	w.bool("contract_validation_applied", e.ContractValidationApplied, false)
	w.bool("contract_validation_passed", e.ContractValidationPassed, false)
	w.str("contract_validation_mismatch", e.ContractValidationMismatch, true)
	w.bool("weak_success", e.WeakSuccess, false)
	w.strs("weak_success_reasons", e.WeakSuccessReasons, false)
	w.bool("user_correction_detected", e.UserCorrectionDetected, false)
	w.str("user_correction_signal", e.UserCorrectionSignal, true)
	w.str("user_correction_reference_call_id", e.UserCorrectionReferenceCallID, true)
	w.str("corrected_by", e.CorrectedBy, true)
	if full || e.Usage != (agent.Usage{}) {
		w.key("usage")
		w.object(func() {
			w.int("model_requests", int64(e.Usage.ModelRequests), false)
			w.int("prompt_tokens", int64(e.Usage.PromptTokens), false)
			w.int("completion_tokens", int64(e.Usage.CompletionTokens), false)
		})
	}
	w.str("sandbox_level", e.SandboxLevel, false)
	w.bool("replayable", e.Replayable, false)
	w.str("replayable_reason", e.ReplayableReason, true)
	w.strs("warnings", e.Warnings, true)
	w.str("system_prompt", e.SystemPrompt, true)
	w.str("user_prompt", e.UserPrompt, true)
	w.raw("context", e.Context, true)
	return append(w.b, '}'), w.err
}

// lineWriter appends the members of an object. Its methods take whether encoding/json leaves a zero field out too.
type lineWriter struct {
	b    []byte
	full bool
	err  error
}

func (w *lineWriter) key(k string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, k...)
	w.b = append(w.b, '"', ':')
}

func (w *lineWriter) object(members func()) {
	w.b = append(w.b, '{')
	members()
	w.b = append(w.b, '}')
}

func (w *lineWriter) str(k, v string, omit bool) {
	if v == "" && (omit || !w.full) {
		return
	}
	w.key(k)
	w.b = appendString(w.b, v)
}

func (w *lineWriter) int(k string, v int64, omit bool) {
	if v == 0 && (omit || !w.full) {
		return
	}
	w.key(k)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *lineWriter) bool(k string, v, omit bool) {
	if !v && (omit || !w.full) {
		return
	}
	w.key(k)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *lineWriter) float(k string, v float64) {
	if v == 0 && !w.full {
		return
	}
	w.any(k, v, false) // encoding/json knows what JSON has no number for
}

func (w *lineWriter) any(k string, v any, leave bool) {
	if leave || w.err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		w.err = err
		return
	}
	w.key(k)
	w.b = append(w.b, b...)
}

func (w *lineWriter) empty(k string, null bool) {
	switch {
	case !null:
		w.key(k)
		w.b = append(w.b, "[]"...)
	case w.full:
		w.key(k)
		w.b = append(w.b, "null"...)
	}
}

func (w *lineWriter) strs(k string, v []string, omit bool) {
	if len(v) == 0 {
		if !omit {
			w.empty(k, v == nil)
		}
		return
	}
	w.key(k)
	w.b = append(w.b, '[')
	for i, s := range v {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = appendString(w.b, s)
	}
	w.b = append(w.b, ']')
}

func (w *lineWriter) raw(k string, v json.RawMessage, omit bool) {
	if len(v) == 0 {
		if v == nil && w.full && !omit {
			w.key(k)
			w.b = append(w.b, "null"...)
		}
		return
	}
	w.key(k)
	w.compact(v)
}

func (w *lineWriter) list(k string, v []json.RawMessage) {
	if len(v) == 0 {
		w.empty(k, v == nil)
		return
	}
	w.key(k)
	w.b = append(w.b, '[')
	for i, x := range v {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		if x == nil {
			x = json.RawMessage("null")
		}
		w.compact(x)
	}
	w.b = append(w.b, ']')
}

func (w *lineWriter) compact(v json.RawMessage) {
	if w.err != nil {
		return
	}
	out := bytes.NewBuffer(w.b)
	if err := json.Compact(out, v); err != nil {
		w.err = err
		return
	}
	w.b = out.Bytes()
}

// appendString appends s as a JSON string. Plain ASCII, which nearly everything here is, goes the short way.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("a string that cannot be JSON: " + err.Error()) // encoding/json replaces what is not UTF-8
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

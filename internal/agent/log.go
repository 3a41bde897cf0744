package agent

import "encoding/json"

// Values of LogEntry.ProgramSource: the origin of the program that answered.
const (
	SourceGenerated = "generated"
	SourcePersisted = "persisted"
	SourceRepaired  = "repaired"
	SourceNone      = "none"
)

// Usage is the cost of model requests.
type Usage struct {
	ModelRequests    int `json:"model_requests"`
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

// Add adds v to u.
func (u *Usage) Add(v Usage) {
	u.ModelRequests += v.ModelRequests
	u.PromptTokens += v.PromptTokens
	u.CompletionTokens += v.CompletionTokens
}

// Values of Selection.Decision.
const (
	DecideRun    = "run"    // run the generation
	DecideRepair = "repair" // repair the generation before anything runs
	DecideForge  = "forge"  // have a model write a new program
	DecideRefuse = "refuse" // nothing may run
	DecideNone   = "none"   // no program is needed (setters, predictions)
)

// Selection records the decision made for a call and its reason. Figures are the numbers that it was based on.
type Selection struct {
	Decision   string         `json:"decision"` // run, repair, forge, refuse, none
	Reason     string         `json:"reason"`
	Generation string         `json:"generation,omitempty"`
	Figures    map[string]any `json:"figures,omitempty"`
}

// AttemptFailure is a failed attempt of a call. A log entry keeps at most 8, with messages cut to 400 characters.
type AttemptFailure struct {
	AttemptID    string         `json:"attempt_id"`
	Stage        string         `json:"stage"` // validation, execution, outcome_policy, proof
	ErrorType    string         `json:"error_type"`
	ErrorMessage string         `json:"error_message"`
	FailureClass Class          `json:"failure_class,omitempty"`
	Metadata     map[string]any `json:"metadata,omitempty"`
	Hint         string         `json:"-"` // for the next prompt only: it may quote other sessions
}

// Contract sources that involve a contract of the call or of its session.
const (
	ContractOfCall = "hash"   // only the caller's contract
	ContractMerged = "merged" // the caller's contract over the registry's
)

// CallStages holds the time that each stage of a call took, in milliseconds, over all attempts. A stage that did not
// take place is 0.
type CallStages struct {
	Queue  float64 `json:"queue_ms"`  // waiting for the call's turn in the session
	Select float64 `json:"select_ms"` // deciding what answers
	Forge  float64 `json:"forge_ms"`  // requesting programs from a model, by this call or one that it waited for
	Gate   float64 `json:"gate_ms"`   // checking programs
	Run    float64 `json:"run_ms"`    // running programs, including the calls that they made
	Judge  float64 `json:"judge_ms"`  // judging the answers
}

// LogEntry is the call log's entry for one call.
type LogEntry struct {
	Timestamp string `json:"timestamp"`
	Runtime   string `json:"runtime"` // "go"
	SessionID string `json:"session_id"`
	// Owner owns the session, or the prediction if it has no session. It is empty for "local" and in older entries.
	Owner        string `json:"owner,omitempty"`
	TraceID      string `json:"trace_id"`
	CallID       string `json:"call_id"`
	ParentCallID string `json:"parent_call_id,omitempty"`
	RootCallID   string `json:"root_call_id,omitempty"` // id of the client's call above a nested call
	Depth        int    `json:"depth"`

	Role   string            `json:"role"`
	Model  string            `json:"model"`
	Method string            `json:"method"`
	Args   []json.RawMessage `json:"args"`   // masked
	Kwargs json.RawMessage   `json:"kwargs"` // masked
	Code   string            `json:"code,omitempty"`

	// ProgramArgs and ProgramKwargs are the arguments as the program read them, if that form differs from the caller's.
	ProgramArgs   []json.RawMessage `json:"program_args,omitempty"`
	ProgramKwargs json.RawMessage   `json:"program_kwargs,omitempty"`

	CodeChecksum string `json:"code_checksum,omitempty"`

	DurationMs        float64 `json:"duration_ms"`
	GenerationAttempt int     `json:"generation_attempt"` // programs requested from the model
	OutcomeStatus     string  `json:"outcome_status"`
	// Stage is the type of a running call's newest event. It is never stored.
	Stage             string `json:"stage,omitempty"`
	OutcomeRetriable  bool   `json:"outcome_retriable"`
	OutcomeValueClass string `json:"outcome_value_class,omitempty"`
	// ValuePreview is the beginning of the value as compact JSON, on request. It is never stored.
	ValuePreview         string         `json:"value_preview,omitempty"`
	OutcomeErrorType     string         `json:"outcome_error_type,omitempty"`
	OutcomeErrorMessage  string         `json:"outcome_error_message,omitempty"`
	OutcomeErrorMetadata map[string]any `json:"outcome_error_metadata,omitempty"`
	OutcomeAuthored      bool           `json:"outcome_authored,omitempty"`
	// OutcomePassedOn means that a call below it ended with the same authored error.
	OutcomePassedOn bool `json:"outcome_passed_on,omitempty"`

	ContractSource      string `json:"contract_source"` // none, hash, fields, merged
	ContractFingerprint string `json:"contract_fingerprint"`

	ProgramSource string `json:"program_source"`
	ArtifactHit   bool   `json:"artifact_hit"`
	Generation    string `json:"generation,omitempty"`
	// ProgramEngine ran the program: go, ssa or yaegi; "" if no program ran.
	ProgramEngine string `json:"program_engine,omitempty"`
	// ProgramTier is native for go, or engine for another ProgramEngine.
	ProgramTier string `json:"program_tier,omitempty"`
	// ProgramDoubted means that a person had judged one of the program's answers wrong.
	ProgramDoubted bool `json:"program_doubted,omitempty"`
	// ProgramStale is "purpose" if a person had changed the method's purpose since the program was made.
	ProgramStale string `json:"program_stale,omitempty"`
	// ProgramUnkept means that the program was not kept: it answered while the artifact was switched off or
	// quarantined.
	ProgramUnkept bool `json:"program_unkept,omitempty"`
	// PromptTools are the roles of the known tools shown in the last request to the model.
	PromptTools                   []string  `json:"prompt_tools,omitempty"`
	ArtifactPromptVersion         string    `json:"artifact_prompt_version"`
	ArtifactContractFingerprint   string    `json:"artifact_contract_fingerprint"`
	ArtifactSuccessCount          int64     `json:"artifact_success_count"`
	ArtifactFailureCount          int64     `json:"artifact_failure_count"`
	ArtifactIntrinsicFailureCount int64     `json:"artifact_intrinsic_failure_count"`
	ArtifactAdaptiveFailureCount  int64     `json:"artifact_adaptive_failure_count"`
	ArtifactExtrinsicFailureCount int64     `json:"artifact_extrinsic_failure_count"`
	ArtifactGenerationTrigger     string    `json:"artifact_generation_trigger"`
	RepairAttempted               bool      `json:"repair_attempted"`
	RepairSucceeded               bool      `json:"repair_succeeded"`
	FailureClass                  Class     `json:"failure_class"`
	Selection                     Selection `json:"selection"`

	AttemptID                 string           `json:"attempt_id"`
	AttemptStage              string           `json:"attempt_stage"`
	AttemptFailures           []AttemptFailure `json:"attempt_failures"`
	GuardrailRecoveryAttempts int              `json:"guardrail_recovery_attempts"`
	ExecutionRepairAttempts   int              `json:"execution_repair_attempts"`
	OutcomeRepairAttempts     int              `json:"outcome_repair_attempts"`
	RetryFeedbackInjected     bool             `json:"retry_feedback_injected"`
	RollbackApplied           bool             `json:"rollback_applied"`
	SolverShape               json.RawMessage  `json:"solver_shape,omitempty"`
	LifecycleState            string           `json:"lifecycle_state"`
	LifecycleDecision         string           `json:"lifecycle_decision"`
	Cacheable                 bool             `json:"cacheable"`
	CacheabilityReason        string           `json:"cacheability_reason"`

	HistoryRecordAppended   bool     `json:"history_record_appended"`
	ConversationHistorySize int      `json:"conversation_history_size"`
	HistoryAccessDetected   bool     `json:"history_access_detected"`
	HistoryQueryPatterns    []string `json:"history_query_patterns"`
	CapabilityPatterns      []string `json:"capability_patterns"`

	ContractValidationApplied  bool   `json:"contract_validation_applied"`
	ContractValidationPassed   bool   `json:"contract_validation_passed"`
	ContractValidationMismatch string `json:"contract_validation_mismatch,omitempty"`

	WeakSuccess        bool     `json:"weak_success"`
	WeakSuccessReasons []string `json:"weak_success_reasons"`
	// WeakNestedCalls counts the weak successes among the calls below it.
	WeakNestedCalls               int    `json:"weak_nested_calls,omitempty"`
	UserCorrectionDetected        bool   `json:"user_correction_detected"`
	UserCorrectionSignal          string `json:"user_correction_signal,omitempty"`
	UserCorrectionReferenceCallID string `json:"user_correction_reference_call_id,omitempty"`
	// CorrectedBy is the id of the call that repeated the question; for a nested call, the question of its root. It is
	// filled in on reading.
	CorrectedBy string `json:"corrected_by,omitempty"`

	// Verdict is a person's judgement of the answer, right or wrong. It is filled in on reading.
	Verdict string `json:"verdict,omitempty"`

	// BeyondManifest lists what its programs reached, or were denied, beyond the method's manifest.
	BeyondManifest *Effects `json:"beyond_manifest,omitempty"`

	// Stages is nil for a call that asked no model and took less than 10 ms.
	Stages *CallStages `json:"stages,omitempty"`

	Usage            Usage  `json:"usage"`
	SandboxLevel     string `json:"sandbox_level"`
	Replayable       bool   `json:"replayable"`
	ReplayableReason string `json:"replayable_reason,omitempty"` // in words
	// ReplayableCode is ReasonCode of ReplayableReason. It is filled in on reading.
	ReplayableCode string   `json:"replayable_code,omitempty"`
	Warnings       []string `json:"warnings,omitempty"`
	// Notes are texts written by the program that ran last, with secrets masked. They are kept for
	// Retention.ValueHours.
	Notes        []string        `json:"notes,omitempty"`
	SystemPrompt string          `json:"system_prompt,omitempty"` // only with debug on, as are the two below
	UserPrompt   string          `json:"user_prompt,omitempty"`
	Context      json.RawMessage `json:"context,omitempty"`
}

// AuditEntry records one operation of a person or of the daemon's maintenance, and how to undo it.
type AuditEntry struct {
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Actor     string `json:"actor"`
	Principal string `json:"principal,omitempty"` // equal to Actor; empty in entries of an earlier version
	Action    string `json:"action"`
	Target    string `json:"target"`
	// SessionID is the session whose data the entry contains. The body is erased with that session.
	SessionID string          `json:"session_id,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Undo      string          `json:"undo,omitempty"`   // the request that undoes the operation
	Undoes    string          `json:"undoes,omitempty"` // the id of the entry that this operation undid

	// The position in the hash chain (package chain), assigned by the store. Entries of an earlier version have none.
	Seq  int64  `json:"seq,omitempty"` // from 1
	Salt string `json:"salt,omitempty"`
	// Digest is the digest of the body: the fields between Action and Seq.
	Digest   string `json:"digest,omitempty"`
	PrevHash string `json:"prev_hash,omitempty"`
	Hash     string `json:"hash,omitempty"`
	Erased   bool   `json:"erased,omitempty"` // the body is erased
}

// PatternEvent is an entry of a role's pattern memory: the capabilities of the program of one call, which may be
// nested.
type PatternEvent struct {
	CallID       string   `json:"call_id"`
	SessionID    string   `json:"session_id"`
	Timestamp    string   `json:"timestamp"`
	Role         string   `json:"role"`
	MethodName   string   `json:"method_name"`
	Capabilities []string `json:"capabilities"`
	Status       string   `json:"status"`
	WeakSuccess  bool     `json:"weak_success,omitempty"`
	Depth        int      `json:"depth,omitempty"`
	ParentCallID string   `json:"parent_call_id,omitempty"`
	RootCallID   string   `json:"root_call_id,omitempty"` // id of the client's call above a nested call
	// Corrected is the id of the call that repeated the question; for a nested call, the question of its root.
	Corrected string `json:"corrected,omitempty"`
	// Verdict is a person's judgement of the answer. It is filled in on reading.
	Verdict string `json:"verdict,omitempty"`
}

package agent

import "encoding/json"

// Program sources: where the program that answered came from.
const (
	SourceGenerated = "generated"
	SourcePersisted = "persisted"
	SourceRepaired  = "repaired"
	SourceNone      = "none"
)

// Usage is what the model requests of a call cost.
type Usage struct {
	ModelRequests    int `json:"model_requests"`
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

// Add adds another usage.
func (u *Usage) Add(v Usage) {
	u.ModelRequests += v.ModelRequests
	u.PromptTokens += v.PromptTokens
	u.CompletionTokens += v.CompletionTokens
}

// Decisions of a selection.
const (
	DecideRun    = "run"    // run the generation
	DecideRepair = "repair" // repair the generation before anything runs
	DecideForge  = "forge"  // have a model write a new program
	DecideRefuse = "refuse" // nothing may run
	DecideNone   = "none"   // no program is needed (setters, predictions)
)

// Selection says what was decided for a call and why; Figures are the numbers the decision used.
type Selection struct {
	Decision   string         `json:"decision"` // run, repair, forge, refuse, none
	Reason     string         `json:"reason"`
	Generation string         `json:"generation,omitempty"`
	Figures    map[string]any `json:"figures,omitempty"`
}

// AttemptFailure is one attempt of a call that did not serve. A log entry keeps at most 8, messages cut to 400 characters.
type AttemptFailure struct {
	AttemptID    string         `json:"attempt_id"`
	Stage        string         `json:"stage"` // validation, execution, outcome_policy, proof
	ErrorType    string         `json:"error_type"`
	ErrorMessage string         `json:"error_message"`
	FailureClass Class          `json:"failure_class,omitempty"`
	Metadata     map[string]any `json:"metadata,omitempty"`
	Hint         string         `json:"-"` // for the next prompt only: it may hold what other sessions said
}

// Contract sources that involve a contract of the call or of its session.
const (
	ContractOfCall = "hash"   // only the caller's contract
	ContractMerged = "merged" // the caller's contract over the registry's
)

// CallStages is how long each stage of a call took, all attempts together, in milliseconds. A stage that did not take place is 0.
type CallStages struct {
	Queue  float64 `json:"queue_ms"`  // the call waited for its turn in the session
	Select float64 `json:"select_ms"` // what answers was decided
	Forge  float64 `json:"forge_ms"`  // a model was asked for programs, by this call or by one that it waited for
	Gate   float64 `json:"gate_ms"`   // programs were checked
	Run    float64 `json:"run_ms"`    // programs ran, calls that they made included
	Judge  float64 `json:"judge_ms"`  // what they answered was judged
}

// LogEntry is the call log's line of one call.
type LogEntry struct {
	Timestamp string `json:"timestamp"`
	Runtime   string `json:"runtime"` // "go"
	SessionID string `json:"session_id"`
	// of the session, or of a prediction without one; left out for "local", and before there were owners
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

	// in the form in which the program read them, where that is another than the caller's
	ProgramArgs   []json.RawMessage `json:"program_args,omitempty"`
	ProgramKwargs json.RawMessage   `json:"program_kwargs,omitempty"`

	CodeChecksum string `json:"code_checksum,omitempty"`

	DurationMs        float64 `json:"duration_ms"`
	GenerationAttempt int     `json:"generation_attempt"` // programs asked of the model
	OutcomeStatus     string  `json:"outcome_status"`
	// of a running call: the type of its newest event; never stored
	Stage             string `json:"stage,omitempty"`
	OutcomeRetriable  bool   `json:"outcome_retriable"`
	OutcomeValueClass string `json:"outcome_value_class,omitempty"`
	// the beginning of the value as compact JSON, for readers who ask; never stored
	ValuePreview         string         `json:"value_preview,omitempty"`
	OutcomeErrorType     string         `json:"outcome_error_type,omitempty"`
	OutcomeErrorMessage  string         `json:"outcome_error_message,omitempty"`
	OutcomeErrorMetadata map[string]any `json:"outcome_error_metadata,omitempty"`
	OutcomeAuthored      bool           `json:"outcome_authored,omitempty"`
	// a call below it ended in the same authored error
	OutcomePassedOn bool `json:"outcome_passed_on,omitempty"`

	ContractSource      string `json:"contract_source"` // none, hash, fields, merged
	ContractFingerprint string `json:"contract_fingerprint"`

	ProgramSource string `json:"program_source"`
	ArtifactHit   bool   `json:"artifact_hit"`
	Generation    string `json:"generation,omitempty"`
	// what ran the program: go, ssa or yaegi; "" when none ran
	ProgramEngine string `json:"program_engine,omitempty"`
	// native for go, engine for another program_engine
	ProgramTier string `json:"program_tier,omitempty"`
	// a person had called an answer of it wrong
	ProgramDoubted bool `json:"program_doubted,omitempty"`
	// purpose: a person had changed what the method is for since it was made
	ProgramStale string `json:"program_stale,omitempty"`
	// it answered while what is stored was switched off or quarantined, and was not kept
	ProgramUnkept bool `json:"program_unkept,omitempty"`
	// roles of the known tools that the last request to the model showed
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
	// weak successes among the calls below it
	WeakNestedCalls               int    `json:"weak_nested_calls,omitempty"`
	UserCorrectionDetected        bool   `json:"user_correction_detected"`
	UserCorrectionSignal          string `json:"user_correction_signal,omitempty"`
	UserCorrectionReferenceCallID string `json:"user_correction_reference_call_id,omitempty"`
	// the re-ask, of a nested call that of its root; put in when the entry is read
	CorrectedBy string `json:"corrected_by,omitempty"`

	// what a person said of the answer, right or wrong; put in when the entry is read
	Verdict string `json:"verdict,omitempty"`

	// what its programs reached, or were denied, that the manifest of the method lacks
	BeyondManifest *Effects `json:"beyond_manifest,omitempty"`

	Stages *CallStages `json:"stages,omitempty"` // nil for a call that asked no model and took less than 10 ms

	Usage            Usage  `json:"usage"`
	SandboxLevel     string `json:"sandbox_level"`
	Replayable       bool   `json:"replayable"`
	ReplayableReason string `json:"replayable_reason,omitempty"` // in words
	// of the reason: ReasonCode; put in when the entry is read
	ReplayableCode string   `json:"replayable_code,omitempty"`
	Warnings       []string `json:"warnings,omitempty"`
	// of the program that ran last, in its own words, secrets masked; kept for Retention.ValueHours
	Notes        []string        `json:"notes,omitempty"`
	SystemPrompt string          `json:"system_prompt,omitempty"` // with debug on, as the two below
	UserPrompt   string          `json:"user_prompt,omitempty"`
	Context      json.RawMessage `json:"context,omitempty"`
}

// AuditEntry is one operation of a person or of the daemon's maintenance, with how to undo it.
type AuditEntry struct {
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Actor     string `json:"actor"`
	Principal string `json:"principal,omitempty"` // the same; missing in entries of an earlier version
	Action    string `json:"action"`
	Target    string `json:"target"`
	// of whose data the entry has something: it is erased with the session
	SessionID string          `json:"session_id,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Undo      string          `json:"undo,omitempty"`   // the request that takes it back
	Undoes    string          `json:"undoes,omitempty"` // the id of the entry that this operation undid

	// The place in the chain, which package chain describes; the store assigns it. Entries of an earlier version have none.
	Seq      int64  `json:"seq,omitempty"` // from 1
	Salt     string `json:"salt,omitempty"`
	Digest   string `json:"digest,omitempty"` // of the body: what stands between the action and here
	PrevHash string `json:"prev_hash,omitempty"`
	Hash     string `json:"hash,omitempty"`
	Erased   bool   `json:"erased,omitempty"` // the body is erased
}

// PatternEvent is one entry of a role's pattern memory: what a call's program was able to do, a nested call's too.
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
	RootCallID   string   `json:"root_call_id,omitempty"` // of a nested call: the client's call below which it was made
	// the call id of the re-ask, of a nested call that of its root
	Corrected string `json:"corrected,omitempty"`
	// what a person said of the answer; put in when the event is read
	Verdict string `json:"verdict,omitempty"`
}

package agent

import (
	"fmt"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// Policy holds the switches and thresholds that an operator changes at run time. A value in use is shared and must not
// be changed.
type Policy struct {
	ArtifactReadEnabled bool     `json:"artifact_read_enabled"`
	ArtifactReadRoles   []string `json:"artifact_read_roles"` // canary roles; empty means all
	RepairEnabled       bool     `json:"repair_enabled"`
	ForceGeneration     bool     `json:"force_generation"`
	ApprovalRequired    bool     `json:"approval_required"` // a forged program waits for a person before its first run
	FixturesEnabled     bool     `json:"fixtures_enabled"`  // new programs must pass their predecessor's fixtures
	// Correction decides when a wrong verdict causes a new program to be forged: background, next_call, manual.
	Correction string `json:"correction"`
	// DriftAfter is the number of consecutive failures after successful fetches that counts as drift, 1 to 20.
	DriftAfter int `json:"drift_after"`
	// Effects decides how a method's manifest applies to its programs: observe, enforce.
	Effects string `json:"effects"`
	// NewReach decides about a successor that reaches more than its predecessor: ask, allow.
	NewReach string `json:"new_reach"`
	// PredictBudget is the number of model questions that one run of a program may ask, 0 to 64.
	PredictBudget int `json:"predict_budget"`
	// FetchesPerCall is the number of fetches allowed in one run of a program, 0 to 1000.
	FetchesPerCall int `json:"fetches_per_call"`
	// FilePreviewBytes is the size of the part of a file argument that a model request shows, 0 to 16384.
	FilePreviewBytes int `json:"file_preview_bytes"`

	// MaxGenerationAttempts bounds requests for one program, 1 to 10. With 1, an unreadable reply is not requested
	// again; with more it is requested once more, with its fault described.
	MaxGenerationAttempts int `json:"max_generation_attempts"`

	// The budgets bound the retries of one call per stage: after a program that the gate refused, that failed, or
	// whose outcome was refused. They do not apply while RepairEnabled is false.
	GuardrailRecoveryBudget int `json:"guardrail_recovery_budget"`
	ExecutionRepairBudget   int `json:"execution_repair_budget"`
	OutcomeRepairBudget     int `json:"outcome_repair_budget"`

	// MaxRepairsBeforeRegen is the number of repairs of a method after which it is regenerated instead.
	MaxRepairsBeforeRegen int `json:"max_repairs_before_regen"`
	DelegationDepth       int `json:"delegation_depth"`         // maximum depth of nested calls
	NestedCallBudget      int `json:"nested_call_budget"`       // nested calls below one root call
	KnownToolsPromptLimit int `json:"known_tools_prompt_limit"` // tools shown in a model request; 0 shows none
	HistoryPreviewLimit   int `json:"history_preview_limit"`    // records shown in a model request; 0 shows none

	Backoff         BackoffPolicy    `json:"backoff"`
	Degraded        DegradedPolicy   `json:"degraded"`
	DispatchMethods []string         `json:"dispatch_methods"` // methods that take free text
	WeakSuccess     WeakPolicy       `json:"weak_success"`
	UserCorrection  CorrectionPolicy `json:"user_correction"`
	Promotion       PromotionPolicy  `json:"promotion"`
	RedactKeys      []string         `json:"redact_keys"` // patterns of names; see mask.Compile
	// RedactVersion is the edition of the default patterns known to RedactKeys. A pattern of that edition can be
	// missing only because a person removed it.
	RedactVersion   int               `json:"redact_version"`
	Retention       RetentionPolicy   `json:"retention"`
	Recommendations RecommendPolicy   `json:"recommendations"`
	Maintenance     MaintenancePolicy `json:"maintenance"`
	MCP             MCPPolicy         `json:"mcp"`
	Native          NativePolicy      `json:"native"`
	Spend           SpendPolicy       `json:"spend"`
	Storage         StoragePolicy     `json:"storage"`
}

// Values of Policy.Correction.
const (
	CorrectBackground = "background"
	CorrectNextCall   = "next_call"
	CorrectManual     = "manual"
)

// MCPPolicy selects the methods that agents see as tools, over MCP and as function tools.
type MCPPolicy struct {
	Expose string `json:"expose"` // required state of the answering generation: all, durable, approved
}

// Values of MCPPolicy.Expose.
const (
	ExposeAll      = "all"
	ExposeDurable  = "durable"
	ExposeApproved = "approved"
)

// BackoffPolicy sets the delay before another attempt to forge a method after failures: BaseSeconds after the first
// one, doubling up to MaxSeconds. With 0, each call tries again.
type BackoffPolicy struct {
	BaseSeconds int `json:"base_seconds"`
	MaxSeconds  int `json:"max_seconds"`
}

// DegradedPolicy defines when a generation counts as degraded: at least MinFailures of its last Window counted results
// are failures, and either the newest MinFailures results all failed or the share of failures exceeds Rate.
type DegradedPolicy struct {
	MinFailures int     `json:"min_failures"` // 1 to 20
	Rate        float64 `json:"rate"`         // 0 to 1
	Window      int     `json:"window"`       // 1 to 20
}

// WeakPolicy is the vocabulary of weak success.
type WeakPolicy struct {
	Statuses    []string `json:"statuses"`
	EmptyArrays bool     `json:"empty_arrays"`

	// SuccessStatuses are the words, in any case, by which an object declares itself a success. If such an object has
	// an empty array as a direct member, it is a weak success.
	SuccessStatuses []string `json:"success_statuses"`
}

// CorrectionPolicy defines when a call counts as a user's correction of the previous one.
type CorrectionPolicy struct {
	WindowSeconds int     `json:"window_seconds"` // longest time between the two; 0 detects no corrections
	MinOverlap    float64 `json:"min_overlap"`    // least overlap of their arguments, 0 to 1
}

// PromotionPolicy holds the gates of solver_promotion_v1.
type PromotionPolicy struct {
	Shadow       bool    `json:"shadow"`  // the gates run, but do not affect which generation answers
	Enforce      bool    `json:"enforce"` // the gates run and affect which generation answers
	MinCalls     int     `json:"min_calls"`
	MinSessions  int     `json:"min_sessions"`
	ContractPass float64 `json:"contract_pass"` // least share of checked values that satisfy the contract, 0 to 1
}

// RetentionPolicy bounds stored data; 0 means no bound.
type RetentionPolicy struct {
	SessionDays    int `json:"session_days"`     // days since a session's last use
	MaxSessions    int `json:"max_sessions"`     // the oldest are erased first
	ValueHours     int `json:"value_hours"`      // outcome values and effects in the call log
	ContentEntries int `json:"content_entries"`  // values kept for follow-ups, per namespace
	ContentBytes   int `json:"content_bytes"`    // total bytes of these values
	FileHours      int `json:"file_hours"`       // how long a file is kept
	SessionFileMiB int `json:"session_file_mib"` // per session, or for an owner's files without one
}

// StoragePolicy bounds the part of a namespace's storage that one owner may fill.
type StoragePolicy struct {
	// OwnerShare applies to each kind of storage. 0 means half if there are access tokens, otherwise all.
	OwnerShare float64 `json:"owner_share"`
}

// RecommendPolicy holds the thresholds of recommendations.
type RecommendPolicy struct {
	MinEvidence       int     `json:"min_evidence"`       // calls of one kind that make it worth recommending
	WeakRate          float64 `json:"weak_rate"`          // their least share of all calls, 0 to 1
	BoundaryReferrals int     `json:"boundary_referrals"` // calls that ended in wrong_tool_boundary
	Corrections       int     `json:"corrections"`        // corrections by users, which suffice alone
	IntrinsicFailures int     `json:"intrinsic_failures"` // intrinsic and adaptive failures
}

// MinDeleteDays is the minimum number of idle days before something may be deleted. Anything used today can only be
// archived.
const MinDeleteDays = 1

// MaintenancePolicy schedules pruning; it is off while IntervalHours is 0.
type MaintenancePolicy struct {
	IntervalHours int    `json:"interval_hours"`
	StaleDays     int    `json:"stale_days"` // at least MinDeleteDays with the mode delete
	Mode          string `json:"mode"`       // archive or delete
}

// NativePolicy has no effect. Earlier versions compiled programs above these thresholds.
type NativePolicy struct {
	MinCalls int `json:"min_calls"`
	MinCPUMs int `json:"min_cpu_ms"`
}

// DefaultPolicy returns the policy of a new daemon.
func DefaultPolicy() Policy {
	return Policy{
		ArtifactReadEnabled: true, ArtifactReadRoles: []string{}, RepairEnabled: true, FixturesEnabled: true,
		Correction: CorrectBackground, DriftAfter: 2, PredictBudget: 4, FetchesPerCall: 200, FilePreviewBytes: 2048,
		Effects: EffectsObserve, NewReach: ReachAsk,
		MaxGenerationAttempts: 2, GuardrailRecoveryBudget: 1, ExecutionRepairBudget: 1, OutcomeRepairBudget: 1,
		MaxRepairsBeforeRegen: 3, DelegationDepth: 8, NestedCallBudget: 64, KnownToolsPromptLimit: 12,
		HistoryPreviewLimit: 3,
		Backoff:             BackoffPolicy{BaseSeconds: 30, MaxSeconds: 3600},
		Degraded:            DegradedPolicy{MinFailures: 3, Rate: 0.6, Window: Window},
		DispatchMethods:     []string{"ask", "chat", "discuss", "host"},
		WeakSuccess: WeakPolicy{Statuses: []string{"success_no_parse", "no_results", "empty", "partial", "fallback",
			"unparsed"}, EmptyArrays: true,
			SuccessStatuses: []string{"success", "ok", "succeeded", "successful", "found", "completed", "complete",
				"done"}},
		UserCorrection: CorrectionPolicy{WindowSeconds: 180, MinOverlap: 0.67},
		Promotion:      PromotionPolicy{Shadow: true, MinCalls: 10, MinSessions: 2, ContractPass: 0.95},
		RedactKeys:     mask.Defaults(),
		RedactVersion:  mask.Edition,
		Retention: RetentionPolicy{ValueHours: 24, ContentEntries: 128, ContentBytes: 2 << 20, FileHours: 7 * 24,
			SessionFileMiB: 2 << 10},
		Recommendations: RecommendPolicy{MinEvidence: 3, WeakRate: 0.5, BoundaryReferrals: 3, Corrections: 2,
			IntrinsicFailures: 3},
		Maintenance: MaintenancePolicy{StaleDays: 90, Mode: "archive"},
		MCP:         MCPPolicy{Expose: ExposeAll},
		Native:      NativePolicy{MinCalls: 50, MinCPUMs: 2000},
	}
}

// A PolicyError reports the invalid field of a policy.
type PolicyError struct {
	Field  string // JSON pointer
	Reason string
}

func (e *PolicyError) Error() string { return fmt.Sprintf("policy %s: %s", e.Field, e.Reason) }

// Validate returns nil or a *PolicyError for the first invalid field.
func (p Policy) Validate() error {
	if err := p.validateNumbers(); err != nil {
		return err
	}
	if !slices.Contains([]string{CorrectBackground, CorrectNextCall, CorrectManual}, p.Correction) {
		return &PolicyError{"/correction", "must be background, next_call or manual"}
	}
	if !slices.Contains([]string{EffectsObserve, EffectsEnforce}, p.Effects) {
		return &PolicyError{"/effects", "must be observe or enforce"}
	}
	if !slices.Contains([]string{ReachAsk, ReachAllow}, p.NewReach) {
		return &PolicyError{"/new_reach", "must be ask or allow"}
	}
	if err := p.validateShares(); err != nil {
		return err
	}
	if !slices.Contains([]string{"archive", "delete"}, p.Maintenance.Mode) {
		return &PolicyError{"/maintenance/mode", "must be archive or delete"}
	}
	if p.Maintenance.Mode == "delete" && p.Maintenance.StaleDays < MinDeleteDays {
		return &PolicyError{"/maintenance/stale_days",
			fmt.Sprintf("must be at least %d where maintenance.mode is delete, got %d; archive takes 0", MinDeleteDays,
				p.Maintenance.StaleDays)}
	}
	if !slices.Contains([]string{ExposeAll, ExposeDurable, ExposeApproved}, p.MCP.Expose) {
		return &PolicyError{"/mcp/expose", "must be all, durable or approved"}
	}
	for _, l := range []struct {
		field string
		names []string
	}{{"/artifact_read_roles", p.ArtifactReadRoles}, {"/dispatch_methods", p.DispatchMethods},
		{"/redact_keys", p.RedactKeys}, {"/weak_success/statuses", p.WeakSuccess.Statuses},
		{"/weak_success/success_statuses", p.WeakSuccess.SuccessStatuses}} {
		if len(l.names) > 1000 || slices.Contains(l.names, "") {
			return &PolicyError{l.field, "must hold at most 1000 names, none of them empty"}
		}
	}
	return nil
}

func (p Policy) validateNumbers() error {
	for _, c := range []struct {
		field         string
		value, lo, hi int
	}{
		{"/max_generation_attempts", p.MaxGenerationAttempts, 1, 10},
		{"/guardrail_recovery_budget", p.GuardrailRecoveryBudget, 0, 10},
		{"/execution_repair_budget", p.ExecutionRepairBudget, 0, 10},
		{"/outcome_repair_budget", p.OutcomeRepairBudget, 0, 10},
		{"/max_repairs_before_regen", p.MaxRepairsBeforeRegen, 0, 100},
		{"/delegation_depth", p.DelegationDepth, 0, 64},
		{"/nested_call_budget", p.NestedCallBudget, 0, 10000},
		{"/known_tools_prompt_limit", p.KnownToolsPromptLimit, 0, 100},
		{"/history_preview_limit", p.HistoryPreviewLimit, 0, 3},
		{"/backoff/base_seconds", p.Backoff.BaseSeconds, 0, 86400},
		{"/backoff/max_seconds", p.Backoff.MaxSeconds, p.Backoff.BaseSeconds, 86400},
		{"/drift_after", p.DriftAfter, 1, 20},
		{"/predict_budget", p.PredictBudget, 0, 64},
		{"/fetches_per_call", p.FetchesPerCall, 0, 1000},
		{"/file_preview_bytes", p.FilePreviewBytes, 0, 16 << 10},
		{"/degraded/min_failures", p.Degraded.MinFailures, 1, Window},
		{"/degraded/window", p.Degraded.Window, 1, Window},
		{"/user_correction/window_seconds", p.UserCorrection.WindowSeconds, 0, 86400},
		{"/promotion/min_calls", p.Promotion.MinCalls, 0, 1000000},
		{"/promotion/min_sessions", p.Promotion.MinSessions, 0, 200},
		{"/retention/session_days", p.Retention.SessionDays, 0, 36500},
		{"/retention/max_sessions", p.Retention.MaxSessions, 0, 1 << 30},
		{"/retention/value_hours", p.Retention.ValueHours, 0, 24 * 365},
		{"/retention/content_entries", p.Retention.ContentEntries, 0, 100000},
		{"/retention/content_bytes", p.Retention.ContentBytes, 0, 1 << 30},
		{"/retention/file_hours", p.Retention.FileHours, 0, 24 * 365 * 10},
		{"/retention/session_file_mib", p.Retention.SessionFileMiB, 0, 1 << 24},
		{"/recommendations/min_evidence", p.Recommendations.MinEvidence, 1, 1000},
		{"/recommendations/boundary_referrals", p.Recommendations.BoundaryReferrals, 1, 1000},
		{"/recommendations/corrections", p.Recommendations.Corrections, 1, 1000},
		{"/recommendations/intrinsic_failures", p.Recommendations.IntrinsicFailures, 1, 1000},
		{"/maintenance/interval_hours", p.Maintenance.IntervalHours, 0, 24 * 365},
		{"/maintenance/stale_days", p.Maintenance.StaleDays, 0, 36500},
		{"/native/min_calls", p.Native.MinCalls, 1, 1_000_000_000},
		{"/native/min_cpu_ms", p.Native.MinCPUMs, 0, 1_000_000_000},
		{"/spend/day_tokens", p.Spend.DayTokens, 0, maxTokens},
		{"/spend/month_tokens", p.Spend.MonthTokens, 0, maxTokens},
		{"/spend/method_day_tokens", p.Spend.MethodDayTokens, 0, maxTokens},
		{"/spend/owner_day_tokens", p.Spend.OwnerDayTokens, 0, maxTokens},
	} {
		if c.value < c.lo || c.value > c.hi {
			return &PolicyError{c.field, fmt.Sprintf("must be %d to %d, got %d", c.lo, c.hi, c.value)}
		}
	}
	return nil
}

func (p Policy) validateShares() error {
	for _, c := range []struct {
		field string
		value float64
	}{{"/degraded/rate", p.Degraded.Rate}, {"/user_correction/min_overlap", p.UserCorrection.MinOverlap},
		{"/promotion/contract_pass", p.Promotion.ContractPass}, {"/recommendations/weak_rate",
			p.Recommendations.WeakRate}, {"/storage/owner_share", p.Storage.OwnerShare}} {
		if !(c.value >= 0 && c.value <= 1) {
			return &PolicyError{c.field, fmt.Sprintf("must be 0 to 1, got %v", c.value)}
		}
	}
	return nil
}

package agent

import (
	"fmt"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// Policy holds the switches and thresholds which an operator changes at run time. A value in
// use is shared and must not be changed.
type Policy struct {
	ArtifactReadEnabled bool     `json:"artifact_read_enabled"`
	ArtifactReadRoles   []string `json:"artifact_read_roles"` // canary roles; empty means all
	RepairEnabled       bool     `json:"repair_enabled"`
	ForceGeneration     bool     `json:"force_generation"`
	ApprovalRequired    bool     `json:"approval_required"` // a forged program waits for a person before its first run
	FixturesEnabled     bool     `json:"fixtures_enabled"`  // proof before serving
	// when a wrong verdict has a correction forged: background, next_call, manual
	Correction string `json:"correction"`
	// failures in a row after good fetches that count as drift, 1 to 20
	DriftAfter int `json:"drift_after"`
	// what a method's manifest means to its programs: observe, enforce
	Effects string `json:"effects"`
	// what becomes of a successor that reaches more than its predecessor did: ask, allow
	NewReach string `json:"new_reach"`
	// questions to the model that one run of a program may ask, 0 to 64
	PredictBudget  int `json:"predict_budget"`
	FetchesPerCall int `json:"fetches_per_call"` // fetches of one run of a program, 0 to 1000
	// of a file argument that a request to the model shows, 0 to 16384
	FilePreviewBytes int `json:"file_preview_bytes"`

	// 1: a reply that cannot be read is not asked for again; 2 to 10: once, with what was wrong with it
	MaxGenerationAttempts   int `json:"max_generation_attempts"`
	GuardrailRecoveryBudget int `json:"guardrail_recovery_budget"`
	ExecutionRepairBudget   int `json:"execution_repair_budget"`
	OutcomeRepairBudget     int `json:"outcome_repair_budget"`
	MaxRepairsBeforeRegen   int `json:"max_repairs_before_regen"`
	DelegationDepth         int `json:"delegation_depth"`
	NestedCallBudget        int `json:"nested_call_budget"` // nested calls a root call
	KnownToolsPromptLimit   int `json:"known_tools_prompt_limit"`
	HistoryPreviewLimit     int `json:"history_preview_limit"`

	Backoff         BackoffPolicy    `json:"backoff"`
	Degraded        DegradedPolicy   `json:"degraded"`
	DispatchMethods []string         `json:"dispatch_methods"`
	WeakSuccess     WeakPolicy       `json:"weak_success"`
	UserCorrection  CorrectionPolicy `json:"user_correction"`
	Promotion       PromotionPolicy  `json:"promotion"`
	RedactKeys      []string         `json:"redact_keys"` // patterns of names; see mask.Compile
	// the edition of the patterns that RedactKeys may lack only because a person removed them
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

// MCPPolicy says which methods agents see as tools, over MCP and as function tools.
type MCPPolicy struct {
	Expose string `json:"expose"` // all, durable, approved: what the generation that answers must be
}

// Values of MCPPolicy.Expose.
const (
	ExposeAll      = "all"
	ExposeDurable  = "durable"
	ExposeApproved = "approved"
)

// BackoffPolicy says how long failed forging of a method is not tried again: BaseSeconds after the first failure,
// doubling to MaxSeconds. 0 tries again with each call.
type BackoffPolicy struct {
	BaseSeconds int `json:"base_seconds"`
	MaxSeconds  int `json:"max_seconds"`
}

// DegradedPolicy says when a generation is degraded.
type DegradedPolicy struct {
	MinFailures int     `json:"min_failures"`
	Rate        float64 `json:"rate"`
	Window      int     `json:"window"`
}

// WeakPolicy is the vocabulary of weak success.
type WeakPolicy struct {
	Statuses    []string `json:"statuses"`
	EmptyArrays bool     `json:"empty_arrays"`

	// SuccessStatuses are the words, in any case, with which an object calls itself a success: an empty array of its
	// own is then a weak success.
	SuccessStatuses []string `json:"success_statuses"`
}

// CorrectionPolicy says when a call is a user's correction of the one before.
type CorrectionPolicy struct {
	WindowSeconds int     `json:"window_seconds"`
	MinOverlap    float64 `json:"min_overlap"`
}

// PromotionPolicy holds the gates of solver_promotion_v1.
type PromotionPolicy struct {
	Shadow       bool    `json:"shadow"`
	Enforce      bool    `json:"enforce"`
	MinCalls     int     `json:"min_calls"`
	MinSessions  int     `json:"min_sessions"`
	ContractPass float64 `json:"contract_pass"`
}

// RetentionPolicy bounds what is kept; 0 keeps without that bound.
type RetentionPolicy struct {
	SessionDays    int `json:"session_days"`
	MaxSessions    int `json:"max_sessions"`
	ValueHours     int `json:"value_hours"` // outcome values and effects in the call log
	ContentEntries int `json:"content_entries"`
	ContentBytes   int `json:"content_bytes"`
	FileHours      int `json:"file_hours"`       // how long a file is kept
	SessionFileMiB int `json:"session_file_mib"` // of files of a session, or of an owner's that belong to none
}

// StoragePolicy bounds the part of a namespace's storage that one owner may fill.
type StoragePolicy struct {
	// of each kind; 0: half where there are access tokens, all where there are none
	OwnerShare float64 `json:"owner_share"`
}

// RecommendPolicy holds the thresholds of recommendations.
type RecommendPolicy struct {
	MinEvidence       int     `json:"min_evidence"`
	WeakRate          float64 `json:"weak_rate"`
	BoundaryReferrals int     `json:"boundary_referrals"`
	Corrections       int     `json:"corrections"`
	IntrinsicFailures int     `json:"intrinsic_failures"`
}

// MinDeleteDays is for how many days something must have been idle, at least, to be deleted; what was used today is archived at most.
const MinDeleteDays = 1

// MaintenancePolicy schedules pruning; it is off while IntervalHours is 0.
type MaintenancePolicy struct {
	IntervalHours int    `json:"interval_hours"`
	StaleDays     int    `json:"stale_days"` // at least MinDeleteDays with the mode delete
	Mode          string `json:"mode"`       // archive or delete
}

// NativePolicy has no effect: earlier versions compiled the programs that had so many calls, which took that much time.
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

// A PolicyError says which field of a policy is refused.
type PolicyError struct {
	Field  string // JSON pointer
	Reason string
}

func (e *PolicyError) Error() string { return fmt.Sprintf("policy %s: %s", e.Field, e.Reason) }

// Validate returns nil or a *PolicyError that names the first field out of range.
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

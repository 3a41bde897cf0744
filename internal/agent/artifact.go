package agent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SchemaVersion is the version of every stored document (seed 001's TOOLSTORE_SCHEMA_VERSION).
const SchemaVersion = 1

// ABI is the version of the interface between programs and the runtime: the runtime_version of artifacts. A program
// forged for another ABI does not run. The interpreter's version is recorded separately.
const ABI = "recurgent-abi-1"

// Class classifies the end of a call by its meaning for the health of the program that ran.
type Class string

const (
	// ClassNone means that nothing ran to a conclusive end: the call was interrupted, refused or is still forging.
	ClassNone      Class = ""
	ClassOK        Class = "ok"        // a value that satisfies the contract
	ClassAuthored  Class = "authored"  // an error that the program itself returned
	ClassIntrinsic Class = "intrinsic" // the program's fault
	ClassAdaptive  Class = "adaptive"  // an external response changed shape
	ClassExtrinsic Class = "extrinsic" // an external source failed
)

// Counts reports whether an end of class c counts as a failure of the artifact.
func (c Class) Counts() bool { return c == ClassIntrinsic || c == ClassAdaptive || c == ClassExtrinsic }

// Lifecycle states of an artifact.
const (
	StateCandidate = "candidate"
	StateProbation = "probation"
	StateDurable   = "durable"
	StateDegraded  = "degraded"
)

// Window is the number of newest counted calls of a generation from which its recent failure rate is computed.
const Window = 20

// Artifact is the stored state of a (role, method): its current program, the totals of its calls, and its generations.
// An artifact returned by a store is shared and must not be changed; Apply returns a changed copy.
type Artifact struct {
	SchemaVersion int    `json:"schema_version"`
	Role          string `json:"role"`
	MethodName    string `json:"method_name"`

	// The current generation, flattened as in seed 001's data model.
	ContractFingerprint string   `json:"contract_fingerprint"`
	PromptVersion       string   `json:"prompt_version"`
	RuntimeVersion      string   `json:"runtime_version"`
	Model               string   `json:"model"`
	CodeChecksum        string   `json:"code_checksum"`
	Code                string   `json:"code"`
	Dependencies        []string `json:"dependencies"`

	SuccessCount          int64   `json:"success_count"`
	FailureCount          int64   `json:"failure_count"` // intrinsic + adaptive + extrinsic
	IntrinsicFailureCount int64   `json:"intrinsic_failure_count"`
	AdaptiveFailureCount  int64   `json:"adaptive_failure_count"`
	ExtrinsicFailureCount int64   `json:"extrinsic_failure_count"`
	AuthoredErrorCount    int64   `json:"authored_error_count"`
	RecentFailureRate     float64 `json:"recent_failure_rate"` // over the current generation's window, 0 to 1
	// UnkeptCalls counts calls answered by programs that were not kept, while the artifact was switched off or
	// quarantined.
	UnkeptCalls       int64  `json:"unkept_calls,omitempty"`
	LastFailureReason string `json:"last_failure_reason"`
	LastFailureClass  Class  `json:"last_failure_class"`
	// LastFailureOwner owns the call that failed. It is empty for "local" and in older files.
	LastFailureOwner      string `json:"last_failure_owner,omitempty"`
	RepairCountSinceRegen int    `json:"repair_count_since_regen"`

	Cacheable          bool   `json:"cacheable"`
	CacheabilityReason string `json:"cacheability_reason"`
	LifecycleState     string `json:"lifecycle_state"`

	Quarantined      bool   `json:"quarantined,omitempty"`
	QuarantineReason string `json:"quarantine_reason,omitempty"`
	Pinned           bool   `json:"pinned,omitempty"`
	// Approved reports whether a person approved the current generation (policy approval_required).
	Approved        bool   `json:"approved,omitempty"`
	ForceRegenerate string `json:"force_regenerate,omitempty"` // the reason; the next call forges a new program

	Owner          string     `json:"owner,omitempty"` // the owner of its first generation
	CreatedAt      time.Time  `json:"created_at"`
	LastUsedAt     time.Time  `json:"last_used_at"`
	LastRepairedAt *time.Time `json:"last_repaired_at"`

	Generations []*Generation `json:"history"` // newest first; the first is not always the current one: see CurrentID
	CurrentID   string        `json:"current_generation"`
	Sequence    int           `json:"sequence"` // number of the newest generation ever made
	Scorecard   Scorecard     `json:"scorecard"`
	// Rejections are forged programs that were not adopted, newest first, at most 5.
	Rejections []Rejection `json:"rejections,omitempty"`
	// Displaced holds generations that operators' programs pushed out, newest first, until the next call is counted.
	Displaced []Displaced `json:"displaced,omitempty"`

	// Examples are the answers that people expect. They may exist before the first program.
	Examples   []Example   `json:"examples,omitempty"`
	Verdicts   []Verdict   `json:"verdicts,omitempty"`   // people's judgements of calls, newest first, at most 256
	Correction *Correction `json:"correction,omitempty"` // nil if nothing was ever corrected
	Failures   []Failure   `json:"failures,omitempty"`   // evidence for the next program, newest first, at most 3
	Drifts     []Drift     `json:"drifts,omitempty"`     // sources that changed, newest first, at most 16
	Manifest   *Manifest   `json:"effects,omitempty"`    // what its programs may reach; nil before the first ok call
	// Returned records that a person's change brought back a generation that breaks examples; nil if it did not.
	Returned *Returned `json:"returned,omitempty"`

	Revision int64 `json:"revision"`

	// Adoptions counts the changes that a decision to adopt a generation depends on: all but counted results. See
	// AdoptionRevision.
	Adoptions int64 `json:"adoptions,omitempty"`
}

// maxSessions bounds the sessions that a scorecard lists.
const maxSessions = 200

// Scorecard holds the figures that the promotion gates use in addition to the counters of the current generation. It is
// reset when another generation becomes current, and by ResetMetrics.
type Scorecard struct {
	Sessions               []string `json:"sessions,omitempty"` // distinct, at most 200
	ContractChecked        int64    `json:"contract_checked"`
	ContractPassed         int64    `json:"contract_passed"`
	GuardrailExhausted     int64    `json:"guardrail_exhausted"`
	OutcomeRepairExhausted int64    `json:"outcome_repair_exhausted"`
	WrongToolBoundary      int64    `json:"wrong_tool_boundary"`
}

// Generation is one version of an artifact's program.
type Generation struct {
	ID       string  `json:"id"` // gen-1, gen-2 ...
	ParentID *string `json:"parent_id"`
	Trigger  string  `json:"trigger"` // initial_forge, repair:<reason>, regenerate:<reason>, operator:<reason>
	State    string  `json:"lifecycle_state,omitempty"`

	Code                string   `json:"code"`
	CodeChecksum        string   `json:"code_checksum"`
	Dependencies        []string `json:"dependencies"`
	ContractFingerprint string   `json:"contract_fingerprint"` // of the whole contract
	// CheckedFingerprint is the fingerprint of the machine-checked parts. A change of these makes the generation stale.
	CheckedFingerprint string `json:"checked_fingerprint"`
	// CallersContract means that the contract came from the caller, not from the registry. Such a generation does not
	// answer calls without a contract. It is false in older files.
	CallersContract bool `json:"callers_contract,omitempty"`
	// Asked holds the machine-checked parts of the caller's contract if CallersContract is set. It is nil in older
	// files, and if those parts contain a secret.
	Asked          *Contract `json:"asked,omitempty"`
	PromptVersion  string    `json:"prompt_version"`
	RuntimeVersion string    `json:"runtime_version"`
	Interpreter    string    `json:"interpreter"`
	Model          string    `json:"model"`
	// Owner owns the call or operation that the program was written for; "" in older files.
	Owner string `json:"owner,omitempty"`
	// Callers are the first two owners whose client calls it answered ok.
	Callers    []string  `json:"callers,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	ForgeUsage Usage     `json:"forge_usage"` // of the model requests that wrote it

	Cacheable          bool   `json:"cacheable"`
	CacheabilityReason string `json:"cacheability_reason"`
	// Facts are the gate's findings about the program, already validated.
	Facts    json.RawMessage `json:"facts,omitempty"`
	Approved bool            `json:"approved,omitempty"` // by a person
	// Aside means that it answered one call while a switch excluded the current generation, and displaced nothing.
	Aside bool `json:"aside,omitempty"`
	// ChangedAnswers are its predecessor's fixtures that it answers differently, as a person wanted.
	ChangedAnswers []ChangedAnswer `json:"changed_answers,omitempty"`
	SolverShape    json.RawMessage `json:"solver_shape,omitempty"`
	Interface      *Interface      `json:"interface,omitempty"` // nil means not known yet; the next load infers it

	SuccessCount          int64 `json:"success_count"`
	IntrinsicFailureCount int64 `json:"intrinsic_failure_count"`
	AdaptiveFailureCount  int64 `json:"adaptive_failure_count"`
	ExtrinsicFailureCount int64 `json:"extrinsic_failure_count"`
	AuthoredErrorCount    int64 `json:"authored_error_count"`
	// Window holds the newest counted results, oldest first: 'o' ok, 'i' intrinsic, 'a' adaptive; at most 20.
	Window string `json:"window"`
	// AuthoredStreak counts consecutive authored errors of types that are not Honest.
	AuthoredStreak int `json:"authored_streak,omitempty"`
	// DriftStreak counts results since the last ok that a changed source may explain.
	DriftStreak int `json:"drift_streak,omitempty"`
	// UnknownStreak counts consecutive calls that failed with arguments which the program does not read.
	UnknownStreak int `json:"unknown_streak,omitempty"`

	// Needless holds argument shapes that a repaired program also ignored while giving the same answer; at most 16.
	Needless []string `json:"needless,omitempty"`
	// Answered holds hashes of the inputs that it answered ok from a source, oldest first, at most 64.
	Answered []string `json:"answered,omitempty"`

	// Shapes are the shapes of the bodies fetched by the last ok run, by URL without query.
	Shapes   map[string]string `json:"shapes,omitempty"`
	Outlines map[string]string `json:"outlines,omitempty"` // the same in words, for models
	// ShapesOwner owns the call whose run gave Shapes. It is empty for "local" and in older files.
	ShapesOwner string `json:"shapes_owner,omitempty"`

	Fixtures []Fixture `json:"fixtures,omitempty"`
	Effects  *Effects  `json:"effects,omitempty"` // effects of its ok calls; nil before the first one
	// Beyond is the part of its reach that needed a person's consent when it was written, "*" for what it computes; nil
	// if there is none.
	Beyond *Effects `json:"beyond,omitempty"`

	MadeFor *MadeFor `json:"made_for,omitempty"` // nil in older files
	// Confirmed is the digest of the registered wording at the time when a person last confirmed the program.
	Confirmed WordingDigest `json:"confirmed,omitempty"`
	// Breaks lists the examples that it broke when it was written for another wording.
	Breaks []string `json:"breaks,omitempty"`
	// Restored is set if the generation was restored from the archive below a newer program; otherwise nil.
	Restored *Restored `json:"restored,omitempty"`
}

// ByPerson reports whether a person put the program in.
func (g *Generation) ByPerson() bool { return strings.HasPrefix(g.Trigger, "operator:") }

// Unproven reports whether the generation has never answered with a value.
func (g *Generation) Unproven() bool {
	return g.SuccessCount == 0 && (g.State == "" || g.State == StateCandidate)
}

// Displaced holds the generations that a person's program pushed out. A restore below a newer program is recorded here
// even if it pushed out none.
type Displaced struct {
	By          string        `json:"by"`
	Generations []*Generation `json:"generations"`

	// Revision and Adoptions are set for a restored program: the artifact's revision after the restore, and its
	// Adoptions before.
	Revision  int64 `json:"revision,omitempty"`
	Adoptions int64 `json:"adoptions,omitempty"`
}

// Fixture is an ok call kept to check successors against. A generation keeps at most MaxFixtures.
type Fixture struct {
	CallID    string `json:"call_id"`
	SessionID string `json:"session_id"`
	// Owner owns the session. It is empty for "local" and in files from before there were owners.
	Owner   string            `json:"owner,omitempty"`
	Args    []json.RawMessage `json:"args"`
	Kwargs  json.RawMessage   `json:"kwargs"`
	Context json.RawMessage   `json:"context,omitempty"`
	Value   json.RawMessage   `json:"value"`
	Effects json.RawMessage   `json:"effects,omitempty"`
}

// Rejection describes a program that a model wrote to replace a generation and that was discarded.
type Rejection struct {
	At           time.Time `json:"at"`
	CallID       string    `json:"call_id"`
	Owner        string    `json:"owner,omitempty"` // of the call; empty for "local" and in older files
	Trigger      string    `json:"trigger"`
	CodeChecksum string    `json:"code_checksum"`
	Stage        string    `json:"stage"` // validation, execution, outcome_policy, proof
	Reason       string    `json:"reason"`
	Hint         string    `json:"hint,omitempty"`    // for models only, in requests of the owner
	Fixture      string    `json:"fixture,omitempty"` // the call id of the fixture that it broke
	Example      string    `json:"example,omitempty"` // the id of the example that it broke
}

// MaxFixtures is the number of fixtures that a generation keeps; MaxFixtureBytes bounds each of them.
const (
	MaxFixtures     = 8
	MaxFixtureBytes = 64 << 10
)

// Current returns the current generation, or nil if it is not kept.
func (a *Artifact) Current() *Generation { return a.Find(a.CurrentID) }

// Lineage returns the current generation and those of its ancestors that are kept, newest first.
func (a *Artifact) Lineage() (out []*Generation) {
	for g := a.Current(); g != nil && len(out) < len(a.Generations); g = a.Find(*g.ParentID) {
		if out = append(out, g); g.ParentID == nil {
			break
		}
	}
	return out
}

// Held returns every generation that the artifact holds: the kept ones, and the displaced ones that an undo would bring
// back.
func (a *Artifact) Held() []*Generation {
	all := a.Generations[:len(a.Generations):len(a.Generations)]
	for _, d := range a.Displaced {
		all = append(all, d.Generations...)
	}
	return all
}

// Find returns the kept generation with that id, or nil.
func (a *Artifact) Find(id string) *Generation {
	for _, g := range a.Generations {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// NextGenerationID returns the id for the next generation.
func (a *Artifact) NextGenerationID() string { return "gen-" + strconv.Itoa(a.Sequence+1) }

// FailureRate returns the share of failures in the generation's window and the window's length; 0, 0 if it is empty or
// g is nil.
func (g *Generation) FailureRate() (rate float64, counted int) { return g.RecentRate(Window) }

// RecentRate is FailureRate over at most the last newest results.
func (g *Generation) RecentRate(last int) (rate float64, counted int) {
	if g == nil || g.Window == "" || last < 1 {
		return 0, 0
	}
	w := g.Window[max(0, len(g.Window)-last):]
	bad := len(w) - strings.Count(w, "o")
	return float64(bad) / float64(len(w)), len(w)
}

// String returns role.method, for messages.
func (a *Artifact) String() string { return fmt.Sprintf("%s.%s", a.Role, a.MethodName) }

package agent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SchemaVersion is that of every stored document (seed 001's TOOLSTORE_SCHEMA_VERSION).
const SchemaVersion = 1

// ABI is the version of the program form, the runtime_version of artifacts: a program forged for another ABI is
// not run. The interpreter's version is recorded apart.
const ABI = "recurgent-abi-1"

// Class is what a call's end means for the health of the program that ran.
type Class string

const (
	ClassNone      Class = ""          // nothing ran to an end that says anything: interrupted, refused, still forging
	ClassOK        Class = "ok"        // a value that kept the contract
	ClassAuthored  Class = "authored"  // the program's own error: an honest answer
	ClassIntrinsic Class = "intrinsic" // the program's fault
	ClassAdaptive  Class = "adaptive"  // an external response changed shape
	ClassExtrinsic Class = "extrinsic" // an external source failed
)

// Counts reports whether such an end is a failure that an artifact counts.
func (c Class) Counts() bool { return c == ClassIntrinsic || c == ClassAdaptive || c == ClassExtrinsic }

// Lifecycle states of an artifact.
const (
	StateCandidate = "candidate"
	StateProbation = "probation"
	StateDurable   = "durable"
	StateDegraded  = "degraded"
)

// Window is how many counted calls of a generation the recent failure rate looks at.
const Window = 20

// Artifact is the stored form of a (role, method): its current program, the totals of its calls, and its
// generations. A value handed out by a store is shared and must not be changed: Apply returns a changed copy.
type Artifact struct {
	SchemaVersion int    `json:"schema_version"`
	Role          string `json:"role"`
	MethodName    string `json:"method_name"`

	// The current generation, flattened as seed 001's data model has it.
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
	RecentFailureRate     float64 `json:"recent_failure_rate"` // of the current generation's window, 0 to 1
	// answered by programs that were not kept, while this was switched off or quarantined
	UnkeptCalls       int64  `json:"unkept_calls,omitempty"`
	LastFailureReason string `json:"last_failure_reason"`
	LastFailureClass  Class  `json:"last_failure_class"`
	// of the call; left out for "local", and before it was kept
	LastFailureOwner      string `json:"last_failure_owner,omitempty"`
	RepairCountSinceRegen int    `json:"repair_count_since_regen"`

	Cacheable          bool   `json:"cacheable"`
	CacheabilityReason string `json:"cacheability_reason"`
	LifecycleState     string `json:"lifecycle_state"`

	Quarantined      bool   `json:"quarantined,omitempty"`
	QuarantineReason string `json:"quarantine_reason,omitempty"`
	Pinned           bool   `json:"pinned,omitempty"`
	// the current generation, by a person, for the policy approval_required
	Approved        bool   `json:"approved,omitempty"`
	ForceRegenerate string `json:"force_regenerate,omitempty"` // the reason; the next call forges anew

	Owner          string     `json:"owner,omitempty"` // that of its first generation
	CreatedAt      time.Time  `json:"created_at"`
	LastUsedAt     time.Time  `json:"last_used_at"`
	LastRepairedAt *time.Time `json:"last_repaired_at"`

	Generations []*Generation `json:"history"` // newest first; the first is not always the current one: see CurrentID
	CurrentID   string        `json:"current_generation"`
	Sequence    int           `json:"sequence"` // number of the newest generation ever made
	Scorecard   Scorecard     `json:"scorecard"`
	Rejections  []Rejection   `json:"rejections,omitempty"` // programs that were not let in, newest first, at most 5
	// by operators' programs, newest first; kept until the next call counts
	Displaced []Displaced `json:"displaced,omitempty"`

	Examples   []Example   `json:"examples,omitempty"`   // what people expect; also before there is a program
	Verdicts   []Verdict   `json:"verdicts,omitempty"`   // what people said of calls, newest first, at most 256
	Correction *Correction `json:"correction,omitempty"` // nil: nothing was ever corrected
	Failures   []Failure   `json:"failures,omitempty"`   // evidence for the next program, newest first, at most 3
	Drifts     []Drift     `json:"drifts,omitempty"`     // sources that changed, newest first, at most 16
	Manifest   *Manifest   `json:"effects,omitempty"`    // what its programs may reach; nil before the first ok call
	// what a person's change brought back that does not hold examples; nil: nothing
	Returned *Returned `json:"returned,omitempty"`

	Revision int64 `json:"revision"`

	// Adoptions counts what a decision to adopt a generation looks at: every change but counted results. See AdoptionRevision.
	Adoptions int64 `json:"adoptions,omitempty"`
}

// maxSessions bounds the sessions that a scorecard names.
const maxSessions = 200

// Scorecard holds what the promotion gates look at beside the counters of the current generation; it starts anew with
// each generation that becomes the current one, and with a promotion's reset.
type Scorecard struct {
	Sessions               []string `json:"sessions,omitempty"` // distinct ones, at most 200
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
	// of its machine-checked parts: what makes a generation stale
	CheckedFingerprint string `json:"checked_fingerprint"`
	// the deliverable was its caller's, not the registry's: it answers no call without a contract; false in older files
	CallersContract bool `json:"callers_contract,omitempty"`
	// with CallersContract: the machine-checked parts of that contract; nil in older files, and where they hold a secret
	Asked          *Contract `json:"asked,omitempty"`
	PromptVersion  string    `json:"prompt_version"`
	RuntimeVersion string    `json:"runtime_version"`
	Interpreter    string    `json:"interpreter"`
	Model          string    `json:"model"`
	// whose call, or operation, it was written for; "" in older files
	Owner string `json:"owner,omitempty"`
	// owners of client's calls that it answered ok: two at most, the first ones
	Callers    []string  `json:"callers,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	ForgeUsage Usage     `json:"forge_usage"` // what the model was asked for it

	Cacheable          bool            `json:"cacheable"`
	CacheabilityReason string          `json:"cacheability_reason"`
	Facts              json.RawMessage `json:"facts,omitempty"`    // the gate's, validated
	Approved           bool            `json:"approved,omitempty"` // by a person
	// it answered one call under a switch and displaced nothing
	Aside bool `json:"aside,omitempty"`
	// fixtures of its predecessor that it answers differently, as a person wanted
	ChangedAnswers []ChangedAnswer `json:"changed_answers,omitempty"`
	SolverShape    json.RawMessage `json:"solver_shape,omitempty"`
	Interface      *Interface      `json:"interface,omitempty"` // nil: not known yet; the next load infers it

	SuccessCount          int64 `json:"success_count"`
	IntrinsicFailureCount int64 `json:"intrinsic_failure_count"`
	AdaptiveFailureCount  int64 `json:"adaptive_failure_count"`
	ExtrinsicFailureCount int64 `json:"extrinsic_failure_count"`
	AuthoredErrorCount    int64 `json:"authored_error_count"`
	// counted results, oldest first: 'o' ok, 'i' intrinsic, 'a' adaptive; at most 20
	Window         string `json:"window"`
	AuthoredStreak int    `json:"authored_streak,omitempty"` // authored errors in a row, without honest ones
	// results in a row that may come of a changed source
	DriftStreak int `json:"drift_streak,omitempty"`
	// calls in a row that failed with arguments which the program does not read
	UnknownStreak int `json:"unknown_streak,omitempty"`

	// shapes of arguments that a repaired program ignored, too, and answered as this one; at most 16
	Needless []string `json:"needless,omitempty"`
	// hashes of inputs that it answered ok from a source, oldest first, at most 64
	Answered []string `json:"answered,omitempty"`

	// of fetched bodies at the last ok run, by URL without query
	Shapes   map[string]string `json:"shapes,omitempty"`
	Outlines map[string]string `json:"outlines,omitempty"` // the same in words, for models
	// of the call whose run they are of; left out for "local", and before it was kept
	ShapesOwner string `json:"shapes_owner,omitempty"`

	Fixtures []Fixture `json:"fixtures,omitempty"`
	Effects  *Effects  `json:"effects,omitempty"` // what it did in ok calls; nil before the first one
	// what of its reach a person was to be asked about when it was written, "*" for what it computes; nil for nothing
	Beyond *Effects `json:"beyond,omitempty"`

	MadeFor *MadeFor `json:"made_for,omitempty"` // nil in older files
	// of what people had registered when one of them last stood by the program
	Confirmed WordingDigest `json:"confirmed,omitempty"`
	// the examples that it did not hold when it was written for another wording
	Breaks   []string  `json:"breaks,omitempty"`
	Restored *Restored `json:"restored,omitempty"` // from the archive, below a newer program; nil for any other
}

// ByPerson reports whether a person put the program in.
func (g *Generation) ByPerson() bool { return strings.HasPrefix(g.Trigger, "operator:") }

// Unproven reports whether the generation never answered with a value.
func (g *Generation) Unproven() bool {
	return g.SuccessCount == 0 && (g.State == "" || g.State == StateCandidate)
}

// Displaced holds the generations that a person's program pushed out. A restore below a newer program records it even when it pushed out none.
type Displaced struct {
	By          string        `json:"by"`
	Generations []*Generation `json:"generations"`

	// Of a restored program: the artifact's revision after it, and its adoptions before.
	Revision  int64 `json:"revision,omitempty"`
	Adoptions int64 `json:"adoptions,omitempty"`
}

// Fixture is an ok call kept as a proof for successors: at most 8 a generation.
type Fixture struct {
	CallID    string `json:"call_id"`
	SessionID string `json:"session_id"`
	// of the session; left out for "local", and before there were owners
	Owner   string            `json:"owner,omitempty"`
	Args    []json.RawMessage `json:"args"`
	Kwargs  json.RawMessage   `json:"kwargs"`
	Context json.RawMessage   `json:"context,omitempty"`
	Value   json.RawMessage   `json:"value"`
	Effects json.RawMessage   `json:"effects,omitempty"`
}

// Rejection describes a program that a model wrote to replace a generation, and that was discarded.
type Rejection struct {
	At           time.Time `json:"at"`
	CallID       string    `json:"call_id"`
	Owner        string    `json:"owner,omitempty"` // of the call; left out for "local", and before it was kept
	Trigger      string    `json:"trigger"`
	CodeChecksum string    `json:"code_checksum"`
	Stage        string    `json:"stage"` // validation, execution, outcome_policy, proof
	Reason       string    `json:"reason"`
	Hint         string    `json:"hint,omitempty"`    // for models only, in requests of the owner
	Fixture      string    `json:"fixture,omitempty"` // the call id of the fixture that broke
	Example      string    `json:"example,omitempty"` // the id of the example that broke
}

// MaxFixtures is how many fixtures a generation keeps; MaxFixtureBytes bounds one.
const (
	MaxFixtures     = 8
	MaxFixtureBytes = 64 << 10
)

// Current returns the current generation, or nil when none is kept.
func (a *Artifact) Current() *Generation { return a.Find(a.CurrentID) }

// Lineage returns the current generation and the kept ones that it comes of, newest first.
func (a *Artifact) Lineage() (out []*Generation) {
	for g := a.Current(); g != nil && len(out) < len(a.Generations); g = a.Find(*g.ParentID) {
		if out = append(out, g); g.ParentID == nil {
			break
		}
	}
	return out
}

// Held returns every generation that the artifact holds: the kept ones, and those that an undo would bring back.
func (a *Artifact) Held() []*Generation {
	all := a.Generations[:len(a.Generations):len(a.Generations)]
	for _, d := range a.Displaced {
		all = append(all, d.Generations...)
	}
	return all
}

// Find returns the kept generation of that id, or nil.
func (a *Artifact) Find(id string) *Generation {
	for _, g := range a.Generations {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// NextGenerationID names the generation after the newest one.
func (a *Artifact) NextGenerationID() string { return "gen-" + strconv.Itoa(a.Sequence+1) }

// FailureRate returns the share of failures among the generation's window, 0 when it is empty, and the window's length.
func (g *Generation) FailureRate() (rate float64, counted int) { return g.RecentRate(Window) }

// RecentRate is FailureRate over the newest last results.
func (g *Generation) RecentRate(last int) (rate float64, counted int) {
	if g == nil || g.Window == "" || last < 1 {
		return 0, 0
	}
	w := g.Window[max(0, len(g.Window)-last):]
	bad := len(w) - strings.Count(w, "o")
	return float64(bad) / float64(len(w)), len(w)
}

// String names the artifact in messages.
func (a *Artifact) String() string { return fmt.Sprintf("%s.%s", a.Role, a.MethodName) }

package agent

import (
	"slices"
	"time"
)

// ArtifactChange describes how one call, or one operator's operation, changes an artifact. Changes are deltas, so that
// concurrent calls add up. Zero fields change nothing.
type ArtifactChange struct {
	Role       string    `json:"role"`
	MethodName string    `json:"method_name"`
	At         time.Time `json:"at"`

	// Generation becomes the newest and, unless Aside is set, the current one. The caller chooses its ID; its parent
	// defaults to the current one.
	Generation *Generation `json:"generation,omitempty"`
	// Decided is the AdoptionRevision of the artifact on which Generation was decided. The change conflicts if the
	// revision differs by now. nil means not compared.
	Decided *int64 `json:"decided,omitempty"`

	// Result counts the end of a run of the generation named by ResultOf: the current one if empty, or NoGeneration if
	// the program was not kept.
	Result   Class  `json:"result,omitempty"`
	ResultOf string `json:"result_of,omitempty"`
	Reason   string `json:"reason,omitempty"` // of a failure
	// Owner owns the call that failed or that Shapes come from; empty for "local".
	Owner     string `json:"owner,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	// Caller owns an ok call made by a client; "" if the generation already knows enough callers.
	Caller      string `json:"caller,omitempty"`
	ErrorType   string `json:"error_type,omitempty"`
	Checked     bool   `json:"checked,omitempty"` // the value was checked against a contract
	CheckPassed bool   `json:"check_passed,omitempty"`
	State       string `json:"state,omitempty"` // the new lifecycle state

	RepairFailed bool              `json:"repair_failed,omitempty"` // a repair was tried and failed
	Rejected     *Rejection        `json:"rejected,omitempty"`
	Fixture      *Fixture          `json:"fixture,omitempty"`
	Shapes       map[string]string `json:"shapes,omitempty"`
	Outlines     map[string]string `json:"outlines,omitempty"` // the outlines of Shapes

	// Aside adopts Generation without displacing the current one, if there is one: it answered a call while a switch
	// excluded the current one.
	Aside bool `json:"aside,omitempty"`
	// Unkept counts a call answered by a program that is not kept, while the artifact was switched off or quarantined.
	Unkept bool `json:"unkept,omitempty"`
	// Drifting means that a changed source may explain the result. Answered is the hash of an input that was answered
	// ok from a source.
	Drifting bool   `json:"drifting,omitempty"`
	Misnamed bool   `json:"misnamed,omitempty"` // the call failed with arguments that the program does not read
	Unrun    bool   `json:"unrun,omitempty"`    // the call was refused for its arguments, so the program did not run
	Answered string `json:"answered,omitempty"`
	// Needless is a shape of arguments that the generation named by ResultOf need not read.
	Needless string `json:"needless,omitempty"`

	// Drifted lists the sources whose change Generation was written for. Effects recorded from them before At no longer
	// bind any program.
	Drifted []string `json:"drifted,omitempty"`

	// Interface is set on the generation named by ResultOf (the current one if empty) if that has none yet.
	Interface *Interface `json:"interface,omitempty"`

	// Effects are those of the counted run that are new for its generation; nil if there are none. Grow allows the
	// manifest of the method to grow by them.
	Effects *Effects `json:"effects,omitempty"`
	Grow    bool     `json:"grow,omitempty"`

	// Judgements of people, and their consequences.
	Examples *[]Example `json:"examples,omitempty"` // replaces all examples
	// Example is added. It replaces an example for the same input.
	Example     *Example    `json:"example,omitempty"`
	DropExample string      `json:"drop_example,omitempty"`
	Verdict     *Verdict    `json:"verdict,omitempty"` // an active wrong verdict drops the fixtures of its input
	DropVerdict string      `json:"drop_verdict,omitempty"`
	Correction  *Correction `json:"correction,omitempty"`
	Failure     *Failure    `json:"failure,omitempty"`
	// Proposal means that the change only adds a proposal, which has no effect yet.
	Proposal bool `json:"proposal,omitempty"`

	// Returned becomes the artifact's Returned; one without a generation clears it.
	Returned *Returned `json:"returned,omitempty"`
	// Reworded records the wording that a generation was made for, or was checked against.
	Reworded *Rewording `json:"reworded,omitempty"`
	// Words, with Generation, is the digest of the registered wording. The newest generation made for it is kept.
	Words WordingDigest `json:"words,omitempty"`

	// Operations of people.
	Quarantine *string `json:"quarantine,omitempty"` // reason; Release lifts it
	Release    bool    `json:"release,omitempty"`
	Pin        *bool   `json:"pin,omitempty"`
	// Approve applies to the generation named by ApproveOf, the current one if empty.
	Approve         *bool   `json:"approve,omitempty"`
	ApproveOf       string  `json:"approve_of,omitempty"`
	ForceRegenerate *string `json:"force_regenerate,omitempty"`
	ResetMetrics    bool    `json:"reset_metrics,omitempty"`
	// Bless clears the window of the current generation: its last calls no longer count towards its failure rate.
	Bless        bool `json:"bless,omitempty"`
	ResetRepairs bool `json:"reset_repairs,omitempty"`
	// Confirm is the digest of the registered wording for which a person confirms the program that is current after the
	// change.
	Confirm WordingDigest `json:"confirm,omitempty"`
	// Current makes this kept generation the current one (rollback, contract match).
	Current       string    `json:"current,omitempty"`
	ForgetSession string    `json:"forget_session,omitempty"` // drops the fixtures and evidence of that session
	Revert        *Revert   `json:"revert,omitempty"`         // undo an operation
	Manifest      *Manifest `json:"manifest,omitempty"`       // the new manifest; Apply sets its revision

	// Restore brings a generation back from the archive as an older one: see RestoreBelow.
	Restore *Generation `json:"restore,omitempty"`
	// Unrestore is the audit id of the restore whose generation is removed again.
	Unrestore string `json:"unrestore,omitempty"`
}

// NoGeneration in ArtifactChange.ResultOf means that the answering program is not kept as a generation. Only the totals
// of the artifact count it.
const NoGeneration = "none"

// Apply returns a copy of the artifact with the change made; a nil artifact is created. The receiver and the data it
// points to are not modified. The copy shares code, facts and fixtures, which never change in place.
func (a *Artifact) Apply(c ArtifactChange) *Artifact {
	next := &Artifact{SchemaVersion: SchemaVersion, Role: c.Role, MethodName: c.MethodName, CreatedAt: c.At,
		LifecycleState: StateCandidate, Generations: []*Generation{}}
	if a != nil {
		*next = *a
		next.Generations = slices.Clone(a.Generations)
	}
	next.Revision++
	if c.decides() {
		next.Adoptions = a.AdoptionRevision() + 1
	}
	// The steps below write to a.Generations and to generations obtained from change, never to shared data.
	if c.Revert != nil {
		next.revert(c.Revert)
	}
	if c.Unkept {
		next.UnkeptCalls++
	}
	next.operate(c)
	if c.Restore != nil && a != nil {
		next.restore(c.Restore, a)
	}
	if c.Unrestore != "" {
		next.unrestore(c.Unrestore)
	}
	next.judge(c)
	if c.Reworded != nil {
		next.reword(c.Reworded)
	}
	if c.ResultOf != "" || c.Generation == nil {
		next.count(c) // the predecessor's result goes to the predecessor
	}
	if c.Generation != nil {
		next.adopt(c)
		if c.ResultOf == "" {
			if next.CurrentID != c.Generation.ID {
				c.ResultOf = c.Generation.ID // it does not serve, so its results count only on itself
			}
			next.count(c)
		}
	}
	if c.RepairFailed {
		next.RepairCountSinceRegen++
	}
	if c.Rejected != nil {
		next.reject(c.Rejected)
	}
	if c.State != "" {
		next.move(c.ResultOf, c.State)
	}
	if c.Interface != nil {
		next.describe(c.ResultOf, c.Interface)
	}
	if c.Needless != "" {
		next.ignore(c.ResultOf, c.Needless)
	}
	next.endAbandonedCorrection()
	next.noteReturn(&c)
	// Last, because the steps above may change the current generation.
	next.flatten()
	return next
}

// reject records a forged program that was discarded. The newest five are kept.
func (a *Artifact) reject(r *Rejection) {
	const most = 5
	a.Rejections = append([]Rejection{*r}, a.Rejections...)
	a.Rejections = a.Rejections[:min(most, len(a.Rejections))]
}

// AdoptionRevision returns the revision that an adoption is decided on: 0 if a is nil, otherwise at least 1.
func (a *Artifact) AdoptionRevision() int64 {
	if a == nil {
		return 0
	}
	return max(1, a.Adoptions) // an earlier version did not count them
}

// Conflicts reports whether the change was decided on another revision of its artifact; a is nil if there is no
// artifact.
func (c *ArtifactChange) Conflicts(a *Artifact) bool {
	return c.Decided != nil && *c.Decided != a.AdoptionRevision()
}

// decides reports whether the change is more than a counted result and so invalidates earlier decisions.
func (c *ArtifactChange) decides() bool {
	program := c.Generation != nil || c.Current != "" || c.Revert != nil || c.ForceRegenerate != nil ||
		c.ResetMetrics || c.ResetRepairs || c.Bless
	person := c.Restore != nil || c.Unrestore != "" || c.Quarantine != nil || c.Release || c.Pin != nil ||
		c.Approve != nil || c.Manifest != nil || c.ForgetSession != ""
	truth := c.Examples != nil || c.Example != nil || c.DropExample != "" || c.Verdict != nil || c.DropVerdict != "" ||
		c.Correction != nil
	return program || person || truth
}

// move sets the lifecycle state of a generation; "" means the current one.
func (a *Artifact) move(generation, state string) {
	if g := a.change(generation); g != nil {
		g.State = state
	}
}

// describe sets the interface of a generation that lacks one; "" means the current one.
func (a *Artifact) describe(generation string, f *Interface) {
	if g := a.change(generation); g != nil && g.Interface == nil {
		g.Interface = f
	}
}

// operate applies the operations of people in the change.
func (a *Artifact) operate(c ArtifactChange) {
	if c.Quarantine != nil {
		a.Quarantined, a.QuarantineReason = true, *c.Quarantine
	}
	if c.Release {
		a.Quarantined, a.QuarantineReason = false, ""
	}
	if c.Pin != nil {
		a.Pinned = *c.Pin
	}
	if c.Approve != nil && c.Generation == nil {
		if g := a.change(c.ApproveOf); g != nil {
			g.Approved = *c.Approve
		}
	}
	if c.ForceRegenerate != nil {
		a.ForceRegenerate = *c.ForceRegenerate
	}
	if c.ResetRepairs {
		a.RepairCountSinceRegen = 0
	}
	if c.Current != "" && a.Find(c.Current) != nil {
		// The scorecard belongs to the current generation.
		if a.CurrentID != c.Current {
			a.Scorecard = Scorecard{}
		}
		a.CurrentID = c.Current
		a.ForceRegenerate = ""
	}
	if c.Confirm != "" {
		if g := a.change(""); g != nil {
			g.Confirmed = c.Confirm
		}
	}
	if c.Manifest != nil {
		m := *c.Manifest
		if m.Revision = 1; a.Manifest != nil {
			m.Revision = a.Manifest.Revision + 1
		}
		a.Manifest = &m
	}
	if c.ResetMetrics {
		a.resetMetrics()
	}
	if c.Bless {
		a.bless()
	}
	if c.ForgetSession != "" {
		a.forget(c.ForgetSession)
	}
}

// forget erases the session from the artifact: its evidence, its entry in the scorecard, and its fixtures, including
// those of displaced generations.
func (a *Artifact) forget(session string) {
	a.forgetEvidence(session)
	a.Scorecard.Sessions = slices.DeleteFunc(slices.Clone(a.Scorecard.Sessions),
		func(s string) bool { return s == session })
	for _, g := range a.Generations {
		if slices.ContainsFunc(g.Fixtures, func(f Fixture) bool { return f.SessionID == session }) {
			g2 := a.change(g.ID)
			g2.Fixtures = slices.DeleteFunc(slices.Clone(g.Fixtures),
				func(f Fixture) bool { return f.SessionID == session })
		}
	}
	a.Displaced = slices.Clone(a.Displaced)
	for i, d := range a.Displaced {
		a.Displaced[i].Generations = make([]*Generation, len(d.Generations))
		for k, g := range d.Generations {
			g2 := *g
			g2.Fixtures = slices.DeleteFunc(slices.Clone(g.Fixtures),
				func(f Fixture) bool { return f.SessionID == session })
			a.Displaced[i].Generations[k] = &g2
		}
	}
}

// flatten copies the current generation's fields to the top level, as the seed's data model requires.
func (a *Artifact) flatten() {
	g := a.Current()
	if g == nil {
		return
	}
	a.ContractFingerprint, a.PromptVersion, a.RuntimeVersion, a.Model = g.ContractFingerprint, g.PromptVersion,
		g.RuntimeVersion, g.Model
	a.CodeChecksum, a.Code, a.Dependencies = g.CodeChecksum, g.Code, g.Dependencies
	a.Cacheable, a.CacheabilityReason, a.Approved = g.Cacheable, g.CacheabilityReason, g.Approved
	a.RecentFailureRate, _ = g.FailureRate()
	if g.State != "" { // generations of older files have none: the artifact's own holds
		a.LifecycleState = g.State
	}
}

// Creates reports whether the change can be made before the artifact exists. It can if it brings a program, examples or
// a manifest, which may all exist before the first program.
func (c *ArtifactChange) Creates() bool {
	return c.Generation != nil || c.Manifest != nil || c.Example != nil || c.Examples != nil && len(*c.Examples) > 0
}

// Renews reports whether the change, made by a person, resets the backoff after failures. A proposal does not. A
// manifest does not either: a program that waits for one runs in the next call. A restored or unrestored older program
// changes nothing for the next call.
func (c *ArtifactChange) Renews() bool {
	return c.Manifest == nil && !c.Proposal && c.Restore == nil && c.Unrestore == ""
}

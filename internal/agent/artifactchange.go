package agent

import (
	"slices"
	"time"
)

// ArtifactChange is what one call, or one operator's operation, did to an artifact. Changes are deltas, so that concurrent
// calls add up. Zero fields change nothing.
type ArtifactChange struct {
	Role       string    `json:"role"`
	MethodName string    `json:"method_name"`
	At         time.Time `json:"at"`

	// Generation becomes the newest and current one. Its ID is chosen by the caller; its parent is the current one.
	Generation *Generation `json:"generation,omitempty"`
	// Decided is the artifact's AdoptionRevision that Generation was decided on. Where it is another by now the change is not made. nil: not compared.
	Decided *int64 `json:"decided,omitempty"`

	// Result counts the end of a run of the generation that ResultOf names (the current one when empty, NoGeneration for a program that becomes none).
	Result    Class  `json:"result,omitempty"`
	ResultOf  string `json:"result_of,omitempty"`
	Reason    string `json:"reason,omitempty"` // of a failure
	Owner     string `json:"owner,omitempty"`  // of the call that failed, or that Shapes are of; left out for "local"
	SessionID string `json:"session_id,omitempty"`
	// the owner of an ok call that a client made; "" where the generation knows enough of them
	Caller      string `json:"caller,omitempty"`
	ErrorType   string `json:"error_type,omitempty"`
	Checked     bool   `json:"checked,omitempty"` // the value met a contract check
	CheckPassed bool   `json:"check_passed,omitempty"`
	State       string `json:"state,omitempty"` // the lifecycle state from now on

	RepairFailed bool              `json:"repair_failed,omitempty"` // a repair was tried and did not serve
	Rejected     *Rejection        `json:"rejected,omitempty"`
	Fixture      *Fixture          `json:"fixture,omitempty"`
	Shapes       map[string]string `json:"shapes,omitempty"`
	Outlines     map[string]string `json:"outlines,omitempty"` // beside Shapes

	// Aside adopts Generation without displacing the current one, where there is one: it answered a call under a switch.
	Aside bool `json:"aside,omitempty"`
	// Unkept counts a call that a program answered which becomes no generation, while what is stored was switched off or quarantined.
	Unkept bool `json:"unkept,omitempty"`
	// Drifting says that the result may come of a source that changed; Answered is the hash of an input that was answered
	// ok from a source.
	Drifting bool   `json:"drifting,omitempty"`
	Misnamed bool   `json:"misnamed,omitempty"` // the call failed with arguments that the program does not read
	Unrun    bool   `json:"unrun,omitempty"`    // the call was refused for its arguments, and the program did not run
	Answered string `json:"answered,omitempty"`
	// the shape of arguments which the generation that ResultOf names need not read
	Needless string `json:"needless,omitempty"`

	// Drifted are the sources whose change Generation was written for: effects recorded from them before At bind nobody.
	Drifted []string `json:"drifted,omitempty"`

	// Interface is that of the generation which ResultOf names (the current one when empty), where it has none yet.
	Interface *Interface `json:"interface,omitempty"`

	// Effects are what the run that Result counts did, where its generation was not known to; nil: nothing new. Grow lets the manifest
	// of the method take them in, too.
	Effects *Effects `json:"effects,omitempty"`
	Grow    bool     `json:"grow,omitempty"`

	// What people say of answers, and what follows from it.
	Examples    *[]Example  `json:"examples,omitempty"` // from now on, instead of all there were
	Example     *Example    `json:"example,omitempty"`  // one more; it replaces one for the same input
	DropExample string      `json:"drop_example,omitempty"`
	Verdict     *Verdict    `json:"verdict,omitempty"` // an active wrong one drops the fixtures of its input
	DropVerdict string      `json:"drop_verdict,omitempty"`
	Correction  *Correction `json:"correction,omitempty"`
	Failure     *Failure    `json:"failure,omitempty"`
	// the change is of a proposal alone, and nothing that counts changes
	Proposal bool `json:"proposal,omitempty"`

	// what a person's change brought back; without a generation: nothing any more
	Returned *Returned  `json:"returned,omitempty"`
	Reworded *Rewording `json:"reworded,omitempty"` // what a generation was made, or has been checked, for
	// with Generation: of what people have registered; the newest generation made for it is kept
	Words WordingDigest `json:"words,omitempty"`

	// Operations of people.
	Quarantine *string `json:"quarantine,omitempty"` // reason; "" is a release when Release is set
	Release    bool    `json:"release,omitempty"`
	Pin        *bool   `json:"pin,omitempty"`
	// the generation that ApproveOf names, the current one when empty
	Approve         *bool   `json:"approve,omitempty"`
	ApproveOf       string  `json:"approve_of,omitempty"`
	ForceRegenerate *string `json:"force_regenerate,omitempty"`
	ResetMetrics    bool    `json:"reset_metrics,omitempty"`
	// what the current generation's last calls came to counts no more for whether it fails too often
	Bless        bool `json:"bless,omitempty"`
	ResetRepairs bool `json:"reset_repairs,omitempty"`
	// a person stands by the program that is current then, as people have worded its method
	Confirm WordingDigest `json:"confirm,omitempty"`
	// make this kept generation the current one (rollback, contract match)
	Current       string    `json:"current,omitempty"`
	ForgetSession string    `json:"forget_session,omitempty"` // drop what fixtures keep of that session
	Revert        *Revert   `json:"revert,omitempty"`         // undo an operation
	Manifest      *Manifest `json:"manifest,omitempty"`       // from now on; its revision is counted here

	// comes back from the archive as an older generation: see RestoreBelow
	Restore *Generation `json:"restore,omitempty"`
	// the audit id of the operation whose restored generation goes again
	Unrestore string `json:"unrestore,omitempty"`
}

// NoGeneration in ArtifactChange.ResultOf stands for a program that answered and becomes no generation: the totals of the artifact count it.
const NoGeneration = "none"

// Apply returns the artifact with the change made to a copy; a nil artifact is a new one. The receiver and what it
// points to stay as they are, except for what both share: code, facts and fixtures never change in place.
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
	next.flatten()
	return next
}

// reject remembers a program that was forged and does not serve, with the newest few.
func (a *Artifact) reject(r *Rejection) {
	const most = 5
	a.Rejections = append([]Rejection{*r}, a.Rejections...)
	a.Rejections = a.Rejections[:min(most, len(a.Rejections))]
}

// AdoptionRevision says on which state of the artifact an adoption is decided: 0 when there is none (a is nil), else at least 1.
func (a *Artifact) AdoptionRevision() int64 {
	if a == nil {
		return 0
	}
	return max(1, a.Adoptions) // an earlier version did not count them
}

// Conflicts reports whether the change was decided on another state than this one of its artifact, which is nil where there is none.
func (c *ArtifactChange) Conflicts(a *Artifact) bool {
	return c.Decided != nil && *c.Decided != a.AdoptionRevision()
}

// decides reports whether the change is more than a counted result, so that what was decided before it does not hold any more.
func (c *ArtifactChange) decides() bool {
	program := c.Generation != nil || c.Current != "" || c.Revert != nil || c.ForceRegenerate != nil ||
		c.ResetMetrics || c.ResetRepairs || c.Bless
	person := c.Restore != nil || c.Unrestore != "" || c.Quarantine != nil || c.Release || c.Pin != nil ||
		c.Approve != nil || c.Manifest != nil || c.ForgetSession != ""
	truth := c.Examples != nil || c.Example != nil || c.DropExample != "" || c.Verdict != nil || c.DropVerdict != "" ||
		c.Correction != nil
	return program || person || truth
}

// move puts a generation ("" is the current one) into a lifecycle state.
func (a *Artifact) move(generation, state string) {
	if g := a.change(generation); g != nil {
		g.State = state
	}
}

// describe gives a generation ("" is the current one) the interface that it lacks.
func (a *Artifact) describe(generation string, f *Interface) {
	if g := a.change(generation); g != nil && g.Interface == nil {
		g.Interface = f
	}
}

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

// flatten copies the current generation to the top, as the seed's data model wants it.
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

// Creates reports whether the change can be made where there is no artifact yet: it brings a program, or examples, or a
// manifest, which may stand before the first program.
func (c *ArtifactChange) Creates() bool {
	return c.Generation != nil || c.Manifest != nil || c.Example != nil || c.Examples != nil && len(*c.Examples) > 0
}

// Renews reports whether the change, where a person makes it, resets the delay after failures. Proposals do not, and neither do manifests: a
// program that waits for one runs in the next call; an older program that comes back or goes changes nothing for the next call.
func (c *ArtifactChange) Renews() bool {
	return c.Manifest == nil && !c.Proposal && c.Restore == nil && c.Unrestore == ""
}

package agent

import (
	"encoding/json"
	"slices"
	"time"
)

// Values of Verdict.Verdict.
const (
	VerdictRight = "right"
	VerdictWrong = "wrong"
)

// MaxVerdicts is the number of newest verdicts that an artifact keeps, active and proposed ones counted separately.
const MaxVerdicts = 256

// Verdict is a person's judgement of one call.
type Verdict struct {
	CallID     string    `json:"call_id"`
	SessionID  string    `json:"session_id"`
	Generation string    `json:"generation,omitempty"` // the one that answered
	Verdict    string    `json:"verdict"`              // right or wrong
	State      string    `json:"state"`                // active or proposed, like an example
	Note       string    `json:"note,omitempty"`
	By         string    `json:"by,omitempty"`
	At         time.Time `json:"at"`
	ExampleID  string    `json:"example_id,omitempty"`
	Dropped    int       `json:"dropped_fixtures,omitempty"` // number of fixtures of that input that were dropped

	// The judged input and answer, and the answer expected instead.
	Args              []json.RawMessage `json:"args"`
	Kwargs            json.RawMessage   `json:"kwargs"`
	Got               json.RawMessage   `json:"got,omitempty"`
	GotErrorType      string            `json:"got_error_type,omitempty"`
	Expected          json.RawMessage   `json:"expected,omitempty"` // null counts as given
	ExpectedErrorType string            `json:"expected_error_type,omitempty"`
	// EffectsDigest is the digest of the call's recorded effects; "" if there are none.
	EffectsDigest string `json:"effects_digest,omitempty"`

	// Superseded means that a newer active verdict has the same input and effects. Only the newest counts.
	Superseded bool `json:"superseded,omitempty"`
}

// Same reports whether two verdicts agree in judgement, note, state and expectation.
func (v *Verdict) Same(w *Verdict) bool {
	return v.Verdict == w.Verdict && v.Note == w.Note && v.ExpectedErrorType == w.ExpectedErrorType &&
		v.State == w.State &&
		sameRaw(v.Expected, w.Expected)
}

// Verdict returns the verdict on the call, or nil. a may be nil.
func (a *Artifact) Verdict(callID string) *Verdict {
	if a == nil {
		return nil
	}
	for i := range a.Verdicts {
		if a.Verdicts[i].CallID == callID {
			return &a.Verdicts[i]
		}
	}
	return nil
}

// Doubted reports whether an active verdict judges an answer of the generation wrong.
func (a *Artifact) Doubted(generation string) bool {
	return a != nil && slices.ContainsFunc(a.Verdicts, func(v Verdict) bool {
		return v.Generation == generation && v.Wrong()
	})
}

// Corrections returns the active wrong verdicts that the generation they concern (see Judged) was not checked against
// when it was adopted, newest first. These are the verdicts on its own answers, and those given since it was written.
func (a *Artifact) Corrections() []Verdict {
	if a.Current() == nil {
		return nil
	}
	var out []Verdict
	for i := range a.Verdicts {
		v := &a.Verdicts[i]
		if g := a.Judged(v); v.Wrong() && (v.Generation == g.ID || v.At.After(g.CreatedAt)) {
			out = append(out, *v)
		}
	}
	return out
}

// Wrong reports whether the verdict is active, judges the answer wrong and is not superseded.
func (v *Verdict) Wrong() bool {
	return v.Verdict == VerdictWrong && v.State == ExampleActive && !v.Superseded
}

// CalledWrong reports whether an active verdict judges an answer to that input wrong.
func (a *Artifact) CalledWrong(args []json.RawMessage, kwargs json.RawMessage) bool {
	return a != nil && slices.ContainsFunc(a.Verdicts, func(v Verdict) bool {
		return v.Wrong() &&
			a.SameInput(v.Args, v.Kwargs, args, kwargs)
	})
}

// putVerdict records the verdict as the newest. It replaces an earlier one on the same call.
func (a *Artifact) putVerdict(v Verdict) {
	a.dropVerdict(v.CallID)
	a.Verdicts = append([]Verdict{v}, a.Verdicts...)
	kept := 0
	// Each state has its own limit, so that proposals do not displace active verdicts.
	a.Verdicts = slices.DeleteFunc(a.Verdicts, func(w Verdict) bool {
		if w.State == v.State {
			kept++
		}
		return w.State == v.State && kept > MaxVerdicts
	})
	a.supersede(&v)
}

// supersede updates Superseded of the active verdicts with the input and effects of v: only the newest one counts. It
// writes to a.Verdicts, which must be a copy.
func (a *Artifact) supersede(v *Verdict) {
	newest := true
	for i := range a.Verdicts {
		w := &a.Verdicts[i]
		if w.State == ExampleActive && w.EffectsDigest == v.EffectsDigest &&
			a.SameInput(w.Args, w.Kwargs, v.Args, v.Kwargs) {
			w.Superseded, newest = !newest, false
		}
	}
}

// dropVerdict removes the verdict on the call and the example made from it. It keeps an example that an operator has
// since put in place of a proposed one.
func (a *Artifact) dropVerdict(callID string) {
	old := a.Verdict(callID)
	if old == nil {
		return
	}
	// The lists below are replaced, so keep a copy of the verdict.
	dropped := *old
	a.Verdicts = slices.DeleteFunc(slices.Clone(a.Verdicts), func(v Verdict) bool { return v.CallID == callID })
	a.Examples = slices.DeleteFunc(slices.Clone(a.Examples), func(x Example) bool {
		return x.ID == dropped.ExampleID && x.CallID == callID && x.State == dropped.State
	})
	a.supersede(&dropped)
}

// dropFixtures drops the fixtures of that input. A fixture is evidence of behaviour, not of truth.
func (a *Artifact) dropFixtures(args []json.RawMessage, kwargs json.RawMessage) (dropped int) {
	same := func(f Fixture) bool { return a.SameInput(f.Args, f.Kwargs, args, kwargs) }
	for _, g := range a.Generations {
		if slices.ContainsFunc(g.Fixtures, same) {
			g2 := a.change(g.ID)
			g2.Fixtures = slices.DeleteFunc(slices.Clone(g2.Fixtures), same)
			dropped += len(g.Fixtures) - len(g2.Fixtures)
		}
	}
	return dropped
}

// Values of Correction.State.
const (
	CorrectionNone             = "none"
	CorrectionQueued           = "queued"
	CorrectionRunning          = "running"
	CorrectionAwaitingApproval = "awaiting_approval"
	CorrectionBackingOff       = "backing_off"
	CorrectionAdopted          = "adopted"
	CorrectionFailed           = "failed"
)

// Correction is the progress of correcting a method's program.
type Correction struct {
	State          string     `json:"state"`
	Generation     *string    `json:"generation"` // the correcting generation, once there is one
	ChangedAnswers int        `json:"changed_answers"`
	Attempts       int        `json:"attempts"`
	LastError      *string    `json:"last_error"`
	NextTryAt      *time.Time `json:"next_try_at"`
}

// Pending reports whether the correction still needs a program. c may be nil.
func (c *Correction) Pending() bool {
	return c != nil && (c.State == CorrectionQueued || c.State == CorrectionRunning || c.State == CorrectionBackingOff)
}

// ChangedAnswer is a fixture that a correction, or a regeneration requested by a person, answers differently.
type ChangedAnswer struct {
	CallID    string            `json:"call_id"`
	SessionID string            `json:"session_id"`
	Args      []json.RawMessage `json:"args"`
	Kwargs    json.RawMessage   `json:"kwargs"`
	Was       json.RawMessage   `json:"was"`
	Now       json.RawMessage   `json:"now"` // null if the call failed
	ErrorType string            `json:"error_type,omitempty"`
}

// judge applies the change's examples, verdicts, correction and failure.
func (a *Artifact) judge(c ArtifactChange) {
	was := a.Examples
	if c.Examples != nil {
		a.Examples = slices.Clone(*c.Examples)
	}
	if c.DropExample != "" {
		a.Examples = slices.DeleteFunc(slices.Clone(a.Examples), func(x Example) bool { return x.ID == c.DropExample })
	}
	if c.DropVerdict != "" {
		a.dropVerdict(c.DropVerdict)
	}
	if v := c.Verdict; v != nil {
		a.putVerdict(*v)
		if v.Wrong() {
			a.dropFixtures(v.Args, v.Kwargs)
		}
	}
	if c.Example != nil {
		a.putExample(*c.Example) // after the verdict, which drops the example of the verdict that it replaces
	}
	if c.Examples != nil || c.Example != nil {
		a.followExamples(was)
	}
	if c.Correction != nil {
		a.Correction = c.Correction
	}
	if c.Failure != nil {
		a.noteFailure(*c.Failure)
	}
}

// endAbandonedCorrection ends a correction that is no longer needed: its verdict was withdrawn or replaced, or a person
// installed another program in place of the judged one.
func (a *Artifact) endAbandonedCorrection() {
	if a.Correction.Pending() && a.ForceRegenerate == "" && len(a.Corrections()) == 0 {
		a.Correction = &Correction{State: CorrectionNone}
	}
}

// UnexplainedWrongs returns the active wrong verdicts that state no expectation and whose input no active example
// covers.
func (a *Artifact) UnexplainedWrongs() []Verdict {
	if a == nil {
		return nil
	}
	var out []Verdict
	for _, v := range a.Verdicts {
		covered := slices.ContainsFunc(a.Examples, func(x Example) bool {
			return x.State == ExampleActive && a.SameInput(x.Args, x.Kwargs, v.Args, v.Kwargs)
		})
		if v.Wrong() && v.Expected == nil && v.ExpectedErrorType == "" && (v.Got != nil || v.GotErrorType != "") &&
			!covered {
			out = append(out, v)
		}
	}
	return out
}

// FixturesOf returns the number of fixtures of that input. a may be nil.
func (a *Artifact) FixturesOf(args []json.RawMessage, kwargs json.RawMessage) (n int) {
	if a == nil {
		return 0
	}
	for _, g := range a.Generations {
		for _, f := range g.Fixtures {
			if a.SameInput(f.Args, f.Kwargs, args, kwargs) {
				n++
			}
		}
	}
	return n
}

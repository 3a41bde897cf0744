package agent

import (
	"encoding/json"
	"slices"
	"time"
)

// What a person says of a call.
const (
	VerdictRight = "right"
	VerdictWrong = "wrong"
)

// MaxVerdicts is how many verdicts in force an artifact keeps, the newest, and how many proposed ones beside them.
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
	Dropped    int       `json:"dropped_fixtures,omitempty"` // fixtures of that input that were dropped

	// What was judged: the call's input and its answer, and what was expected instead.
	Args              []json.RawMessage `json:"args"`
	Kwargs            json.RawMessage   `json:"kwargs"`
	Got               json.RawMessage   `json:"got,omitempty"`
	GotErrorType      string            `json:"got_error_type,omitempty"`
	Expected          json.RawMessage   `json:"expected,omitempty"` // null counts as given
	ExpectedErrorType string            `json:"expected_error_type,omitempty"`
	EffectsDigest     string            `json:"effects_digest,omitempty"` // of the call's recorded effects; "" for none

	// Superseded says that a newer active verdict has the same input and effects. Only the newest counts.
	Superseded bool `json:"superseded,omitempty"`
}

// Same reports whether two verdicts say the same.
func (v *Verdict) Same(w *Verdict) bool {
	return v.Verdict == w.Verdict && v.Note == w.Note && v.ExpectedErrorType == w.ExpectedErrorType &&
		v.State == w.State &&
		sameRaw(v.Expected, w.Expected)
}

// Verdict returns the verdict on the call, nil when there is none.
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

// Doubted reports whether an active verdict calls an answer of the generation wrong.
func (a *Artifact) Doubted(generation string) bool {
	return a != nil && slices.ContainsFunc(a.Verdicts, func(v Verdict) bool {
		return v.Generation == generation && v.Wrong()
	})
}

// Corrections returns the active wrong verdicts that the generation which they are about (Judged) was not held to when it was adopted, newest
// first: those on its own answers, and those given since it was written.
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

// Wrong reports whether the verdict is in force and calls an answer wrong.
func (v *Verdict) Wrong() bool {
	return v.Verdict == VerdictWrong && v.State == ExampleActive && !v.Superseded
}

// CalledWrong reports whether an active verdict calls what was answered to that input wrong.
func (a *Artifact) CalledWrong(args []json.RawMessage, kwargs json.RawMessage) bool {
	return a != nil && slices.ContainsFunc(a.Verdicts, func(v Verdict) bool {
		return v.Wrong() &&
			a.SameInput(v.Args, v.Kwargs, args, kwargs)
	})
}

// putVerdict records the verdict in the place of an earlier one on the same call, newest first.
func (a *Artifact) putVerdict(v Verdict) {
	a.dropVerdict(v.CallID)
	a.Verdicts = append([]Verdict{v}, a.Verdicts...)
	kept := 0
	a.Verdicts = slices.DeleteFunc(a.Verdicts, func(w Verdict) bool { // proposals displace nothing that counts
		if w.State == v.State {
			kept++
		}
		return w.State == v.State && kept > MaxVerdicts
	})
	a.supersede(&v)
}

// supersede marks all verdicts on the same input and effects as v superseded, except for the newest active one. The list of verdicts is a
// copy.
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

// dropVerdict takes the verdict on the call away, with the example that it made. An example that somebody who may operate put in the place of the one that
// a proposal had made is theirs, and stays.
func (a *Artifact) dropVerdict(callID string) {
	old := a.Verdict(callID)
	if old == nil {
		return
	}
	dropped := *old
	a.Verdicts = slices.DeleteFunc(slices.Clone(a.Verdicts), func(v Verdict) bool { return v.CallID == callID })
	a.Examples = slices.DeleteFunc(slices.Clone(a.Examples), func(x Example) bool {
		return x.ID == dropped.ExampleID && x.CallID == callID && x.State == dropped.State
	})
	a.supersede(&dropped)
}

// dropFixtures drops what the generations answered for that input: a fixture is evidence of behaviour, not of truth.
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

// States of a correction.
const (
	CorrectionNone             = "none"
	CorrectionQueued           = "queued"
	CorrectionRunning          = "running"
	CorrectionAwaitingApproval = "awaiting_approval"
	CorrectionBackingOff       = "backing_off"
	CorrectionAdopted          = "adopted"
	CorrectionFailed           = "failed"
)

// Correction is how far the correction of a method's program has come.
type Correction struct {
	State          string     `json:"state"`
	Generation     *string    `json:"generation"` // that corrects, once there is one
	ChangedAnswers int        `json:"changed_answers"`
	Attempts       int        `json:"attempts"`
	LastError      *string    `json:"last_error"`
	NextTryAt      *time.Time `json:"next_try_at"`
}

// Pending reports whether the correction still wants a program.
func (c *Correction) Pending() bool {
	return c != nil && (c.State == CorrectionQueued || c.State == CorrectionRunning || c.State == CorrectionBackingOff)
}

// ChangedAnswer is a fixture that a correction, or a regeneration that a person asked for, answers differently.
type ChangedAnswer struct {
	CallID    string            `json:"call_id"`
	SessionID string            `json:"session_id"`
	Args      []json.RawMessage `json:"args"`
	Kwargs    json.RawMessage   `json:"kwargs"`
	Was       json.RawMessage   `json:"was"`
	Now       json.RawMessage   `json:"now"` // null with an error
	ErrorType string            `json:"error_type,omitempty"`
}

// judge applies what people say of answers.
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
		a.putExample(*c.Example) // behind the verdict, which drops the example of the one that it replaces
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

// endAbandonedCorrection ends a correction that nothing asks for any more: its verdict was taken back or replaced, or a person
// put another program in the place of the one that was judged.
func (a *Artifact) endAbandonedCorrection() {
	if a.Correction.Pending() && a.ForceRegenerate == "" && len(a.Corrections()) == 0 {
		a.Correction = &Correction{State: CorrectionNone}
	}
}

// UnexplainedWrongs returns the active wrong verdicts without an expectation whose input no example covers.
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

// FixturesOf counts the fixtures of that input.
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

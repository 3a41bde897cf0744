package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Judgement is a person's verdict on a call.
type Judgement struct {
	Verdict           string          // right or wrong
	Expected          json.RawMessage // nil means not given; null is a value
	ExpectedErrorType string
	Note              string
	Actor             string
	// the verdict takes effect at once; otherwise it is a proposal for someone with the scope operate
	MayOperate bool
}

// JudgedCall is a verdict and its effects, as in the REST interface.
type JudgedCall struct {
	CallID          string           `json:"call_id"`
	Role            string           `json:"role"`
	Method          string           `json:"method"`
	Generation      *string          `json:"generation"`
	Verdict         string           `json:"verdict"`
	State           string           `json:"state"` // active, or proposed by a person without the scope operate
	Expected        json.RawMessage  `json:"expected,omitempty"`
	ExpectedType    string           `json:"expected_error_type,omitempty"`
	Note            string           `json:"note"`
	ExampleID       *string          `json:"example_id"`
	ExampleState    *string          `json:"example_state"`
	DroppedFixtures int              `json:"dropped_fixtures"`
	Correction      agent.Correction `json:"correction"`
}

// maxNote bounds a note, in bytes.
const maxNote = 4 << 10

// Judge records a person's verdict on a call. An active wrong verdict drops the fixtures of its input, adds an example
// if it has an expectation, and starts a correction according to the policy. Repeating a verdict changes nothing;
// another verdict replaces it. tried is closed when the first attempt at a correction has ended; it is nil if none is
// running.
//
// Errors are store.ErrNotFound for an unknown call, store.ErrGone if its arguments are not kept any more, ErrInForce if
// a proposal would replace a verdict in force, and *agent.InputError with the code no_program, masked_input or
// invalid_verdict.
func (o *Operator) Judge(ctx context.Context, callID string,
	j Judgement) (v JudgedCall, tried <-chan struct{}, err error) {
	if err := j.validate(); err != nil {
		return JudgedCall{}, nil, err
	}
	j.Note = o.mask(j.Note)
	call, err := o.judged(ctx, callID, j.Verdict)
	if err != nil {
		return JudgedCall{}, nil, err
	}
	verdict, x := o.verdictOf(&call, j)
	if verdict.Verdict == agent.VerdictWrong && x != nil && proof.Meets(*call.Outcome, x) {
		return JudgedCall{}, nil, &agent.InputError{Code: "invalid_verdict", Pointer: "/expected",
			Detail: "that is what the program answered", Hint: `say {"verdict": "right"}`}
	}
	unlock := o.calls.HoldAdoption(call.Log.Role, call.Log.Method)
	defer unlock()
	var same bool
	entry := o.audit(j.Actor, opVerdict, call.Log.Role+"."+call.Log.Method, j.Note)
	// the entry is erased with the session
	entry.SessionID = call.Log.SessionID
	entry.Undo = "DELETE /v1/calls/" + callID + "/verdict"
	a, err := o.changeShown(ctx, store.Target{Role: call.Log.Role, Method: call.Log.Method}, &entry, verdictOn(callID),
		func(a *agent.Artifact) (agent.ArtifactChange, error) {
			if err := replaceable(a.Verdict(callID), verdict, j.MayOperate); err != nil {
				same = errors.Is(err, errUnchanged)
				return agent.ArtifactChange{}, err
			}
			if a == nil && x == nil {
				return agent.ArtifactChange{}, &agent.InputError{Code: "no_program",
					Detail: "no program of this method is kept", Hint: "set expected: it is kept as an example"}
			}
			if x != nil {
				if err := fits(a, *x); err != nil {
					return agent.ArtifactChange{}, err
				}
			}
			change := agent.ArtifactChange{Verdict: &verdict, Example: x,
				Proposal: verdict.State == agent.ExampleProposed}
			if verdict.Wrong() {
				verdict.Dropped = a.FixturesOf(verdict.Args, verdict.Kwargs)
			}
			if o.corrects(a, &verdict) {
				change.Correction = &agent.Correction{State: agent.CorrectionQueued}
			}
			return change, nil
		})
	if same {
		a, err = o.store.Artifact(ctx, call.Log.Role, call.Log.Method)
	}
	if err != nil {
		return JudgedCall{}, nil, err
	}
	kept := a.Verdict(callID)
	if kept == nil { // dropped, or erased with its session, since the comparison
		return JudgedCall{}, nil, store.ErrNotFound
	}
	if same {
		tried = o.calls.Corrections.Correcting(ctx, a) // a client that repeats a request may wait, too
	} else {
		o.o.Metrics.Verdict(j.Verdict)
		tried = o.correct(a, j.Actor)
	}
	return judgedCall(a, kept), tried, nil
}

// replaceable returns nil if the verdict may replace old, which may be nil. errUnchanged means that both are equal,
// ErrInForce that a proposal would replace a verdict in force.
func replaceable(old *agent.Verdict, v agent.Verdict, mayOperate bool) error {
	if old == nil {
		return nil
	}
	counts := old.State == agent.ExampleActive && !mayOperate
	if counts {
		v.State = old.State // an equal proposal changes nothing
	}
	switch {
	case old.Same(&v):
		return errUnchanged
	case counts:
		return ErrInForce
	}
	return nil
}

// fits returns an error if the example of a verdict exceeds the limits of the method's examples. Active and proposed
// ones are limited separately.
func fits(a *agent.Artifact, x agent.Example) error {
	list := []agent.Example{x}
	if a != nil {
		list = slices.DeleteFunc(slices.Clone(a.Apply(agent.ArtifactChange{Example: &x}).Examples),
			func(other agent.Example) bool { return other.State != x.State })
	}
	err := agent.CheckExamples(list, a.Takes())
	var bad *agent.InputError
	if errors.As(err, &bad) {
		bad.Pointer, bad.Hint = "/expected", "drop examples that are not needed: PUT .../examples"
	}
	return err
}

// errUnchanged ends a change without a commit.
var errUnchanged = errors.New("nothing changes")

// ErrInForce means that a verdict is in force, so that changing it needs the scope operate.
var ErrInForce = errors.New("the verdict on the call is in force: changing it needs the scope operate")

// validate returns an *agent.InputError for a verdict that contradicts itself or exceeds a limit.
func (j *Judgement) validate() error {
	refuse := func(pointer, detail string) error {
		return &agent.InputError{Code: "invalid_verdict", Pointer: pointer, Detail: detail,
			Hint: `{"verdict": "wrong", "expected": 700, "note": "70 percent, not 60"}`}
	}
	switch {
	case j.Verdict != agent.VerdictRight && j.Verdict != agent.VerdictWrong:
		return refuse("/verdict", "must be right or wrong")
	case j.Verdict == agent.VerdictRight && (j.Expected != nil || j.ExpectedErrorType != ""):
		return refuse("/expected", "needs the verdict wrong: a right answer is its own expectation")
	case j.Expected != nil && j.ExpectedErrorType != "":
		return refuse("/expected_error_type", "cannot be used together with expected")
	case j.ExpectedErrorType != "" && !agent.IsErrorType(j.ExpectedErrorType):
		return refuse("/expected_error_type",
			"must be a lower-case word, such as invalid_input: programs have no errors of other types")
	case len(j.Note) > maxNote:
		return refuse("/note", fmt.Sprintf("has %d bytes, at most %d are kept", len(j.Note), maxNote))
	}
	return nil
}

// judged returns the call, or an error if it cannot be judged.
func (o *Operator) judged(ctx context.Context, callID, verdict string) (store.Call, error) {
	call, err := o.store.Call(ctx, callID)
	if err != nil {
		return call, err
	}
	e := &call.Log
	switch {
	case e.ProgramSource == agent.SourceNone || e.ProgramSource == "":
		return call, &agent.InputError{Code: "no_program", Detail: "no program answered this call",
			Hint: "judge a call that a program answered"}
	case e.ReplayableReason == agent.ReasonMasked:
		return call, &agent.InputError{Code: "masked_input",
			Detail: "the call had secrets among its arguments, which are not kept",
			Hint:   "add an example with arguments of your own"}
	case call.Outcome == nil, e.Args == nil:
		return call, store.ErrGone
	case verdict == agent.VerdictRight && e.GaveUp():
		return call, &agent.InputError{Code: "invalid_verdict", Pointer: "/verdict",
			Detail: "no program answered: the daemon gave up after programs had failed, at last with " +
				e.OutcomeErrorType,
			Hint: "judge it wrong, with the right answer as expected: that becomes an example"}
	case verdict == agent.VerdictRight && !e.MayBeRight():
		return call, &agent.InputError{Code: "invalid_verdict", Pointer: "/verdict",
			Detail: "the program did not answer: it failed with " + e.OutcomeErrorType,
			Hint:   "only a value, or an error that the program returned, can be right"}
	}
	return call, nil
}

// verdictOf returns the verdict on the call, and the example that follows from it or nil.
func (o *Operator) verdictOf(call *store.Call, j Judgement) (agent.Verdict, *agent.Example) {
	e := &call.Log
	v := agent.Verdict{CallID: e.CallID, SessionID: e.SessionID, Generation: e.Generation, Verdict: j.Verdict,
		State: agent.ExampleActive, Note: j.Note, By: j.Actor,
		At: o.o.Now().UTC(), Args: e.Args, Kwargs: e.Kwargs, GotErrorType: e.OutcomeErrorType, Expected: j.Expected,
		ExpectedErrorType: j.ExpectedErrorType}
	if !j.MayOperate {
		v.State = agent.ExampleProposed
	}
	if call.Outcome != nil {
		v.Got = call.Outcome.Value
	}
	if len(call.Effects) > 0 {
		v.EffectsDigest = agent.Checksum(string(call.Effects))
	}
	x := agent.Example{ID: ids.New("ex"), Args: e.Args, Kwargs: e.Kwargs, Note: j.Note, State: v.State, By: j.Actor,
		CreatedAt: v.At,
		CallID:    e.CallID, SessionID: e.SessionID, Effects: call.Effects, TakenAt: v.At}
	if at, err := time.Parse(time.RFC3339, e.Timestamp); err == nil {
		x.TakenAt = at
	}
	if len(x.Effects) > agent.MaxExamplesBytes/4 {
		x.Effects = nil // too large to keep, so the example runs live
	}
	switch {
	case j.Verdict == agent.VerdictRight && e.OutcomeStatus == agent.StatusOK:
		x.Expect.Value = v.Got
	case j.Verdict == agent.VerdictRight:
		x.Expect.ErrorType = e.OutcomeErrorType
	case j.Expected != nil:
		x.Expect.Value = j.Expected
	case j.ExpectedErrorType != "":
		x.Expect.ErrorType = j.ExpectedErrorType
	default:
		return v, nil
	}
	v.ExampleID = x.ID
	return v, &x
}

// corrects reports whether the verdict asks for another program. That includes a verdict on an earlier program, since
// the current one may give the same wrong answer.
func (o *Operator) corrects(a *agent.Artifact, v *agent.Verdict) bool {
	return a != nil && v.Wrong() && a.Current() != nil && o.calls.Policy().Correction != agent.CorrectManual
}

// judgedCall converts a verdict for readers.
func judgedCall(a *agent.Artifact, v *agent.Verdict) JudgedCall {
	out := JudgedCall{CallID: v.CallID, Role: a.Role, Method: a.MethodName, Verdict: v.Verdict, State: v.State,
		Expected: v.Expected, ExpectedType: v.ExpectedErrorType, Note: v.Note,
		DroppedFixtures: v.Dropped, Correction: agent.Correction{State: agent.CorrectionNone}}
	if v.Generation != "" {
		out.Generation = &v.Generation
	}
	if x := a.Example(v.ExampleID); x != nil {
		out.ExampleID, out.ExampleState = &x.ID, &x.State
	}
	if a.Correction != nil {
		out.Correction = *a.Correction
	}
	return out
}

// Verdict returns the verdict on the call, or store.ErrNotFound.
func (o *Operator) Verdict(ctx context.Context, callID string) (JudgedCall, error) {
	a, v, err := o.findVerdict(ctx, callID)
	if err != nil {
		return JudgedCall{}, err
	}
	return judgedCall(a, v), nil
}

// findVerdict returns the verdict on the call and its artifact, or store.ErrNotFound.
func (o *Operator) findVerdict(ctx context.Context, callID string) (*agent.Artifact, *agent.Verdict, error) {
	call, err := o.store.Call(ctx, callID)
	if err != nil {
		return nil, nil, err
	}
	a, err := o.store.Artifact(ctx, call.Log.Role, call.Log.Method)
	if err != nil {
		return nil, nil, err
	}
	if v := a.Verdict(callID); v != nil {
		return a, v, nil
	}
	return nil, nil, store.ErrNotFound
}

// DropVerdict withdraws the verdict on the call, with the example that it made. It returns store.ErrNotFound if there
// is none, and ErrInForce if it is in force and mayOperate is false.
func (o *Operator) DropVerdict(ctx context.Context, callID, actor string, mayOperate bool) error {
	a, v, err := o.findVerdict(ctx, callID)
	if err != nil {
		return err
	}
	unlock := o.calls.HoldAdoption(a.Role, a.MethodName)
	defer unlock()
	entry := o.audit(actor, opVerdictDrop, a.Role+"."+a.MethodName, "")
	entry.SessionID, entry.Undo = v.SessionID, "POST /v1/calls/"+callID+"/verdict"
	_, err = o.changeShown(ctx, store.Target{Role: a.Role, Method: a.MethodName}, &entry, verdictOn(callID),
		func(a *agent.Artifact) (agent.ArtifactChange, error) {
			v := a.Verdict(callID) // read again: it may have been accepted or dropped meanwhile
			switch {
			case v == nil:
				return agent.ArtifactChange{}, store.ErrNotFound
			case v.State == agent.ExampleActive && !mayOperate:
				return agent.ArtifactChange{}, ErrInForce
			}
			return agent.ArtifactChange{DropVerdict: callID, Proposal: v.State == agent.ExampleProposed}, nil
		})
	return err
}

// verdictsOf returns a reader of verdicts, which loads each artifact once. It is for a single reply and one goroutine.
func (o *Operator) verdictsOf() *judgedCalls {
	return &judgedCalls{store: o.store, read: map[methodKey]*agent.Artifact{}}
}

// judgedCalls caches artifacts by method; nil means that there is none.
type judgedCalls struct {
	store store.Namespace
	read  map[methodKey]*agent.Artifact
}

// artifact returns the artifact of the call's method, or nil.
func (j *judgedCalls) artifact(ctx context.Context, e *agent.LogEntry) *agent.Artifact {
	k := methodKey{e.Role, e.Method}
	a, known := j.read[k]
	if !known {
		a, _ = j.store.Artifact(ctx, e.Role, e.Method) // no artifact, no verdicts
		j.read[k] = a
	}
	return a
}

// on returns the verdict in force on the call, or "".
func (j *judgedCalls) on(ctx context.Context, e *agent.LogEntry) string {
	a := j.artifact(ctx, e)
	if a == nil {
		return ""
	}
	if v := a.Verdict(e.CallID); v != nil && v.State == agent.ExampleActive {
		return v.Verdict
	}
	return ""
}

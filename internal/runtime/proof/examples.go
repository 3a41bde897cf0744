package proof

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/classify"
	"github.com/recurgentd/recurgentd/internal/runtime/equal"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Results of an example.
const (
	ExamplePassed = "passed"
	ExampleFailed = "failed"
	// the run proves nothing: a source was down, or the program asked for something that was not recorded
	ExampleSkipped = "skipped"
)

// ExampleResult is a program's answer to an example.
type ExampleResult struct {
	ID         string          `json:"id"`
	Result     string          `json:"result"`
	Got        json.RawMessage `json:"got"`        // null after an error
	ErrorType  string          `json:"error_type"` // "" after a value
	DurationMs float64         `json:"duration_ms"`

	attempt *judge.Judged // nil if it was not run
}

// interrupted reports whether the run ended for a reason of the daemon's, such as a runner that died. The example is
// then skipped, and a proof is neither passed nor failed.
func (r *ExampleResult) interrupted() bool {
	return r.attempt != nil && r.attempt.Class == agent.ClassNone
}

// Conditions holds the conditions of a run on examples.
type Conditions struct {
	adaptive bool // a source has just changed, so recorded fetches prove nothing
	Denied   bool // live fetches are denied: no person has approved the program yet
	guard    *attempt.Guard
}

// RunExample runs the generation on the example and compares the answer with the expected one.
func (c *Against) RunExample(ctx context.Context, g *agent.Generation, x *agent.Example,
	how Conditions) ExampleResult {
	began := c.Env.Now()
	r := ExampleResult{ID: x.ID, Result: ExampleSkipped}
	if Outdated(&c.Selection, x, how.adaptive) {
		return r
	}
	d := Dry{ID: c.ID + "." + x.ID, CallID: x.ID, Args: x.Args, Kwargs: x.Kwargs, Context: x.Context,
		effects: x.Effects, Denied: how.Denied, guard: how.guard}
	if x.CallID != "" {
		d.CallID, d.of = x.CallID, c.OwnerOfSession(ctx, x.SessionID)
	}
	a, ok := c.DryRun(ctx, g, d)
	r.DurationMs = agent.Milliseconds(c.Env.Now().Sub(began))
	if !ok {
		return r
	}
	r.attempt, r.Got, r.ErrorType = a, a.Outcome.Value, a.Outcome.ErrorType
	switch {
	case a.Class == agent.ClassNone, skips(a, x.Effects == nil):
	case Meets(a.Outcome, x):
		r.Result = ExamplePassed
	default:
		r.Result = ExampleFailed
	}
	return r
}

// Outdated reports whether the example rests on recordings of a source that has changed since.
func Outdated(c *call.Selection, x *agent.Example, adaptive bool) bool {
	if x.Effects == nil {
		return false
	}
	sources := sandbox.Journalled(x.Effects).Fetched
	for i := range sources {
		sources[i] = classify.WithoutQuery(sources[i])
	}
	return adaptive && len(sources) > 0 || c.Artifact.DriftedSince(sources, x.Recorded())
}

// skips reports whether a run proves nothing about the program: it asked for effects that were not recorded or, in a
// live run, an external source failed or an effect was denied.
func skips(a *judge.Judged, live bool) bool {
	if diverged(&a.Result) {
		return true
	}
	if a.Outcome.OK() || !live {
		return false
	}
	if a.Denied {
		return true
	}
	for _, f := range a.Result.Effects.Fetches {
		if classify.OutsideFailed(f) || f.ErrorKind == "denied" {
			return true
		}
	}
	return false
}

// Meets reports whether the outcome is what the example expects.
func Meets(o agent.Outcome, x *agent.Example) bool {
	switch e := x.Expect; {
	case e.ErrorType != "":
		return !o.OK() && o.ErrorType == e.ErrorType
	case !o.OK():
		return false
	case e.Schema != nil:
		s, err := contract.CompileStored(e.Schema)
		return err == nil && s.Check(o.Value) == nil
	default:
		return equal.Value(e.Value, o.Value, x.Tolerance)
	}
}

// Examples runs the candidate on every active example, and on every input whose answer a person judged wrong without
// giving the right one. For the latter, the same answer fails again, and so does a failed run. It returns the first
// attempt that breaks, or an interrupted one; nil means that all hold.
func Examples(ctx context.Context, cand *Candidate, c *Against) *judge.Judged {
	how := Conditions{adaptive: c.Adaptive, Denied: c.Policy.ApprovalRequired || cand.Beyond.Load() != nil,
		guard: GuardOfCandidate(&c.Selection, cand)}
	defer func() { cand.WentBeyond(how.guard) }()
	active := c.Artifact.ActiveExamples()
	for i := range active {
		x := &active[i]
		r := c.RunExample(ctx, &cand.Generation, x, how)
		if r.interrupted() {
			return r.attempt
		}
		if r.Result == ExampleFailed {
			return brokenExample(c.Call, r.attempt, x)
		}
	}
	return c.proveWrongs(ctx, cand, how)
}

// proveWrongs runs the candidate on the inputs whose answers people judged wrong without giving the right one.
func (c *Against) proveWrongs(ctx context.Context, cand *Candidate, how Conditions) *judge.Judged {
	for i, v := range c.Artifact.UnexplainedWrongs() {
		x := agent.Example{ID: "w" + strconv.Itoa(i+1), CallID: v.CallID, SessionID: v.SessionID, Args: v.Args,
			Kwargs: v.Kwargs, Expect: agent.Expectation{Value: v.Got}}
		if v.Got == nil {
			x.Expect.ErrorType = v.GotErrorType
		}
		r := c.RunExample(ctx, &cand.Generation, &x, how)
		if r.interrupted() {
			return r.attempt
		}
		if r.Result == ExamplePassed || r.Result == ExampleFailed && r.attempt.Result.Failure != nil {
			return wrongAgain(&c.Selection, r.attempt, &v)
		}
	}
	return nil
}

// wrongAgain marks the attempt as one that gives an answer which a person judged wrong.
func wrongAgain(c *call.Selection, a *judge.Judged, v *agent.Verdict) *judge.Judged {
	got := answerOf(a)
	breaksExample(c.Call, a)
	a.Hint = c.Quote(a.Of, fmt.Sprintf(
		"for args %s kwargs %s it answers %s, which does not serve: a person called %s wrong. %s",
		c.Clip(string(jsonenc.Array(v.Args))), c.Clip(string(v.Kwargs)), c.Clip(got),
		c.Clip(AnswerText(v.Got, v.GotErrorType)), v.Note),
		fmt.Sprintf("for an input of the form %s it gives an answer that a person called wrong",
			c.Outlined(v.Args, v.Kwargs)))
	return a
}

// answerOf returns an attempt's answer as text: the value, or the error.
func answerOf(a *judge.Judged) string {
	if a.Outcome.OK() {
		return string(a.Outcome.Value)
	}
	return a.Outcome.ErrorType + ": " + a.Outcome.ErrorMessage
}

// brokenExample marks the attempt as one that broke the example, with a hint for the model. The program's answer in the
// hint belongs to the caller or, if the run replayed another owner's recording, to that owner.
func brokenExample(c *call.Call, a *judge.Judged, x *agent.Example) *judge.Judged {
	input, want, got, note := fmt.Sprintf("for args %s kwargs %s the answer must be ",
		c.Clip(string(jsonenc.Array(x.Args))),
		c.Clip(string(x.Kwargs))), c.Clip(x.Expect.String()), answerOf(a), ""
	if x.Note != "" {
		note = ". " + x.Note
	}
	breaksExample(c, a)
	a.Example = x.ID
	a.Hint = c.Quote(cmp.Or(a.Of, c.Reader()), input+want+", it is "+c.Clip(got)+note,
		input+want+", it is another"+note)
	return a
}

// breaksExample gives an attempt the outcome of one that does not hold an example.
func breaksExample(c *call.Call, a *judge.Judged) {
	a.Outcome, a.Class, a.Broke = agent.Failed(agent.ErrExecution, "it does not hold an example that a person fixed"),
		agent.ClassIntrinsic, prompt.BrokeExample
}

// ExamplesDigest identifies the examples and verdicts that candidates are held to. An adoption compares digests to
// detect changes since the proof. It returns "" if there are none.
func ExamplesDigest(a *agent.Artifact) string {
	active, wrongs := a.ActiveExamples(), a.UnexplainedWrongs()
	if len(active)+len(wrongs) == 0 {
		return ""
	}
	h := sha256.New()
	for _, x := range active {
		_, _ = h.Write(agent.Encoded(x)) // a hash takes everything
	}
	for _, v := range wrongs {
		_, _ = h.Write([]byte(v.CallID))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// AnswerText returns an answer as text: the value, or the type of the error.
func AnswerText(value json.RawMessage, errorType string) string {
	if errorType != "" {
		return "the error " + errorType
	}
	return string(value)
}

// onlyExamples examines a program for a changed purpose that broke an example. If it answers every example and only
// gives other values than expected, the examples may be what has to change. Then it returns their IDs, for a person to
// decide. Otherwise it returns the attempt that shows the fault.
func (c *Against) onlyExamples(ctx context.Context, cand *Candidate,
	broken *judge.Judged) (ids []string, fault *judge.Judged) {
	how := Conditions{Denied: c.Policy.ApprovalRequired || cand.Beyond.Load() != nil,
		guard: GuardOfCandidate(&c.Selection, cand)}
	defer func() { cand.WentBeyond(how.guard) }()
	active := c.Artifact.ActiveExamples()
	for i := range active {
		r := c.RunExample(ctx, &cand.Generation, &active[i], how)
		if r.interrupted() {
			return nil, r.attempt
		}
		if r.Result != ExampleFailed {
			continue
		}
		if r.attempt.Result.Failure != nil {
			return nil, brokenExample(c.Call, r.attempt, &active[i])
		}
		ids = append(ids, active[i].ID)
	}
	if len(ids) == 0 {
		return nil, broken
	}
	if wrong := c.proveWrongs(ctx, cand, how); wrong != nil {
		return nil, wrong
	}
	return ids, nil
}

// Package judge turns a run into an outcome: it checks the value against the contract, and derives the class of a
// failure from evidence. It does not decide how the call goes on.
package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/classify"
	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A Judged attempt has an outcome and a failure class derived from evidence.
type Judged struct {
	attempt.Attempt
	Stage     string
	Outcome   agent.Outcome
	Class     agent.Class
	Checked   bool                // the value was checked against a contract
	Violation *contract.Violation // set if the value broke the contract
	Shapes    map[string]string   // shapes of the fetched bodies and nested values; set if the outcome is ok
	Outlines  map[string]string   // the shapes in words
	Hint      prompt.Quote        // correction for the model
	Drifting  bool                // the failure may be due to a changed source
	Denied    bool                // in a dry run: a nested call was denied
	Unallowed bool                // it failed because a person's approval was missing
	// the program itself used up its caller's time or would sleep beyond it; no other program is tried in this call
	Overran  bool
	PassedOn bool // the program returned the failure of a nested call for which it is not to blame

	Of string // in a dry run: owner of the input and its sources; "" if they are the call's own

	// Set by a failed proof.
	Broke   string // prompt.BrokeExample or prompt.BrokeFixture
	Fixture string // ID of the call whose answer it changed
	Example string // ID of the example that it does not hold
}

// Served reports whether the attempt answers the call: an ok value, an authored error, an interruption, or an outage
// that another program could not repair. Other attempts are failures to recover from.
func (j *Judged) Served() bool {
	return j.Class != agent.ClassIntrinsic && j.Class != agent.ClassAdaptive
}

// Attempt turns a run into an outcome, checks it against the contract, and classifies a failure by evidence. The
// evidence includes the shapes of what the program received now and at its last ok run.
func Attempt(ctx context.Context, s *call.Selection, a attempt.Attempt) Judged {
	j := Judged{Attempt: a, Stage: attempt.StageExecution}
	res := &a.Result
	e := classify.Evidence{ModelFailed: a.ModelFailed, NoRoom: a.NoRoom, Fetches: res.Effects.Fetches, Nested: a.Nested,
		Shapes: a.Program.Shapes, Outlines: a.Program.Outlines}
	if len(e.Fetches) > 0 {
		e.Words = s.Env.Words.Of(a.Program)
	}
	switch {
	case a.Misfit:
		// as honest an answer as the program's own would be
		j.Outcome, e.Authored = Misfits(&a.Fit, a.Takes, s.Method), true
	case ctx.Err() != nil && res.Value == nil:
		j.Outcome, j.Class = interrupt.Outcome(ctx)
		if j.Outcome.ErrorType == agent.ErrTimeout {
			j.Outcome.Retriable, j.Overran = a.Waited(), a.Overran()
		}
		if j.Overran {
			j.Class = agent.ClassIntrinsic
		}
		return j
	case res.Failure != nil:
		j.Outcome, j.Hint = Failed(res.Failure), s.Mine(res.Failure.Hint)
		if Refusal(res.Failure.Type) {
			j.Stage = attempt.StageValidation
		}
		e.Interrupted, e.WaitingEnded, j.Overran = res.Failure.Ours, res.Failure.Waiting, a.Overran()
		if res.Failure.Sleeps > 0 && !j.Overran {
			j.Class = agent.ClassExtrinsic // the caller allowed too little time
			return j
		}
	case res.Authored != nil && a.Untyped():
		j.Outcome = untypedOutcome(s.Call, a.Takes, res.Authored.Message)
		e.Authored = j.Outcome.Authored
	case res.Authored != nil:
		j.says(res.Authored, &e)
	default:
		if checkValue(ctx, s, &j) != nil {
			j.Outcome, j.Class = interrupt.Outcome(ctx)
			return j
		}
	}
	j.Explain()
	if j.Outcome.OK() {
		j.Class = agent.ClassOK
		j.Shapes, j.Outlines = e.Remembered(s.Reader() == cmp.Or(a.Program.ShapesOwner, agent.LocalOwner))
		return j
	}
	// A missing approval takes precedence over the program's own error, which is probably a consequence of it.
	if missing := a.Missing(); missing != nil && !e.Interrupted {
		j.Unapproved(missing)
		return j
	}
	e.ErrorType = j.Outcome.ErrorType
	e.Answered = len(a.Program.Answered) > 0 && answeredBefore(s.Call, a.Program)
	e.Streak, e.DriftAfter = a.Program.DriftStreak, s.Policy.DriftAfter
	j.Class, j.Drifting = classify.Class(e), classify.Drifting(e)
	j.Outcome.Retriable = j.retriable()
	return j
}

// says records the error that the program returned, and decides whether the program authored it.
func (j *Judged) says(err *sandbox.AuthoredError, e *classify.Evidence) {
	j.Outcome = agent.Failed(err.Type, err.Message)
	// the error is due to the program's own limit, or to its own invalid call
	limit := j.Overasked && err.Type == agent.ErrResourceExhausted || j.Miscalls()
	j.Outcome.Authored = !limit && !j.ModelFailed && !slices.ContainsFunc(e.Fetches, classify.OverLimit)
	e.Authored = !limit
	e.PassedOn = j.Failed[err.Type].Class
	j.PassedOn = e.PassedOn != agent.ClassNone || j.NoRoom
}

// retriable reports whether the failure may pass by itself: the program declared it retriable, its type is transient,
// or an external source failed in a way that needs no person.
func (j *Judged) retriable() bool {
	passed, excused := j.Failed[j.Outcome.ErrorType]
	switch authored := j.Result.Authored; {
	case authored != nil && authored.Retriable:
		return true
	case authored != nil && excused:
		return passed.Retriable
	case j.Class == agent.ClassExtrinsic:
		return attempt.Passes(j.Outcome.ErrorType) && !j.ModelFinal && !j.NoRoom
	}
	return j.Result.Authored == nil && agent.Retriable(j.Outcome.ErrorType)
}

// keepsContract checks a value against the schema, if there is one, in the owner's share of heavy work.
func keepsContract(ctx context.Context, s *call.Selection, j *Judged) (err error) {
	if s.Terms.Schema == nil {
		return nil
	}
	owner, weight := s.Env.Owner(s.Owner), len(j.Result.Value)
	if err := s.Env.Heavy.Enter(ctx, owner, weight); err != nil {
		return err
	}
	defer s.Env.Heavy.Leave(owner, weight)
	j.Violation, err = s.Terms.Schema.CheckCall(ctx, j.Result.Value, s.Args, s.Kwargs)
	j.Checked = err == nil
	return err
}

// checkValue checks a value against the contract, and a null against what the program declares. An error means that the
// call ended meanwhile.
func checkValue(ctx context.Context, s *call.Selection, j *Judged) error {
	j.Outcome = agent.Outcome{Status: agent.StatusOK, Value: j.Result.Value}
	if err := keepsContract(ctx, s, j); err != nil {
		return err
	}
	if j.Violation != nil {
		j.Stage = attempt.StageOutcome
		j.Outcome = agent.Failed(agent.ErrContractViolation, j.Violation.Message)
		j.Outcome.Metadata = j.Violation.Metadata
	}
	if string(j.Result.Value) == "null" {
		judgeNull(s, j)
	}
	return nil
}

// judgeNull judges a null. It is not a valid answer of a program that prints, or that declares to return something
// else.
func judgeNull(s *call.Selection, j *Judged) {
	prints := j.Result.Facts != nil && j.Result.Facts.Prints
	switch {
	case !j.Outcome.OK():
		j.Hint = s.ForAll(voidHint)
		return
	case prints:
		j.Outcome = agent.Failed(agent.ErrTool, "the program returned null and printed what nobody sees")
	case j.Takes.NeverNull():
		j.Outcome = agent.Failed(agent.ErrContractViolation,
			"the program returned null, which the schema that it declares as returns does not allow")
	default:
		return
	}
	j.Stage, j.Hint = attempt.StageOutcome, s.ForAll(voidHint)
	if prints {
		j.Hint = s.ForAll(printHint)
	}
}

// Hints for programs that return nothing.
const (
	voidHint  = `Return a value. Start a list with []string{}: a nil slice is null. Where there is no answer, return recurgent.Fail(type, message).`
	printHint = `Return the value: return value, nil. There is nothing to print to.`
)

// Passed reports whether the value was checked against a contract and kept it.
func (j *Judged) Passed() bool { return j.Checked && j.Violation == nil }

// Refusal reports whether the gate produces errors of this type.
func Refusal(errorType string) bool {
	return errorType == agent.ErrInvalidCode || errorType == agent.ErrToolRegistry ||
		errorType == agent.ErrDependencyPolicy
}

// Failed returns the outcome of a run that ended in a failure instead of a value or an authored error.
func Failed(f *sandbox.Failure) agent.Outcome {
	o := agent.Failed(f.Type, f.Message)
	if f.Detail != "" {
		o.Metadata = map[string]any{"detail": f.Detail}
	}
	return o
}

// Misfits returns the outcome of a call whose arguments do not fit the interface that its program declares.
func Misfits(fit *agent.Fit, takes *agent.Interface, method string) agent.Outcome {
	return agent.Failed(agent.ErrInvalidInput, "the arguments do not fit "+agent.Clip(takes.Signature(method),
		maxSignature)+
		". "+fit.String())
}

// Explain adds to the outcome's metadata what a caller needs in order to call the method correctly: the arguments that
// the program does not read and, if it rejected the arguments, its parameters.
func (j *Judged) Explain() {
	if len(j.Fit.Unknown) > 0 {
		j.Outcome.Metadata = With(j.Outcome.Metadata, "unknown_keywords", j.Fit.Unknown)
	}
	if j.Fit.Surplus > 0 {
		j.Outcome.Metadata = With(j.Outcome.Metadata, "surplus_arguments", j.Fit.Surplus)
	}
	if missing := slices.Concat(j.Fit.Missing, j.Fit.Skipped); j.Misfit && len(missing) > 0 {
		j.Outcome.Metadata = With(j.Outcome.Metadata, "missing_parameters", missing)
	}
	if j.Takes != nil && j.Outcome.ErrorType == agent.ErrInvalidInput && (j.Outcome.Authored || j.Misfit) {
		j.Outcome.Metadata = With(j.Outcome.Metadata, "parameters", shownParameters(j.Takes))
	}
}

// Unapproved turns a failure that is due to a missing approval into a denial: extrinsic, and for a person to resolve.
func (j *Judged) Unapproved(missing *fetch.Approval) {
	was := j.Outcome
	j.Outcome, j.Class, j.Unallowed = agent.Failed(agent.ErrDenied, missing.Message), agent.ClassExtrinsic, true
	j.Outcome.Metadata = map[string]any{"approve": missing.Request, "lacks": missing.Details}
	if was.ErrorType != agent.ErrDenied {
		j.Outcome.Metadata["program_error"] = agent.Clip(was.ErrorType+": "+was.ErrorMessage, 400)
	}
}

// Misnamed reports whether the program rejected the arguments and either does not read some keywords, or did not run
// because it takes fewer arguments.
func (j *Judged) Misnamed() bool {
	beyond := len(j.Fit.Unknown) > 0 || j.Misfit && j.Fit.Beyond()
	return beyond && j.Class == agent.ClassAuthored && j.Outcome.ErrorType == agent.ErrInvalidInput
}

// Unread names what callers send but the program does not read.
func (j *Judged) Unread() string {
	var out []string
	if len(j.Fit.Unknown) > 0 {
		out = append(out, "The callers' keywords "+strings.Join(j.Fit.Unknown, ", ")+" are unknown")
	}
	if j.Misfit && j.Fit.Surplus > 0 {
		out = append(out, fmt.Sprintf("The callers' positional arguments from place %d on are unknown",
			len(j.Takes.Parameters)+1))
	}
	return strings.Join(out, ". ")
}

// With returns a copy of m with the key set. Callers need a copy, because an outcome's metadata may be shared with
// another attempt or call.
func With(m map[string]any, key string, value any) map[string]any {
	out := map[string]any{key: value}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// Bounds of what an outcome lists about parameters and keywords.
const (
	maxShownSchema = 500
	maxSignature   = 400
)

// shownParameters returns the parameters as an outcome lists them, without long schemas.
func shownParameters(f *agent.Interface) []agent.Parameter {
	out := make([]agent.Parameter, len(f.Parameters))
	for i, p := range f.Parameters {
		out[i] = agent.Parameter{Name: p.Name, Type: p.Type, Description: p.Description, Required: p.Required,
			Default: p.Default, Schema: p.Schema, Aliases: p.Aliases, Variadic: p.Variadic}
		if len(p.Schema) > maxShownSchema {
			out[i].Schema = nil
		}
	}
	return out
}

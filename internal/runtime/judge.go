package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/classify"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A judged attempt has an outcome and a failure class derived from evidence.
type judged struct {
	attempt.Attempt
	stage     string
	outcome   agent.Outcome
	class     agent.Class
	checked   bool                // the value was checked against a contract
	violation *contract.Violation // set if the value broke the contract
	shapes    map[string]string   // shapes of the fetched bodies and nested values; set if the outcome is ok
	outlines  map[string]string   // the shapes in words
	hint      prompt.Quote        // correction for the model
	drifting  bool                // the failure may be due to a changed source
	denied    bool                // in a dry run: a nested call was denied
	unallowed bool                // it failed because a person's approval was missing
	// the program itself used up its caller's time, or would sleep beyond it: no other program is tried in this call
	overran  bool
	passedOn bool // the program returned the failure of a nested call for which it is not to blame

	of string // in a dry run: owner of the input and its sources; "" if they are the call's own

	// Set by a failed proof.
	broke   string // prompt.BrokeExample or prompt.BrokeFixture
	fixture string // ID of the call whose answer it changed
	example string // ID of the example that it does not hold
}

// served reports whether the attempt answers the call: an ok value, an authored error, an interruption, or an outage
// that another program could not repair. Other attempts are failures to recover from.
func (j *judged) served() bool {
	return j.class != agent.ClassIntrinsic && j.class != agent.ClassAdaptive
}

// judge turns a run into an outcome, checks it against the contract, and classifies a failure by evidence. The evidence
// includes the shapes of what the program received now and at its last ok run.
func judge(ctx context.Context, s *call.Selection, a attempt.Attempt) judged {
	j := judged{Attempt: a, stage: attempt.StageExecution}
	res := &a.Result
	e := classify.Evidence{ModelFailed: a.ModelFailed, NoRoom: a.NoRoom, Fetches: res.Effects.Fetches, Nested: a.Nested,
		Shapes: a.Program.Shapes, Outlines: a.Program.Outlines}
	if len(e.Fetches) > 0 {
		e.Words = s.Env.Words.Of(a.Program)
	}
	switch {
	case a.Misfit:
		// as honest an answer as the program's own would be
		j.outcome, e.Authored = misfits(&a.Fit, a.Takes, s.Method), true
	case ctx.Err() != nil && res.Value == nil:
		j.outcome, j.class = interrupt.Outcome(ctx)
		if j.outcome.ErrorType == agent.ErrTimeout {
			j.outcome.Retriable, j.overran = a.Waited(), a.Overran()
		}
		if j.overran {
			j.class = agent.ClassIntrinsic
		}
		return j
	case res.Failure != nil:
		j.outcome, j.hint = failed(res.Failure), s.Mine(res.Failure.Hint)
		if refusal(res.Failure.Type) {
			j.stage = attempt.StageValidation
		}
		e.Interrupted, e.WaitingEnded, j.overran = res.Failure.Ours, res.Failure.Waiting, a.Overran()
		if res.Failure.Sleeps > 0 && !j.overran {
			j.class = agent.ClassExtrinsic // the caller allowed too little time
			return j
		}
	case res.Authored != nil && a.Untyped():
		j.outcome = untypedOutcome(s.Call, a.Takes, res.Authored.Message)
		e.Authored = j.outcome.Authored
	case res.Authored != nil:
		j.says(res.Authored, &e)
	default:
		if checkValue(ctx, s, &j) != nil {
			j.outcome, j.class = interrupt.Outcome(ctx)
			return j
		}
	}
	j.explain()
	if j.outcome.OK() {
		j.class = agent.ClassOK
		j.shapes, j.outlines = e.Remembered(s.Reader() == cmp.Or(a.Program.ShapesOwner, agent.LocalOwner))
		return j
	}
	// A missing approval takes precedence over the program's own error, which is probably a consequence of it.
	if missing := a.Missing(); missing != nil && !e.Interrupted {
		j.unapproved(missing)
		return j
	}
	e.ErrorType = j.outcome.ErrorType
	e.Answered = len(a.Program.Answered) > 0 && answeredBefore(s.Call, a.Program)
	e.Streak, e.DriftAfter = a.Program.DriftStreak, s.Policy.DriftAfter
	j.class, j.drifting = classify.Class(e), classify.Drifting(e)
	j.outcome.Retriable = j.retriable()
	return j
}

// says records the error that the program returned, and decides whether the program authored it.
func (j *judged) says(err *sandbox.AuthoredError, e *classify.Evidence) {
	j.outcome = agent.Failed(err.Type, err.Message)
	// the error is due to the program's own limit, or to its own invalid call
	limit := j.Overasked && err.Type == agent.ErrResourceExhausted || j.Miscalls()
	j.outcome.Authored = !limit && !j.ModelFailed && !slices.ContainsFunc(e.Fetches, classify.OverLimit)
	e.Authored = !limit
	e.PassedOn = j.Failed[err.Type].Class
	j.passedOn = e.PassedOn != agent.ClassNone || j.NoRoom
}

// retriable reports whether the failure may pass by itself: the program declared it retriable, its type is transient,
// or an external source failed in a way that needs no person.
func (j *judged) retriable() bool {
	passed, excused := j.Failed[j.outcome.ErrorType]
	switch authored := j.Result.Authored; {
	case authored != nil && authored.Retriable:
		return true
	case authored != nil && excused:
		return passed.Retriable
	case j.class == agent.ClassExtrinsic:
		return attempt.Passes(j.outcome.ErrorType) && !j.ModelFinal && !j.NoRoom
	}
	return j.Result.Authored == nil && agent.Retriable(j.outcome.ErrorType)
}

// inputHash returns a hash that identifies an input.
func inputHash(args []json.RawMessage, kwargs json.RawMessage) string {
	h := sha256.New()
	_, _ = h.Write(agent.Canonical(jsonenc.Array(args))) // a hash takes everything
	_, _ = h.Write(agent.Canonical(kwargs))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// answeredBefore reports whether the generation once answered the call's input ok, by name or by position. Hashes made
// before the interface was known are those of the input as it was sent.
func answeredBefore(c *call.Call, g *agent.Generation) bool {
	return slices.Contains(g.Answered, inputHash(g.Interface.Named(c.Args, c.Kwargs))) ||
		slices.Contains(g.Answered, inputHash(c.Args, c.Kwargs))
}

// answeredInput returns the hash of an input that was answered from a source, or "" if nothing was fetched.
func answeredInput(c *call.Call, j judged) string {
	if len(j.Result.Effects.Fetches) == 0 {
		return ""
	}
	return inputHash(j.Takes.Named(c.Args, c.Kwargs))
}

// keepsContract checks a value against the schema, if there is one, in the owner's share of heavy work.
func keepsContract(ctx context.Context, s *call.Selection, j *judged) (err error) {
	if s.Terms.Schema == nil {
		return nil
	}
	owner, weight := s.Env.Owner(s.Owner), len(j.Result.Value)
	if err := s.Env.Heavy.Enter(ctx, owner, weight); err != nil {
		return err
	}
	defer s.Env.Heavy.Leave(owner, weight)
	j.violation, err = s.Terms.Schema.CheckCall(ctx, j.Result.Value, s.Args, s.Kwargs)
	j.checked = err == nil
	return err
}

// checkValue checks a value against the contract, and a null against what the program declares. An error means that the
// call ended meanwhile.
func checkValue(ctx context.Context, s *call.Selection, j *judged) error {
	j.outcome = agent.Outcome{Status: agent.StatusOK, Value: j.Result.Value}
	if err := keepsContract(ctx, s, j); err != nil {
		return err
	}
	if j.violation != nil {
		j.stage = attempt.StageOutcome
		j.outcome = agent.Failed(agent.ErrContractViolation, j.violation.Message)
		j.outcome.Metadata = j.violation.Metadata
	}
	if string(j.Result.Value) == "null" {
		judgeNull(s, j)
	}
	return nil
}

// judgeNull judges a null. It is not a valid answer of a program that prints, or that declares to return something
// else.
func judgeNull(s *call.Selection, j *judged) {
	prints := j.Result.Facts != nil && j.Result.Facts.Prints
	switch {
	case !j.outcome.OK():
		j.hint = s.ForAll(voidHint)
		return
	case prints:
		j.outcome = agent.Failed(agent.ErrTool, "the program returned null and printed what nobody sees")
	case j.Takes.NeverNull():
		j.outcome = agent.Failed(agent.ErrContractViolation,
			"the program returned null, which the schema that it declares as returns does not allow")
	default:
		return
	}
	j.stage, j.hint = attempt.StageOutcome, s.ForAll(voidHint)
	if prints {
		j.hint = s.ForAll(printHint)
	}
}

// Hints for programs that return nothing.
const (
	voidHint  = `Return a value. Start a list with []string{}: a nil slice is null. Where there is no answer, return recurgent.Fail(type, message).`
	printHint = `Return the value: return value, nil. There is nothing to print to.`
)

// passed reports whether the value was checked against a contract and kept it.
func (j *judged) passed() bool { return j.checked && j.violation == nil }

// refusal reports whether the gate produces errors of this type.
func refusal(errorType string) bool {
	return errorType == agent.ErrInvalidCode || errorType == agent.ErrToolRegistry ||
		errorType == agent.ErrDependencyPolicy
}

// failed returns the outcome of a run that ended in a failure, rather than in a value or an authored error.
func failed(f *sandbox.Failure) agent.Outcome {
	o := agent.Failed(f.Type, f.Message)
	if f.Detail != "" {
		o.Metadata = map[string]any{"detail": f.Detail}
	}
	return o
}

package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/classify"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A judged attempt has an outcome and a failure class derived from evidence.
type judged struct {
	attempted
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
func (s *Selection) judge(ctx context.Context, a attempted) judged {
	j := judged{attempted: a, stage: stageExecution}
	res := &a.result
	e := classify.Evidence{ModelFailed: a.modelFailed, NoRoom: a.noRoom, Fetches: res.Effects.Fetches, Nested: a.nested,
		Shapes: a.program.Shapes, Outlines: a.program.Outlines}
	if len(e.Fetches) > 0 {
		e.Words = s.Env.Words.Of(a.program)
	}
	switch {
	case a.misfit:
		// as honest an answer as the program's own would be
		j.outcome, e.Authored = misfits(&a.fit, a.takes, s.Method), true
	case ctx.Err() != nil && res.Value == nil:
		j.outcome, j.class = interrupt.Outcome(ctx)
		if j.outcome.ErrorType == agent.ErrTimeout {
			j.outcome.Retriable, j.overran = a.waited(), a.overran()
		}
		if j.overran {
			j.class = agent.ClassIntrinsic
		}
		return j
	case res.Failure != nil:
		j.outcome, j.hint = failed(res.Failure), s.Mine(res.Failure.Hint)
		if refusal(res.Failure.Type) {
			j.stage = stageValidation
		}
		e.Interrupted, e.WaitingEnded, j.overran = res.Failure.Ours, res.Failure.Waiting, a.overran()
		if res.Failure.Sleeps > 0 && !j.overran {
			j.class = agent.ClassExtrinsic // the caller allowed too little time
			return j
		}
	case res.Authored != nil && a.untyped():
		j.outcome = untypedOutcome(s.Call, a.takes, res.Authored.Message)
		e.Authored = j.outcome.Authored
	case res.Authored != nil:
		j.says(res.Authored, &e)
	default:
		if s.check(ctx, &j) != nil {
			j.outcome, j.class = interrupt.Outcome(ctx)
			return j
		}
	}
	j.explain()
	if j.outcome.OK() {
		j.class = agent.ClassOK
		j.shapes, j.outlines = e.Remembered(s.Reader() == cmp.Or(a.program.ShapesOwner, agent.LocalOwner))
		return j
	}
	// A missing approval takes precedence over the program's own error, which is probably a consequence of it.
	if missing := a.missing(); missing != nil && !e.Interrupted {
		j.unapproved(missing)
		return j
	}
	e.ErrorType = j.outcome.ErrorType
	e.Answered = len(a.program.Answered) > 0 && answeredBefore(s.Call, a.program)
	e.Streak, e.DriftAfter = a.program.DriftStreak, s.Policy.DriftAfter
	j.class, j.drifting = classify.Class(e), classify.Drifting(e)
	j.outcome.Retriable = j.retriable()
	return j
}

// says records the error that the program returned, and decides whether the program authored it.
func (j *judged) says(err *sandbox.AuthoredError, e *classify.Evidence) {
	j.outcome = agent.Failed(err.Type, err.Message)
	// the error is due to the program's own limit, or to its own invalid call
	limit := j.overasked && err.Type == agent.ErrResourceExhausted || j.miscalls()
	j.outcome.Authored = !limit && !j.modelFailed && !slices.ContainsFunc(e.Fetches, classify.OverLimit)
	e.Authored = !limit
	e.PassedOn = j.failed[err.Type].class
	j.passedOn = e.PassedOn != agent.ClassNone || j.noRoom
}

// retriable reports whether the failure may pass by itself: the program declared it retriable, its type is transient,
// or an external source failed in a way that needs no person.
func (j *judged) retriable() bool {
	passed, excused := j.failed[j.outcome.ErrorType]
	switch authored := j.result.Authored; {
	case authored != nil && authored.Retriable:
		return true
	case authored != nil && excused:
		return passed.retriable
	case j.class == agent.ClassExtrinsic:
		return passes(j.outcome.ErrorType) && !j.modelFinal && !j.noRoom
	}
	return j.result.Authored == nil && agent.Retriable(j.outcome.ErrorType)
}

// miscalls reports whether the program passes on that another program rejected its call. The cause is then not the
// program's own input.
func (a *attempted) miscalls() bool {
	t := a.result.Authored.Type
	return a.miscalled && (t == agent.ErrInvalidInput || t == agent.ErrTool)
}

// waited reports whether an attempt that ran out of the call's time was waiting, except for a nested call whose own
// program used up the time.
func (a *attempted) waited() bool {
	below, called := a.failed[agent.ErrTimeout]
	return (a.result.Failure == nil || a.result.Failure.Waiting) && (!called || below.retriable)
}

// leastTime is the least time that a program must have used itself before a timeout set by its caller counts against
// it. A caller that allows less is too strict.
const leastTime = time.Second

// overran reports whether the program itself used up the time that its caller set, rather than waiting for something,
// or would sleep beyond it.
func (a *attempted) overran() bool {
	f := a.result.Failure
	switch {
	case f == nil || f.Type != agent.ErrTimeout:
		return false
	case f.Sleeps > 0:
		return min(f.Sleeps, a.granted) >= leastTime
	}
	return f.Ours && !f.Waiting && a.result.Timing.Run+a.result.Effects.Slept >= leastTime
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
	if len(j.result.Effects.Fetches) == 0 {
		return ""
	}
	return inputHash(j.takes.Named(c.Args, c.Kwargs))
}

// holds checks a value against the schema, if there is one, in the owner's share of heavy work.
func (s *Selection) holds(ctx context.Context, j *judged) (err error) {
	if s.terms.Schema == nil {
		return nil
	}
	owner, weight := s.Env.Owner(s.Owner), len(j.result.Value)
	if err := s.Env.Heavy.Enter(ctx, owner, weight); err != nil {
		return err
	}
	defer s.Env.Heavy.Leave(owner, weight)
	j.violation, err = s.terms.Schema.CheckCall(ctx, j.result.Value, s.Args, s.Kwargs)
	j.checked = err == nil
	return err
}

// check checks a value against the contract, and a null against what the program declares. An error means that the call
// ended meanwhile.
func (s *Selection) check(ctx context.Context, j *judged) error {
	j.outcome = agent.Outcome{Status: agent.StatusOK, Value: j.result.Value}
	if err := s.holds(ctx, j); err != nil {
		return err
	}
	if j.violation != nil {
		j.stage = stageOutcome
		j.outcome = agent.Failed(agent.ErrContractViolation, j.violation.Message)
		j.outcome.Metadata = j.violation.Metadata
	}
	if string(j.result.Value) == "null" {
		s.void(j)
	}
	return nil
}

// void judges a null. It is not a valid answer of a program that prints, or that declares to return something else.
func (s *Selection) void(j *judged) {
	prints := j.result.Facts != nil && j.result.Facts.Prints
	switch {
	case !j.outcome.OK():
		j.hint = s.ForAll(voidHint)
		return
	case prints:
		j.outcome = agent.Failed(agent.ErrTool, "the program returned null and printed what nobody sees")
	case j.takes.NeverNull():
		j.outcome = agent.Failed(agent.ErrContractViolation,
			"the program returned null, which the schema that it declares as returns does not allow")
	default:
		return
	}
	j.stage, j.hint = stageOutcome, s.ForAll(voidHint)
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

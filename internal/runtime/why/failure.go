package why

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// failures describe the runtime's error types, and what a person can do about each.
var failures = map[string]struct{ what, advice string }{
	agent.ErrProvider: {"The model could not be asked, or gave nothing that could be used.",
		"Check the model with recurgentd doctor, then ask again."},
	agent.ErrInvalidCode: {"What the model wrote was refused before it ran.",
		"Ask again: the model gets another try. If that does not help, a purpose, an example or another model may."},
	agent.ErrGuardrailExhausted: {"What the model wrote was refused before it ran, as often as the policy allows.",
		"Ask again: the model gets another try. If that does not help, a purpose, an example or another model may."},
	agent.ErrDependencyPolicy: {"What the model wrote imports a package that is not allowed.",
		"Ask again: the model gets another try."},
	agent.ErrToolRegistry: {"What the model wrote changes the registry of tools, which programs may not.",
		"Ask again: the model gets another try."},
	agent.ErrExecution:              {"The program ran and failed.", failsAgain},
	agent.ErrTool:                   {"The program ran and failed.", failsAgain},
	agent.ErrRunnerCrash:            {"The process that ran the program crashed.", failsAgain},
	agent.ErrNonSerializable:        {"The program's value cannot be written as JSON.", failsAgain},
	agent.ErrContractViolation:      {"The value breaks the contract, so it was not given out.", breaksAgain},
	agent.ErrOutcomeRepairExhausted: {"None of the values that programs gave keeps the contract, and no more attempts were allowed.", breaksAgain},
	agent.ErrInvalidInput: {"What it was asked with is not what the method takes.",
		"Ask with other arguments; the method's interface says what it takes."},
	agent.ErrTimeout: {"It did not end within its time.",
		"Ask for less at once, or give calls more time (--call-timeout)."},
	agent.ErrCanceled: {"It was canceled before it ended.", "Ask again if the answer is still wanted."},
	agent.ErrBudgetExceeded: {"It needed more than it was allowed to use.",
		"Ask for less at once, or have the cap raised in the policy."},
	agent.ErrResourceExhausted: {"Something that it needed ran out, such as memory or room.",
		"Ask for less at once, or make room as the message says."},
	agent.ErrDenied: {"It needed something that is not allowed.",
		"Have it allowed, if it should be: the effects of the method show what it reached for."},
	agent.ErrUnknownOutcome: {"A request that may change something was sent and got no answer, so whether it was carried out is not known.", "Look at the host whether it was done before you ask again."},
	agent.ErrInvalidHistoryValue: {"The history in the session's context is no longer a list of turns.",
		"Delete it from the context, or begin a new session."},
	agent.ErrInvalidHistoryElement: {"A turn of the history in the session's context cannot be read.",
		"Delete it from the context, or begin a new session."},
	agent.ErrFileNotFound: {"A file that it was given is not kept any more, or belongs to somebody else.",
		"Upload the file again, and ask with its new reference."},
	agent.ErrParseFailed: {"What came could not be read.",
		"Ask again; if it stays so, have a new program written."},
}

const (
	failsAgain  = "Ask again: a program that keeps failing is repaired or written anew. Examples of right answers help with that."
	breaksAgain = "See whether the contract asks for what the method can give, then ask again."
)

// waitsFor reports whether a person must approve something before the call can be answered.
func waitsFor(e *agent.LogEntry, in *Input) bool {
	if e.OutcomeErrorType != agent.ErrDenied {
		return false
	}
	if o := in.Call.Outcome; o != nil && o.Metadata["approve"] != nil {
		return true
	}
	return e.OutcomeErrorMetadata["approve"] != nil || e.Selection.Decision == agent.DecideRefuse
}

// failure describes the error of the call. It returns "" for an unknown error type.
func failure(e *agent.LogEntry) string {
	switch {
	case e.GaveUp():
		return gaveUp(e)
	case e.OutcomePassedOn:
		return "A call below it ended in that error, and its program passed it on."
	case outage(e):
		return "Something outside of its program failed, such as a source, and the program returned that error."
	case e.OutcomeAuthored:
		return "Its program returned that error as its answer."
	case unrun(e):
		return "The arguments do not fit what the method takes, so its program did not run."
	case e.OutcomeErrorType == agent.ErrContractViolation && e.ContractValidationMismatch != "":
		return "The value breaks the contract, so it was not given out: " + quoted(e.ContractValidationMismatch) + "."
	case e.OutcomeErrorType == agent.ErrDenied && (e.Selection.Decision == agent.DecideRefuse ||
		e.ProgramSource == agent.SourceNone && e.Generation != ""):
		return "Its program waits for a person's approval."
	case strings.HasPrefix(e.OutcomeErrorMessage, interrupt.NeverStarted):
		return "It never began: an earlier call of its session was still running."
	}
	return failures[e.OutcomeErrorType].what
}

// gaveUp describes the last failure of a call that the daemon gave up.
func gaveUp(e *agent.LogEntry) string {
	last, _ := e.OutcomeErrorMetadata["raw_error_type"].(string)
	return fmt.Sprintf("The daemon gave up after %s. The last one failed with %s: %s.",
		plural(max(1, e.GenerationAttempt, len(e.AttemptFailures)), "attempt", "attempts"),
		word(cmp.Or(last, e.OutcomeErrorType)), quoted(fmt.Sprint(e.OutcomeErrorMetadata[agent.RawMessageKey])))
}

// outage reports whether the program returned an error because of a failure that it is not to blame for.
func outage(e *agent.LogEntry) bool {
	return e.OutcomeAuthored && e.FailureClass == agent.ClassExtrinsic
}

// advice proposes what to do next. It returns "" for an asker who may not call.
func (x *Explanation) advice(in *Input) string {
	e := &in.Call.Log
	if !in.Asker.Call {
		return ""
	}
	wrong, right := x.offers(`{"verdict":"wrong"}`), x.offers(`{"verdict":"right"}`)
	switch {
	case e.Verdict == agent.VerdictWrong:
		return "A person has judged it wrong; the method shows what came of that."
	case e.Verdict == agent.VerdictRight:
		return "A person has judged it right; its answer is an example for every later program."
	case e.OutcomeStatus == agent.StatusOK && wrong:
		return "If the value is wrong, say so" + x.whatFollows(in)
	case e.OutcomeStatus == agent.StatusOK:
		return ""
	case e.GaveUp() && e.OutcomeErrorType != agent.ErrContractViolation:
		return failures[agent.ErrGuardrailExhausted].advice
	case outage(e):
		return "Ask again once that works again."
	case e.OutcomeAuthored && wrong:
		return "If this is no right answer to the question, say so" + x.whatFollows(in)
	case e.OutcomeAuthored && right:
		return "If this is the right answer to the question, say so, and it becomes an example. Else judge it wrong with what is right."
	case e.OutcomeAuthored:
		return "Ask with other arguments, or see why its program returned that."
	case waitsFor(e, in) && in.Asker.Operate:
		return "Look at what it is for, then approve it; after that ask again."
	case waitsFor(e, in):
		return "Somebody who may operate has to approve it; after that ask again."
	case e.OutcomeErrorType == agent.ErrBudgetExceeded && in.Call.Outcome != nil &&
		in.Call.Outcome.Metadata["resets_at"] != nil:
		return "Wait until the cap begins anew (" + word(fmt.Sprint(in.Call.Outcome.Metadata["resets_at"])) +
			"), or have it raised."
	case unrun(e):
		return "Ask again with the parameters that the method takes; the metadata of the error lists them."
	}
	return failures[e.OutcomeErrorType].advice
}

// whatFollows describes the consequence of judging the answer wrong.
func (x *Explanation) whatFollows(in *Input) string {
	switch {
	case !in.Asker.Operate:
		return ": somebody who may operate then decides about the program."
	case in.PolicyNow.Correction == agent.CorrectManual:
		return ": a correction of the program can then be asked for."
	case in.PolicyNow.Correction == agent.CorrectNextCall:
		return ": the model then corrects the program at the next call."
	}
	return ": the model then corrects the program."
}

// offers reports whether Next contains a request with that body.
func (x *Explanation) offers(body string) bool {
	for i := range x.Next {
		if string(x.Next[i].Body) == body {
			return true
		}
	}
	return false
}

// restates reports whether the reason only repeats the changed switch.
func restates(reason string) bool {
	switch reason {
	case selection.ReasonForced, selection.ReasonReadDisabled, selection.ReasonNotCanary, selection.ReasonDispatch,
		selection.ReasonApprovalRequired:
		return true
	}
	return false
}

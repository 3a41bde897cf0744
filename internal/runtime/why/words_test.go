package why

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// cold is a call without a stored program, which no program answered.
func cold(errorType, message string) *Input {
	in := inputOf(agent.LogEntry{CallID: "call_1", Timestamp: "2026-11-22T10:00:00.000Z", Role: "r", Method: "m",
		Args: []json.RawMessage{json.RawMessage("1")}, SessionID: "sess_1", ContractSource: "none",
		OutcomeStatus: agent.StatusError, OutcomeErrorType: errorType, OutcomeErrorMessage: message,
		ProgramSource: agent.SourceNone, DurationMs: 5, GenerationAttempt: 1,
		Selection: agent.Selection{Decision: agent.DecideForge, Reason: selection.ReasonMissing}})
	in.Call.Outcome = &agent.Outcome{Status: agent.StatusError, ErrorType: errorType}
	return in
}

// ended is a call that a stored program ended with an error.
func ended(errorType, message string) *Input {
	in := answered()
	in.Artifact.Quarantined = false
	e := &in.Call.Log
	e.OutcomeStatus, e.OutcomeErrorType, e.OutcomeErrorMessage = agent.StatusError, errorType, message
	in.Call.Outcome = &agent.Outcome{Status: agent.StatusError, ErrorType: errorType}
	return in
}

// wrote turns the call into one that was answered by a program written for it.
func wrote(in *Input, source, decision, reason string) *Input {
	e := &in.Call.Log
	e.ProgramSource, e.Generation, e.CodeChecksum = source, "gen-2", "sha256:1"
	e.Selection = agent.Selection{Decision: decision, Reason: reason, Generation: "gen-1"}
	e.GenerationAttempt = 1
	e.Usage, e.DurationMs = agent.Usage{ModelRequests: 1, PromptTokens: 20, CompletionTokens: 10}, 812
	in.Artifact.Generations = append([]*agent.Generation{{ID: "gen-2", RuntimeVersion: agent.ABI, Cacheable: true,
		CreatedAt: time.Date(2026, 11, 22, 10, 0, 1, 0, time.UTC)}}, in.Artifact.Generations...)
	in.Artifact.CurrentID = "gen-2"
	return in
}

func with(in *Input, change func(in *Input, e *agent.LogEntry)) *Input {
	change(in, &in.Call.Log)
	return in
}

// The first line is how a call ended, then why, then what can be done. The further lines are compared only in some
// cases.
func TestWords(t *testing.T) {
	t.Parallel()
	const ok, began = "r.m answered with a value. It began at 2026-11-22T10:00:00.000Z.",
		" It began at 2026-11-22T10:00:00.000Z."
	const wrong = "If the value is wrong, say so: the model then corrects the program."
	healthy := "The stored program gen-1 answered because it was healthy and fits the contract of the call."
	type entry = agent.LogEntry
	for name, c := range map[string]struct {
		in   *Input
		want []string
	}{
		"warm": {with(answered(), func(in *Input, e *entry) {
			in.Artifact.Quarantined, in.Artifact.Generations[0].ForgeUsage = false,
				agent.Usage{ModelRequests: 1, PromptTokens: 20, CompletionTokens: 10}
			in.Call.Effects, e.ProgramEngine, e.ProgramTier, e.SandboxLevel, e.DurationMs, e.Kwargs = json.RawMessage(
				`{}`), "ssa", "engine", "full", 0.31, json.RawMessage(`{"by": "x"}`)
		}), []string{ok, healthy + " It ran on the engine ssa.", wrong, `The arguments were 1, {"by":"x"}.`,
			"Its program fetched nothing and called no other method.", "These checks passed: confinement.",
			"It took 0.3 ms and no model request. Writing the program had taken 1 request and 30 tokens.",
			"With another policy it would have gone otherwise: with artifact_read_enabled=false, artifact_read_roles=[\"another-role\"], force_generation=true or m among dispatch_methods the model would have written a new program; " +
				"with approval_required=true no program would have run."}},
		"warm, compiled, doubted, of a purpose of before, asked again": {with(answered(), func(_ *Input, e *entry) {
			e.ProgramTier, e.ProgramEngine, e.ProgramDoubted, e.ProgramStale, e.CorrectedBy, e.Args = "native", "",
				true, "purpose", "call_2", []json.RawMessage{}
		}), []string{ok, healthy +
			" A person had judged an earlier answer of it wrong. A person had changed what the method is for since it was made. It ran compiled.", wrong, "There were no arguments.", "These checks failed: repeated question."}},
		"pinned, for one who may call alone": {with(answered(), func(in *Input, e *entry) {
			e.Selection.Reason, in.Asker = selection.ReasonPinned, Asker{Call: true}
		}), []string{ok, "The stored program gen-1 answered because a person had pinned it.",
			"If the value is wrong, say so: somebody who may operate then decides about the program."}},
		"for one who may read alone": {with(answered(), func(in *Input, _ *entry) { in.Asker = Asker{} }),
			[]string{ok, healthy, "The arguments were 1."}},
		"corrections by hand": {with(answered(), func(in *Input,
			_ *entry) {
			in.PolicyNow.Correction = agent.CorrectManual
		}), []string{ok, healthy, "If the value is wrong, say so: a correction of the program can then be asked for."}},
		"corrections at calls": {with(answered(), func(in *Input,
			_ *entry) {
			in.PolicyNow.Correction = agent.CorrectNextCall
		}), []string{ok, healthy,
			"If the value is wrong, say so: the model then corrects the program at the next call."}},
		"judged wrong": {with(answered(), func(_ *Input, e *entry) { e.Verdict = agent.VerdictWrong }),
			[]string{"r.m answered with a value, which a person judged wrong." + began, healthy,
				"A person has judged it wrong; the method shows what came of that."}},
		"judged right": {with(answered(), func(_ *Input, e *entry) { e.Verdict = agent.VerdictRight }),
			[]string{ok, healthy, "A person has judged it right; its answer is an example for every later program."}},
		"a weak success": {with(answered(), func(_ *Input, e *entry) {
			e.WeakSuccess, e.WeakSuccessReasons = true,
				[]string{"empty_array:/movies"}
		}),
			[]string{"r.m answered with a value that counts as a weak success." + began, healthy, wrong,
				"The arguments were 1.", "These checks failed: achievement."}},
		"forged": {with(wrote(answered(), agent.SourceGenerated, agent.DecideForge, selection.ReasonMissing),
			func(in *Input, e *entry) {
				e.Selection.Generation, in.Artifact.Generations = "", in.Artifact.Generations[:1]
			}), []string{ok, "A program that was written for this call, gen-2, answered. The model was asked for a new program because the method had none.", wrong, "The arguments were 1.", "These checks passed: gate.", "It took 812 ms, 1 model request and 30 tokens."}},
		"forged and not kept": {with(wrote(answered(), agent.SourceGenerated, agent.DecideForge,
			selection.ReasonForced),
			func(_ *Input, e *entry) { e.Generation, e.ProgramUnkept = "", true }),
			[]string{ok, "A program that was written for this call answered. The model was asked for a new program because the policy force_generation was on. It was not kept, since stored programs were switched off or the method was in quarantine."}},
		"repaired when it failed": {with(wrote(answered(), agent.SourceRepaired, agent.DecideRun,
			selection.ReasonHealthy), func(_ *Input, e *entry) {
			e.AttemptFailures = []agent.AttemptFailure{{AttemptID: "call_1.a", Stage: "execution",
				ErrorType: agent.ErrExecution, ErrorMessage: "boom"}}
		}), []string{ok, "A program that was repaired for this call, gen-2, answered. Before it, the stored program gen-1 was chosen because it was healthy and fits the contract of the call.", wrong, "The arguments were 1.",
			"1 attempt failed.", "1 other program of the method is kept.",
			"These checks failed: run. These checks passed: gate."}},
		"repaired because it had failed": {wrote(answered(), agent.SourceRepaired, agent.DecideRepair,
			selection.ReasonDegraded),
			[]string{ok, "A program that was repaired for this call, gen-2, answered. gen-1 was to be repaired because the stored program had failed too often lately."}},
		"regenerated": {wrote(answered(), agent.SourceGenerated, agent.DecideForge, selection.ReasonRequested),
			[]string{ok, "A program that was written for this call, gen-2, answered. A person had asked for a new program."}},
		"corrected": {wrote(answered(), agent.SourceRepaired, agent.DecideForge, selection.ReasonCorrection),
			[]string{ok, "A program that was repaired for this call, gen-2, answered. The model was asked for a new program because a person had judged an answer of the stored program wrong."}},
		"for a changed purpose": {wrote(answered(), agent.SourceGenerated, agent.DecideForge,
			selection.ReasonPurposeChanged),
			[]string{ok, "A program that was written for this call, gen-2, answered. The model was asked for a new program because a person had changed what the method is for since its program was made."}},
		"the stored one in the place of a new one": {with(answered(), func(_ *Input, e *entry) {
			e.Selection.Decision, e.Selection.Reason = agent.DecideForge, selection.ReasonRequested
		}),
			[]string{ok, "A stored program, gen-1, answered. A person had asked for a new program."}},
		"of a contract with fetches and calls": {with(answered(), func(in *Input, e *entry) {
			in.Call.Effects = json.RawMessage(
				`{"asks":[{"op":"fetch","params":{},"result":{}},{"op":"sleep","params":{},"result":{}},{"op":"fetch","params":{},"result":{}},{"op":"call","params":{},"result":{}},{"op":"open","params":{},"result":{}}]}`)
			in.Nested = []entry{{CallID: "call_0", Role: "r", Method: "n", OutcomeStatus: agent.StatusOK}}
			e.ContractSource, e.ContractValidationApplied, e.ContractValidationPassed = "fields", true, true
		}), []string{ok, healthy, wrong, "The arguments were 1.",
			"Its program made 2 requests over the network, waited once, opened 1 file and made 1 call of other methods.", "These checks passed: contract."}},
		"an error of the program": {with(ended(agent.ErrInvalidInput, "nothing can be divided by zero"),
			func(_ *Input, e *entry) { e.OutcomeAuthored = true }),
			[]string{`r.m ended in the error invalid_input. Its program returned that error as its answer. The message was "nothing can be divided by zero".` + began,
				"The stored program gen-1 ran because it was healthy and fits the contract of the call.",
				"If this is no right answer to the question, say so: the model then corrects the program."}},
		"an error of its program, with which the daemon gave up": {with(wrote(ended(agent.ErrInvalidInput,
			"This request couldn't be completed after multiple attempts."), agent.SourceGenerated, agent.DecideForge,
			selection.ReasonMissing), func(_ *Input, e *entry) {
			e.GenerationAttempt, e.OutcomeErrorMetadata = 3, map[string]any{"raw_error_message": "f must be a number"}
		}), []string{`r.m ended in the error invalid_input. The daemon gave up after 3 attempts. The last one failed with invalid_input: "f must be a number". Its caller got the message "This request couldn't be completed after multiple attempts.".` + began,
			"A program that was written for this call, gen-2, ran. The model was asked for a new program because the method had none.",
			"Ask again: the model gets another try. If that does not help, a purpose, an example or another model may."}},
		"an outage": {with(wrote(ended("fetch_failed", "no such host"), agent.SourceGenerated, agent.DecideForge,
			selection.ReasonMissing), func(in *Input, e *entry) {
			e.OutcomeAuthored, e.FailureClass, e.Generation, in.Artifact = true, agent.ClassExtrinsic, "", nil
			e.GenerationAttempt, e.Usage = 0, agent.Usage{}
		}), []string{`r.m ended in the error fetch_failed. Something outside of its program failed, such as a source, and the program returned that error. The message was "no such host".` + began,
			"A program that the model had written for another call returned the error. A new program was needed because the method had none. It was not kept.",
			"Ask again once that works again."}},
		"during the delay after a failed forge": {with(cold(agent.ErrExecution, ""),
			func(_ *Input, e *entry) { e.GenerationAttempt = 0 }),
			[]string{"r.m ended in the error execution. The program ran and failed." + began,
				"No program answered. A new program was needed because the method had none."}},
		"an error that was passed on": {with(ended("no_city", ""),
			func(_ *Input, e *entry) { e.OutcomeAuthored, e.OutcomePassedOn = true, true }),
			[]string{"r.m ended in the error no_city. A call below it ended in that error, and its program passed it on." + began}},
		"arguments that do not fit": {with(ended(agent.ErrInvalidInput, "b is missing"),
			func(_ *Input, e *entry) { e.Replayable, e.ReplayableReason = false, agent.ReasonNoProgram }),
			[]string{`r.m ended in the error invalid_input. The arguments do not fit what the method takes, so its program did not run. The message was "b is missing".` + began,
				"The stored program gen-1 was chosen because it was healthy and fits the contract of the call. It did not run, since the arguments do not fit it.",
				"Ask again with the parameters that the method takes; the metadata of the error lists them."}},
		"no model": {cold(agent.ErrProvider, ""),
			[]string{"r.m ended in the error provider. The model could not be asked, or gave nothing that could be used." + began,
				"No program answered. The model was asked for a new program because the method had none.",
				"Check the model with recurgentd doctor, then ask again."}},
		"no model, of a stored program that failed": {with(ended(agent.ErrProvider, ""), func(_ *Input, e *entry) {}),
			[]string{"r.m ended in the error provider. The model could not be asked, or gave nothing that could be used." + began,
				"The stored program gen-1 ran because it was healthy and fits the contract of the call."}},
		"refused by the gate": {with(cold(agent.ErrGuardrailExhausted, ""), func(_ *Input, e *entry) {
			e.AttemptFailures = []agent.AttemptFailure{{AttemptID: "call_1.a", Stage: "validation"},
				{AttemptID: "call_1.b", Stage: "validation"}}
		}), []string{"r.m ended in the error guardrail_retry_exhausted. What the model wrote was refused before it ran, as often as the policy allows." + began,
			"No program answered. The model was asked for a new program because the method had none.",
			"Ask again: the model gets another try. If that does not help, a purpose, an example or another model may.",
			"The arguments were 1.", "2 attempts failed.", "These checks failed: gate, gate."}},
		"a broken contract": {with(ended(agent.ErrContractViolation, ""),
			func(_ *Input, e *entry) { e.ContractValidationMismatch = "at /a: not a number" }),
			[]string{`r.m ended in the error contract_violation. The value breaks the contract, so it was not given out: "at /a: not a number".` + began,
				"The stored program gen-1 ran because it was healthy and fits the contract of the call.",
				"See whether the contract asks for what the method can give, then ask again."}},
		"what is not allowed": {ended(agent.ErrDenied, ""),
			[]string{"r.m ended in the error denied. It needed something that is not allowed." + began,
				"The stored program gen-1 ran because it was healthy and fits the contract of the call.",
				"Have it allowed, if it should be: the effects of the method show what it reached for."}},
		"what a person may allow": {with(ended(agent.ErrDenied, ""),
			func(in *Input, _ *entry) { in.Call.Outcome.Metadata = map[string]any{"approve": "POST /x"} }),
			[]string{"r.m ended in the error denied. It needed something that is not allowed." + began,
				"The stored program gen-1 ran because it was healthy and fits the contract of the call.",
				"Look at what it is for, then approve it; after that ask again."}},
		"a stored program that waits": {with(ended(agent.ErrDenied, ""), func(in *Input, e *entry) {
			e.ProgramSource, e.Generation, in.Asker = agent.SourceNone, "", Asker{Call: true}
			e.Selection = agent.Selection{Decision: agent.DecideRefuse, Reason: selection.ReasonApprovalRequired,
				Generation: "gen-1"}
		}), []string{"r.m ended in the error denied. Its program waits for a person's approval." + began,
			"No program ran because the current program waited for a person's approval.",
			"Somebody who may operate has to approve it; after that ask again."}},
		"a new program that waits": {with(wrote(ended(agent.ErrDenied, ""), agent.SourceNone, agent.DecideForge,
			selection.ReasonMissing), func(in *Input,
			_ *entry) {
			in.Call.Outcome.Metadata = map[string]any{"approve": "POST /x"}
		}),
			[]string{"r.m ended in the error denied. Its program waits for a person's approval." + began,
				"No program answered: gen-2 was written and waits. The model was asked for a new program because the method had none.",
				"Look at what it is for, then approve it; after that ask again."}},
		"over its time": {ended(agent.ErrTimeout, ""),
			[]string{"r.m ended in the error timeout. It did not end within its time." + began,
				"The stored program gen-1 ran because it was healthy and fits the contract of the call.",
				"Ask for less at once, or give calls more time (--call-timeout)."}},
		"behind another call of its session": {cold(agent.ErrTimeout,
			"the call never started, since calls of one session run in order and an earlier one was still under way"),
			[]string{`r.m ended in the error timeout. It never began: an earlier call of its session was still running. The message was "the call never started, since calls of one session run in order and an earlier one was still under way".` + began}},
		"interrupted": {cold(agent.ErrCanceled, "the daemon is shutting down"),
			[]string{`r.m ended in the error canceled. It was canceled before it ended. The message was "the daemon is shutting down".` + began,
				"No program answered. The model was asked for a new program because the method had none.",
				"Ask again if the answer is still wanted."}},
		"over a cap": {with(cold(agent.ErrBudgetExceeded, ""), func(in *Input, _ *entry) {
			in.Call.Outcome.Metadata = map[string]any{"resets_at": "2026-11-23T00:00:00Z"}
		}),
			[]string{"r.m ended in the error budget_exceeded. It needed more than it was allowed to use." + began,
				"No program answered. The model was asked for a new program because the method had none.",
				"Wait until the cap begins anew (2026-11-23T00:00:00Z), or have it raised."}},
		"a setter": {with(answered(), func(in *Input, e *entry) {
			e.ProgramSource, e.Generation, in.Artifact = agent.SourceNone, "", nil
			e.Selection = agent.Selection{Decision: agent.DecideNone, Reason: selection.ReasonSetter}
		}), []string{ok, "It needed no program: the call changes the context of its session.",
			"The arguments were 1."}},
		"a prediction": {with(answered(), func(in *Input, e *entry) {
			e.ProgramSource, e.Generation, in.Artifact = agent.SourceNone, "", nil
			e.Selection = agent.Selection{Decision: agent.DecideNone, Reason: "predict"}
		}), []string{ok, "It needed no program: a prediction asks the model itself.", "The arguments were 1."}},
		"erased": {with(answered(), func(_ *Input, e *entry) { e.Args, e.Replayable = nil, false }),
			[]string{ok, healthy, "The arguments are not kept any more."}},
		"running": {with(answered(), func(_ *Input, e *entry) {
			e.OutcomeStatus, e.DurationMs = agent.StatusRunning,
				40
		}), []string{"r.m has been running since 2026-11-22T10:00:00.000Z, for 40 ms.",
			"Which program answers, what was checked and what it cost is known when it has ended. Until then it can be canceled.", "The arguments were 1."}},
	} {
		got := strings.Split(Explain(c.in).Summary, "\n")
		if diff := cmp.Diff(c.want, got[:min(len(got), len(c.want))]); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// Each error type that can end a call, and each reason of a selection, has its own words.
func TestWordsForEverything(t *testing.T) {
	t.Parallel()
	// only programs return them
	toolsOwn := map[string]bool{agent.ErrLowUtility: true, agent.ErrWrongToolBoundary: true,
		agent.ErrUnsupportedCapability: true}
	for _, errorType := range agent.ErrorTypes() {
		if f := failures[errorType]; !toolsOwn[errorType] && (!strings.HasSuffix(f.what, ".") ||
			!strings.HasSuffix(f.advice, ".") && !strings.HasSuffix(f.advice, ")")) {
			t.Errorf("%s: %+v", errorType, f)
		}
	}
	for _, reason := range []string{selection.ReasonHealthy, selection.ReasonPinned, selection.ReasonMissing,
		selection.ReasonDispatch, selection.ReasonForced, selection.ReasonReadDisabled, selection.ReasonNotCanary,
		selection.ReasonQuarantined,
		selection.ReasonRequested, selection.ReasonSchema, selection.ReasonRuntime, selection.ReasonChecksum,
		selection.ReasonDependencies, selection.ReasonNotCacheable, selection.ReasonArgsIgnored,
		selection.ReasonContractChanged, selection.ReasonDegraded,
		selection.ReasonApprovalRequired, selection.ReasonNewReach, selection.ReasonUnproven,
		selection.ReasonCorrection,
		selection.ReasonNotPromoted, selection.ReasonSetter, selection.ReasonPurposeChanged,
		selection.ReasonPurposeChecked,
		selection.ReasonBreaksExamples} {
		if reasonWords(reason) == reason {
			t.Errorf("%s has no words", reason)
		}
	}
}

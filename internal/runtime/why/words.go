package why

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// words returns the summary: how the call ended, why, what can be done, and the circumstances, one line each.
func (x *Explanation) words(in *Input) string {
	e := &in.Call.Log
	if running(e) {
		lines := []string{x.end(e),
			"Which program answers, what was checked and what it cost is known when it has ended.", asked(e)}
		if in.Asker.Call {
			lines[1] += " Until then it can be canceled."
		}
		return strings.Join(lines, "\n")
	}
	lines := []string{x.end(e), x.selected(e)}
	if advice := x.advice(in); advice != "" {
		lines = append(lines, advice)
	}
	lines = append(lines, asked(e))
	if n := len(x.Candidates); n > 0 {
		lines = append(lines, plural(n, "attempt", "attempts")+" failed.")
	}
	if n := len(x.Alternatives); n > 0 {
		lines = append(lines, plural(n, "other program of the method is", "other programs of the method are")+" kept.")
	}
	for _, line := range []string{x.reached(in), x.checked(), x.costs(e), x.otherwise()} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	if e.Verdict == "" && e.CorrectedBy != "" {
		lines = append(lines, "The same question was asked again soon after, by "+word(e.CorrectedBy)+
			", so the answer may have been wrong.")
	}
	return strings.Join(lines, "\n")
}

// end describes how the call ended, with the cause of a failure.
func (x *Explanation) end(e *agent.LogEntry) string {
	name := word(e.Method)
	if e.Role != "" { // a prediction outside of sessions has no role
		name = word(e.Role) + "." + name
	}
	switch {
	case running(e):
		return fmt.Sprintf("%s has been running since %s, for %.0f ms.", name, word(e.Timestamp), e.DurationMs)
	case e.OutcomeStatus == agent.StatusOK && e.Verdict == agent.VerdictWrong:
		return fmt.Sprintf("%s answered with a value, which a person judged wrong. It began at %s.", name,
			word(e.Timestamp))
	case e.OutcomeStatus == agent.StatusOK && e.WeakSuccess:
		return fmt.Sprintf("%s answered with a value that counts as a weak success. It began at %s.", name,
			word(e.Timestamp))
	case e.OutcomeStatus == agent.StatusOK:
		return fmt.Sprintf("%s answered with a value. It began at %s.", name, word(e.Timestamp))
	}
	text := fmt.Sprintf("%s ended in the error %s.", name, word(cmp.Or(e.OutcomeErrorType, "unknown")))
	if what := failure(e); what != "" {
		text += " " + what
	}
	if e.OutcomeErrorMessage != "" {
		whose := " The message was "
		if e.GaveUp() {
			whose = " Its caller got the message "
		}
		text += whose + quoted(e.OutcomeErrorMessage) + "."
	}
	return text + " It began at " + word(e.Timestamp) + "."
}

// asked describes the arguments as the log has them, with secrets masked.
func asked(e *agent.LogEntry) string {
	// null is in entries that were stored after their arguments were erased
	if e.Args == nil && (len(e.Kwargs) == 0 || string(e.Kwargs) == "null") {
		return "The arguments are not kept any more."
	}
	var parts []string
	for _, a := range e.Args {
		parts = append(parts, input(a))
	}
	if len(e.Kwargs) > len("{}") {
		parts = append(parts, input(e.Kwargs))
	}
	if len(parts) == 0 {
		return "There were no arguments."
	}
	return "The arguments were " + printable(agent.Clip(strings.Join(parts, ", "), maxQuoted)) + "."
}

// input returns an argument as compact JSON.
func input(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "(unreadable)"
	}
	return string(rawjson.WithoutHTML(b.Bytes()))
}

// things describe each kind of request to the host, for one request and for several.
var things = map[string][2]string{
	"fetch":   {"made 1 request over the network", "made %d requests over the network"},
	"predict": {"asked the model 1 question", "asked the model %d questions"},
	"history": {"read the session's history", "read the session's history %d times"},
	"tools":   {"looked at the known tools", "looked at the known tools %d times"},
	"content": {"read an earlier value again", "read earlier values again %d times"},
	"sleep":   {"waited once", "waited %d times"},
	"file":    {"looked at 1 file", "looked at %d files"}, "open": {"opened 1 file", "opened %d files"},
	"create": {"made 1 file", "made %d files"}, "decode": {"decoded 1 text", "decoded %d texts"},
	"log":      {"made 1 note", "made %d notes"},
	"call":     {"tried a call that was refused", "tried %d calls that were refused"},
	"delegate": {"tried a call that was refused", "tried %d calls that were refused"},
}

// reached describes what the program did outside of itself. It returns "" if nothing ran, or if that is not kept.
func (x *Explanation) reached(in *Input) string {
	if !ran(&in.Call.Log) || in.Call.Effects == nil && len(x.Effects) == 0 && len(x.Delegated) == 0 {
		return ""
	}
	count := map[string]int{}
	var kinds, did []string
	for i := range x.Effects {
		d := &x.Effects[i]
		// counted as Delegated
		if d.Calls() {
			continue
		}
		if count[d.Kind]++; count[d.Kind] == 1 {
			kinds = append(kinds, d.Kind)
		}
	}
	for _, k := range kinds {
		said, known := things[k]
		switch n := count[k]; {
		case !known:
			did = append(did, fmt.Sprintf("asked its host for %s %s", word(k), plural(n, "time", "times")))
		case n == 1:
			did = append(did, said[0])
		default:
			did = append(did, fmt.Sprintf(said[1], n))
		}
	}
	if n := len(x.Delegated); n > 0 {
		did = append(did, "made "+plural(n, "call", "calls")+" of other methods")
	}
	if len(did) == 0 {
		return "Its program fetched nothing and called no other method."
	}
	return "Its program " + listed(did, "and") + "."
}

// checked lists the names of the checks that failed, and of those that passed.
func (x *Explanation) checked() string {
	var bad, good []string
	for _, c := range x.Checks {
		switch c.Result {
		case failed:
			bad = append(bad, c.Name)
		case passed:
			good = append(good, c.Name)
		}
	}
	var said []string
	if len(bad) > 0 {
		said = append(said, "These checks failed: "+strings.Join(bad, ", ")+".")
	}
	if len(good) > 0 {
		said = append(said, "These checks passed: "+strings.Join(good, ", ")+".")
	}
	return strings.Join(said, " ")
}

// costs describes duration and tokens. Those of a root call include its nested calls.
func (x *Explanation) costs(e *agent.LogEntry) string {
	if e.Usage.ModelRequests == 0 {
		text := fmt.Sprintf("It took %.1f ms and no model request.", e.DurationMs)
		if f := x.Cost.Forge; f != nil && f.ModelRequests > 0 {
			text += fmt.Sprintf(" Writing the program had taken %s and %d tokens.",
				plural(f.ModelRequests, "request", "requests"), f.PromptTokens+f.CompletionTokens)
		}
		return text
	}
	if unreported(&e.Usage) {
		return fmt.Sprintf("It took %.0f ms and %s, for which no tokens were reported.", e.DurationMs,
			plural(e.Usage.ModelRequests, "model request", "model requests"))
	}
	text := fmt.Sprintf("It took %.0f ms, %s and %d tokens", e.DurationMs,
		plural(e.Usage.ModelRequests, "model request", "model requests"), e.Usage.PromptTokens+e.Usage.CompletionTokens)
	if e.Depth == 0 && len(x.Delegated) > 0 {
		text += " with those of the calls below it"
	}
	if m := x.Cost.Money; m != nil {
		text += fmt.Sprintf(", which cost at most %.4f %s", m.Amount, word(m.Currency))
	}
	return text + "."
}

// listed joins texts as in a sentence: "a, b and c".
func listed(texts []string, last string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " " + last + " " + texts[len(texts)-1]
}

// plural returns the number with the matching form.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n) + " " + many
}

// reasons are the reasons of a selection in words, to follow "because". The keys are selection.Reason*.
var reasons = map[string]string{
	selection.ReasonHealthy:          "it was healthy and fits the contract of the call",
	selection.ReasonPinned:           "a person had pinned it",
	selection.ReasonMissing:          "the method had none",
	selection.ReasonDispatch:         "the method gets a program of its own for each call (policy dispatch_methods)",
	selection.ReasonForced:           "the policy force_generation was on",
	selection.ReasonReadDisabled:     "the policy artifact_read_enabled was off",
	selection.ReasonNotCanary:        "the policy artifact_read_roles did not name the role",
	selection.ReasonQuarantined:      "a person had put the method into quarantine",
	selection.ReasonRequested:        "a person had asked for a new program",
	selection.ReasonSchema:           "another version of the daemon had stored the program in a way that this one cannot read",
	selection.ReasonRuntime:          "the stored program was made for another version of the daemon",
	selection.ReasonChecksum:         "the text of the stored program had been changed or damaged",
	selection.ReasonDependencies:     "the stored program imports a package that is not allowed",
	selection.ReasonNotCacheable:     "the stored program was made for one call only",
	selection.ReasonArgsIgnored:      "the stored program does not look at its arguments",
	selection.ReasonContractChanged:  "no healthy stored program was made for the contract of the call",
	selection.ReasonDegraded:         "the stored program had failed too often lately",
	selection.ReasonApprovalRequired: "the current program waited for a person's approval",
	selection.ReasonNewReach:         "the current program reaches what no program before it did, and waited for a person's approval",
	selection.ReasonPurposeChanged:   "a person had changed what the method is for since its program was made",
	selection.ReasonPurposeChecked:   "a person had changed what the method is for, and the model said that the program does that",
	selection.ReasonBreaksExamples:   "the current program, which was written for a changed purpose, does not hold examples and waited for a person's approval",
	selection.ReasonUnproven:         "the stored program had never answered with a value",
	selection.ReasonCorrection:       "a person had judged an answer of the stored program wrong",
	selection.ReasonNotPromoted:      "it had proved itself longer than the current program",
	selection.ReasonSetter:           "a setter needs no program",
}

// reasonWords returns the reason in words. An unknown reason is returned as it is, or quoted.
func reasonWords(reason string) string {
	if words, known := reasons[reason]; known {
		return words
	}
	return word(reason)
}

// selected describes which program answered or why none did, and the reason.
func (x *Explanation) selected(e *agent.LogEntry) string {
	s := &x.Selection
	because := " because " + reasonWords(s.Reason) + "."
	var text string
	switch s.Decision {
	case agent.DecideRun:
		text = x.stored(e, because)
	case agent.DecideRepair:
		text = x.written(e) + " " + word(cmp.Or(s.Generation, "the stored program")) + " was to be repaired" + because
	case agent.DecideForge:
		text = x.written(e)
		switch {
		case s.Reason == selection.ReasonRequested: // the reason alone would only repeat the sentence before
			text += " A person had asked for a new program."
		case requested(e):
			text += " The model was asked for a new program" + because
		default:
			text += " A new program was needed" + because
		}
	case agent.DecideRefuse:
		return "No program ran" + because
	default:
		if s.Reason == selection.ReasonSetter {
			return "It needed no program: the call changes the context of its session."
		}
		return "It needed no program: a prediction asks the model itself."
	}
	return text + x.aboutProgram(e)
}

// stored describes the outcome of a call for which a stored program was selected.
func (x *Explanation) stored(e *agent.LogEntry, because string) string {
	g := "the stored program " + word(x.Selection.Generation)
	switch {
	case e.Generation == x.Selection.Generation && e.ProgramSource == agent.SourcePersisted && unrun(e):
		return "T" + g[1:] + " was chosen" + because + " It did not run, since the arguments do not fit it."
	case e.Generation == x.Selection.Generation && e.ProgramSource == agent.SourcePersisted:
		if e.OutcomeStatus != agent.StatusOK {
			return "T" + g[1:] + " ran" + because
		}
		return "T" + g[1:] + " answered" + because
	}
	return x.written(e) + " Before it, " + g + " was chosen" + because
}

// did describes what the last program of the call did.
func did(e *agent.LogEntry) string {
	switch {
	case e.OutcomeStatus == agent.StatusOK:
		return "answered"
	case e.OutcomeAuthored && !e.GaveUp():
		return "returned the error"
	}
	return "ran"
}

// unrun reports whether the call's program did not run because the arguments do not match its parameters.
func unrun(e *agent.LogEntry) bool {
	return e.ProgramSource != agent.SourceNone && e.ProgramSource != "" && e.ReplayableReason == agent.ReasonNoProgram
}

// requested reports whether the call asked the model for a program. It may instead have waited for another call's
// program, or run one that an earlier call left.
func requested(e *agent.LogEntry) bool {
	none := e.ProgramSource == agent.SourceNone || e.ProgramSource == ""
	return e.GenerationAttempt > 0 || none && e.Usage.ModelRequests > 0
}

// written describes the program that the call ended with.
func (x *Explanation) written(e *agent.LogEntry) string {
	none := e.ProgramSource == agent.SourceNone || e.ProgramSource == ""
	g := ""
	if e.Generation != "" {
		g = ", " + word(e.Generation) + ","
	}
	switch {
	case none && e.Generation != "":
		return "No program answered: " + word(e.Generation) + " was written and waits."
	case none:
		return "No program answered."
	case (e.ProgramSource == agent.SourceRepaired || e.ProgramSource == agent.SourceGenerated) && !requested(e):
		return "A program that the model had written for another call" + g + " " + did(e) + "."
	case e.ProgramSource == agent.SourceRepaired:
		return "A program that was repaired for this call" + g + " " + did(e) + "."
	case e.ProgramSource == agent.SourceGenerated:
		return "A program that was written for this call" + g + " " + did(e) + "."
	}
	return "A stored program" + g + " " + did(e) + "."
}

// aboutProgram adds what the reader should know about the program that the call ended with.
func (x *Explanation) aboutProgram(e *agent.LogEntry) string {
	text := ""
	switch {
	case e.ProgramUnkept:
		text += " It was not kept, since stored programs were switched off or the method was in quarantine."
	case e.Generation == "" && (e.ProgramSource == agent.SourceGenerated || e.ProgramSource == agent.SourceRepaired):
		text += " It was not kept."
	}
	if e.ProgramDoubted {
		text += " A person had judged an earlier answer of it wrong."
	}
	if e.ProgramStale != "" && x.Selection.Reason != selection.ReasonPurposeChanged {
		text += " A person had changed what the method is for since it was made."
	}
	switch {
	case !ran(e) || unrun(e) || x.Selection.Engine == "" && x.Selection.Tier == "":
	case x.Selection.Tier == "native":
		text += " It ran compiled."
	default:
		text += " It ran on the engine " + word(cmp.Or(x.Selection.Engine, x.Selection.Tier)) + "."
	}
	return text
}

// stageWords describes an attempt that failed at the stage.
func stageWords(stage string) string {
	switch stage {
	case "validation":
		return "it was refused before it ran"
	case "execution":
		return "it ran and failed"
	case "outcome_policy":
		return "its value was refused"
	case "proof":
		return "it answers otherwise than the examples, or than the program before it"
	}
	return "it failed at " + word(stage)
}

// stageCheck returns the name of the check that an attempt failed.
func stageCheck(stage string) string {
	if name, known := map[string]string{"validation": "gate", "execution": "run", "outcome_policy": "outcome",
		"proof": "examples and earlier answers"}[stage]; known {
		return name
	}
	return word(stage)
}

// would describes the decision, such as "gen-1 would have run".
func (c *Counterfactual) would() string {
	switch c.Decision {
	case agent.DecideForge:
		return "the model would have written a new program"
	case agent.DecideRepair:
		return fmt.Sprintf("%s would have been repaired first", word(c.Generation))
	case agent.DecideRun:
		return fmt.Sprintf("%s would have run", word(c.Generation))
	case agent.DecideRefuse:
		return "no program would have run"
	}
	return word(c.Decision) + " would have been decided"
}

// otherwise describes the consequences of other policies. Settings with the same consequence are grouped.
func (x *Explanation) otherwise() string {
	switches := map[string][]string{}
	var order []string
	for i := range x.Counterfactuals {
		c := &x.Counterfactuals[i]
		then := c.Then
		if c.Changes {
			then = c.would()
			if c.Then != "" {
				then += ", and " + c.Then
			}
		}
		if then == "" {
			continue
		}
		if switches[then] == nil {
			order = append(order, then)
		}
		switches[then] = append(switches[then], x.setting(c))
	}
	if len(order) == 0 {
		if len(x.Counterfactuals) == 0 {
			return ""
		}
		return "No other setting of a single switch of the policy would have changed this."
	}
	text := "With another policy it would have gone otherwise: "
	for i, then := range order {
		if i > 0 {
			text += "; "
		}
		text += "with " + listed(switches[then], "or") + " " + then
	}
	return text + "."
}

// setting describes a switch with its other value. Of the long list dispatch_methods it names only the difference.
func (x *Explanation) setting(c *Counterfactual) string {
	set := value(c.Value)
	var methods []string
	// a client decodes Value from JSON, as any type
	if c.Switch != "dispatch_methods" || json.Unmarshal([]byte(set), &methods) != nil {
		return c.Switch + "=" + set
	}
	if slices.Contains(methods, x.Method) {
		return word(x.Method) + " among dispatch_methods"
	}
	return word(x.Method) + " not among dispatch_methods"
}

// value returns a policy value as printable JSON.
func value(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "another value"
	}
	return printable(string(rawjson.WithoutHTML(raw)))
}

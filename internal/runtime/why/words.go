package why

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/runtime"
)

// reasons say a selection's reason in words; see runtime.Reason*.
var reasons = map[string]string{
	runtime.ReasonHealthy: "it was healthy and matched the contract of the call", runtime.ReasonPinned: "a person had pinned it",
	runtime.ReasonMissing: "no program was stored", runtime.ReasonDispatch: "a dispatch method gets a program for each call",
	runtime.ReasonForced: "the policy force_generation was on", runtime.ReasonReadDisabled: "the policy artifact_read_enabled was off",
	runtime.ReasonNotCanary: "the policy artifact_read_roles did not name the role", runtime.ReasonQuarantined: "a person had put the method into quarantine",
	runtime.ReasonRequested: "a person had asked for a new program", runtime.ReasonSchema: "what was stored is of another version of the daemon",
	runtime.ReasonRuntime: "the stored program was made for another version of the daemon", runtime.ReasonChecksum: "the stored program did not have its checksum",
	runtime.ReasonDependencies: "the stored program imported what is not allowed", runtime.ReasonNotCacheable: "the stored program answers one call only",
	runtime.ReasonArgsIgnored: "the stored program does not look at its arguments", runtime.ReasonContractChanged: "no healthy stored program was made for the contract of the call",
	runtime.ReasonDegraded: "too many of the last calls of the stored program had failed", runtime.ReasonApprovalRequired: "the current program waited for a person's approval",
	runtime.ReasonNewReach:       "the current program waited for a person's approval of what it reaches",
	runtime.ReasonPurposeChanged: "a person had changed what the method is for since its program was made", runtime.ReasonPurposeChecked: "a person had changed what the method is for, and the model said that the program does it",
	runtime.ReasonBreaksExamples: "the current program was written for a changed purpose, did not hold examples, and waited for a person's approval",
	runtime.ReasonUnproven:       "the stored program had never answered with a value", runtime.ReasonCorrection: "a person had called an answer wrong",
	runtime.ReasonNotPromoted: "it had come further in its lifecycle than the current program", runtime.ReasonSetter: "a setter needs no program",
}

func reasonWords(reason string) string {
	if words, known := reasons[reason]; known {
		return words
	}
	return word(reason)
}

// stageWords says which program an attempt that failed at the stage was.
func stageWords(stage string) string {
	switch stage {
	case "validation":
		return "it was refused before it ran"
	case "execution":
		return "it ran and failed"
	case "outcome_policy":
		return "its value was refused"
	case "proof":
		return "it does not answer as was expected, or as the program before it"
	}
	return "it failed at " + word(stage)
}

// stageCheck names the check that an attempt failed.
func stageCheck(stage string) string {
	if name, known := map[string]string{"validation": "gate", "execution": "run", "outcome_policy": "outcome", "proof": "examples and earlier answers"}[stage]; known {
		return name
	}
	return word(stage)
}

// words are the explanation in plain words: a line for each question.
func (x *Explanation) words(in *Input) string {
	e := &in.Call.Log
	lines := []string{x.end(e), asked(e)}
	if running(e) {
		return strings.Join(append(lines, "It has not ended: what was selected, checked and used is known when it has."), "\n")
	}
	lines = append(lines, x.selected(e))
	if n := len(x.Alternatives); n > 0 {
		lines = append(lines, fmt.Sprintf("%s kept beside it.", plural(n, "other program is", "other programs are")))
	}
	if n := len(x.Candidates); n > 0 {
		lines = append(lines, plural(n, "attempt", "attempts")+" did not answer.")
	}
	lines = append(lines, x.reached(), x.checked(), x.costs(e))
	var other []string
	for _, c := range x.Counterfactuals {
		flipped := c.Switch + "=" + value(c.Value)
		switch {
		case c.Changes && c.Then != "":
			other = append(other, flipped+" would "+c.decision()+", and "+c.Then)
		case c.Changes:
			other = append(other, flipped+" would "+c.decision())
		case c.Then != "":
			other = append(other, "with "+flipped+" "+c.Then)
		}
	}
	switch {
	case len(other) > 0:
		lines = append(lines, "Another policy: "+strings.Join(other, "; ")+".")
	case len(x.Counterfactuals) > 0:
		lines = append(lines, "No single switch of the policy would have changed the decision.")
	}
	if e.Verdict == "" && e.CorrectedBy != "" {
		lines = append(lines, "The question was asked again soon, by "+word(e.CorrectedBy)+": the answer may have been wrong.")
	}
	return strings.Join(lines, "\n")
}

// decision is what is decided: "run gen-1".
func (c *Counterfactual) decision() string {
	if c.Generation == "" || c.Decision == agent.DecideRefuse {
		return word(c.Decision)
	}
	if c.Decision == agent.DecideForge {
		return "forge anew"
	}
	return word(c.Decision) + " " + word(c.Generation)
}

func value(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "another value"
	}
	return printable(string(rawjson.WithoutHTML(raw)))
}

func (x *Explanation) end(e *agent.LogEntry) string {
	name := word(e.Method)
	if e.Role != "" { // a prediction outside of sessions has none
		name = word(e.Role) + "." + name
	}
	if running(e) {
		return fmt.Sprintf("%s is under way since %s, for %.0f ms.", name, word(e.Timestamp), e.DurationMs)
	}
	if e.OutcomeStatus == agent.StatusOK {
		return fmt.Sprintf("%s answered with a value. It began at %s.", name, word(e.Timestamp))
	}
	by := ""
	switch {
	case e.OutcomeAuthored:
		by = ", which its program returned"
	case e.OutcomeErrorType == agent.ErrProvider:
		by = ": the model could not be asked, or gave no usable answer"
	case e.OutcomeErrorType == agent.ErrDenied:
		by = ": something that it needed is not allowed"
	}
	text := fmt.Sprintf("%s ended in the error %s%s. It began at %s.", name, word(cmp.Or(e.OutcomeErrorType, "unknown")), by, word(e.Timestamp))
	if e.OutcomeErrorMessage != "" {
		text += " The message: " + quoted(e.OutcomeErrorMessage) + "."
	}
	return text
}

// asked is the question as the log has it: secrets are masked there.
func asked(e *agent.LogEntry) string {
	if e.Args == nil && (len(e.Kwargs) == 0 || string(e.Kwargs) == "null") { // null: of an entry that was stored after it was erased
		return "What was asked is not kept."
	}
	var parts []string
	for _, a := range e.Args {
		parts = append(parts, input(a))
	}
	if len(e.Kwargs) > len("{}") {
		parts = append(parts, input(e.Kwargs))
	}
	if len(parts) == 0 {
		return "It was asked without arguments."
	}
	return "It was asked with " + printable(runtime.Clip(strings.Join(parts, ", "), maxQuoted)) + "."
}

func input(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "(unreadable)"
	}
	return string(rawjson.WithoutHTML(b.Bytes()))
}

func (x *Explanation) selected(e *agent.LogEntry) string {
	s := &x.Selection
	reason := reasonWords(s.Reason)
	switch s.Decision {
	case agent.DecideRun:
		text := fmt.Sprintf("The stored program %s was selected: %s.", word(s.Generation), reason)
		if e.Generation != s.Generation || e.ProgramSource != agent.SourcePersisted {
			text += " " + x.answeredBy(e)
		}
		return text + x.ran()
	case agent.DecideRepair:
		return fmt.Sprintf("%s was to be repaired: %s. %s%s", word(s.Generation), reason, x.answeredBy(e), x.ran())
	case agent.DecideForge:
		return fmt.Sprintf("A model was to write a program: %s. %s%s", reason, x.answeredBy(e), x.ran())
	case agent.DecideRefuse:
		return "Nothing ran: " + reason + "."
	}
	if s.Reason == runtime.ReasonSetter {
		return "No program was needed: a setter changes the context of the session."
	}
	return "No program was selected: a prediction asks the model itself."
}

func (x *Explanation) ran() string {
	switch {
	case x.Selection.Engine == "" && x.Selection.Tier == "":
		return ""
	case x.Selection.Tier == "native":
		return " It ran compiled."
	}
	return " It ran on the engine " + word(cmp.Or(x.Selection.Engine, x.Selection.Tier)) + "."
}

func (x *Explanation) answeredBy(e *agent.LogEntry) string {
	made := map[string]string{agent.SourceGenerated: "written for this call", agent.SourceRepaired: "repaired for this call", agent.SourcePersisted: "stored before"}[e.ProgramSource]
	switch {
	case (e.ProgramSource == agent.SourceNone || e.ProgramSource == "") && e.Generation != "":
		return word(e.Generation) + " was written, and did not answer."
	case e.ProgramSource == agent.SourceNone || e.ProgramSource == "":
		return "No program answered."
	case e.Generation == "":
		return "A program answered, " + cmp.Or(made, word(e.ProgramSource)) + ", which was not kept."
	}
	return word(e.Generation) + " answered, " + cmp.Or(made, word(e.ProgramSource)) + "."
}

func (x *Explanation) reached() string {
	if len(x.Effects) == 0 && len(x.Delegated) == 0 {
		return "It fetched nothing and delegated nothing that is recorded."
	}
	count := map[string]int{}
	var kinds []string
	for _, d := range x.Effects {
		if count[d.Kind]++; count[d.Kind] == 1 {
			kinds = append(kinds, d.Kind)
		}
	}
	for i, k := range kinds {
		kinds[i] = fmt.Sprintf("%s (%d)", word(k), count[k])
	}
	var said []string
	if len(kinds) > 0 {
		said = append(said, "It asked its host: "+strings.Join(kinds, ", ")+".")
	}
	if n := len(x.Delegated); n > 0 {
		said = append(said, "Below it "+plural(n, "call was", "calls were")+" made.")
	}
	return strings.Join(said, " ")
}

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
	text := "Checked: " + cmp.Or(strings.Join(good, ", "), "nothing passed a check") + "."
	if len(bad) > 0 {
		text += " Failed: " + strings.Join(bad, ", ") + "."
	}
	return text
}

func (x *Explanation) costs(e *agent.LogEntry) string {
	if e.Usage.ModelRequests == 0 {
		text := fmt.Sprintf("It took %.1f ms and no model request.", e.DurationMs)
		if f := x.Cost.Forge; f != nil && f.ModelRequests > 0 {
			text += fmt.Sprintf(" Making the program had taken %s and %d tokens.", plural(f.ModelRequests, "request", "requests"), f.PromptTokens+f.CompletionTokens)
		}
		return text
	}
	if unreported(&e.Usage) {
		return fmt.Sprintf("It took %.0f ms and %s without a report of the tokens; recurgentd usage has what such requests count for.", e.DurationMs,
			plural(e.Usage.ModelRequests, "model request", "model requests"))
	}
	text := fmt.Sprintf("It took %.0f ms, %s and %d tokens", e.DurationMs, plural(e.Usage.ModelRequests, "model request", "model requests"), e.Usage.PromptTokens+e.Usage.CompletionTokens)
	if e.Depth == 0 && len(x.Delegated) > 0 {
		text += " with those of the calls below it"
	}
	if m := x.Cost.Money; m != nil {
		text += fmt.Sprintf(", which cost at most %.4f %s", m.Amount, word(m.Currency))
	}
	return text + "."
}

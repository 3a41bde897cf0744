package why

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
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

package why

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Values of Check.Result.
const (
	passed = "passed"
	failed = "failed"
	none   = "none"
)

// checks returns the checks of the call's programs and of its value, failed attempts first.
func checks(in *Input) []Check {
	e := &in.Call.Log
	list := []Check{}
	add := func(name, result, detail string) { list = append(list, Check{name, result, detail}) }
	for i := range e.AttemptFailures {
		f := &e.AttemptFailures[i]
		add(stageCheck(f.Stage), failed, "the attempt "+word(f.AttemptID)+" ended in "+word(f.ErrorType))
	}
	written := e.ProgramSource == agent.SourceGenerated || e.ProgramSource == agent.SourceRepaired
	if written && e.CodeChecksum != "" {
		add("gate", passed, "the new program uses only what is allowed")
	}
	if fixes := fixesOf(in); len(fixes) > 0 {
		quotes := make([]string, min(len(fixes), maxFixesShown))
		for i := range quotes {
			quotes[i] = quoted(fixes[i])
		}
		add("fixes", passed, fixed(len(fixes))+" in what the model wrote and corrected before the check: "+
			strings.Join(quotes, ", "))
	}
	switch {
	case !e.ContractValidationApplied && (e.ContractSource == "none" || e.ContractSource == ""):
		add("contract", none, "the call had no contract")
	case !e.ContractValidationApplied:
		add("contract", none, "there was no value to check against the contract")
	case e.ContractValidationPassed:
		add("contract", passed, "the value keeps the contract ("+word(e.ContractSource)+")")
	default:
		add("contract", failed, "the value breaks the contract: "+quoted(e.ContractValidationMismatch))
	}
	if e.ProgramSource != agent.SourceNone && e.ProgramSource != "" {
		list = append(list, examples(in, written))
	}
	if e.WeakSuccess {
		add("achievement", failed, "the value counts as a weak success: "+
			quoted(strings.Join(e.WeakSuccessReasons, ", ")))
	}
	switch e.Verdict {
	case agent.VerdictRight:
		add("judgement", passed, "a person said that it is right")
	case agent.VerdictWrong:
		add("judgement", failed, "a person said that it is wrong")
	default:
		// the log has no proposed verdicts
		if v := in.Artifact.Verdict(e.CallID); v != nil {
			add("judgement", none, "somebody proposed that it is "+word(v.Verdict)+
				"; nobody who may operate has decided yet")
		} else {
			add("judgement", none, "nobody has judged it")
		}
	}
	if e.CorrectedBy != "" {
		add("repeated question", failed, "it was asked again soon after, by "+word(e.CorrectedBy))
	}
	if e.BeyondManifest != nil {
		add("effects", failed, "the program reached, or tried to reach, what is not in the manifest of its method")
	}
	if e.SandboxLevel != "" && ran(e) {
		add("confinement", passed, "the program ran confined, level "+word(e.SandboxLevel))
	}
	return list
}

// ran reports whether any program ran for the call.
func ran(e *agent.LogEntry) bool {
	return e.ProgramSource != agent.SourceNone && e.ProgramSource != "" && !unrun(e) ||
		slices.ContainsFunc(e.AttemptFailures, func(f agent.AttemptFailure) bool { return f.Stage != "validation" })
}

// maxFixesShown bounds how many fixes of a program's text are listed.
const maxFixesShown = 8

// fixesOf returns the fixes that the gate made in the text of the program that answered, if they are kept.
func fixesOf(in *Input) []string {
	if in.Artifact == nil {
		return nil
	}
	for _, g := range in.Artifact.Generations {
		if g.ID != in.Call.Log.Generation {
			continue
		}
		var facts report.Facts
		if json.Unmarshal(g.Facts, &facts) == nil {
			return facts.Fixes
		}
	}
	return nil
}

// examples describes the effect of the method's examples on the program.
func examples(in *Input, written bool) Check {
	c := Check{Name: "examples", Result: none, Detail: "the method had none"}
	before, of := 0, ""
	if in.Artifact != nil {
		for _, x := range in.Artifact.Examples {
			if x.CallID == in.Call.Log.CallID {
				of = "; this call has become one since"
			}
			if x.State == agent.ExampleActive && x.CreatedAt.Before(began(&in.Call.Log)) {
				before++
			}
		}
	}
	switch n := plural(before, "example", "examples"); {
	case before == 0:
	case written && in.Call.Log.Generation != "":
		c.Result, c.Detail = passed, "the new program was kept, so it holds the examples of then; of these "+n+" "+
			verb(before, "is", "are")+" still kept"
	default:
		c.Detail = "the method had " + n +
			"; what a model writes is held to them before it is kept, and not at each call"
	}
	c.Detail += of
	return c
}

// verb selects the form for the number.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// fixed counts the fixes in words.
func fixed(n int) string {
	return plural(n, "slip was", "slips were") + " found"
}

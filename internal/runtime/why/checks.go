package why

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Results of a check.
const (
	passed = "passed"
	failed = "failed"
	none   = "none"
)

// checks lists what was checked of programs and of the answer.
func checks(in *Input) []Check {
	e := &in.Call.Log
	list := []Check{}
	add := func(name, result, detail string) { list = append(list, Check{name, result, detail}) }
	for i := range e.AttemptFailures {
		f := &e.AttemptFailures[i]
		add(stageCheck(f.Stage), failed, "attempt "+word(f.AttemptID)+": "+word(f.ErrorType))
	}
	written := e.ProgramSource == agent.SourceGenerated || e.ProgramSource == agent.SourceRepaired
	if written && e.CodeChecksum != "" {
		add("gate", passed, "the program that was written uses only what is allowed")
	}
	if fixes := fixesOf(in); len(fixes) > 0 {
		quotes := make([]string, min(len(fixes), maxFixesShown))
		for i := range quotes {
			quotes[i] = quoted(fixes[i])
		}
		add("fixes", passed, plural(len(fixes), "place", "places")+" of the text that the model wrote were corrected before it was checked: "+strings.Join(quotes, ", "))
	}
	switch {
	case !e.ContractValidationApplied:
		add("contract", none, "there was no contract, or no value to check")
	case e.ContractValidationPassed:
		add("contract", passed, "the value keeps the contract ("+word(e.ContractSource)+")")
	default:
		add("contract", failed, quoted(e.ContractValidationMismatch))
	}
	if e.ProgramSource != agent.SourceNone && e.ProgramSource != "" {
		list = append(list, examples(in, written))
	}
	if e.WeakSuccess {
		add("achievement", failed, "the value says of itself that it achieved little: "+quoted(strings.Join(e.WeakSuccessReasons, ", ")))
	}
	switch e.Verdict {
	case agent.VerdictRight:
		add("judgement", passed, "a person said that it is right")
	case agent.VerdictWrong:
		add("judgement", failed, "a person said that it is wrong")
	default:
		if v := in.Artifact.Verdict(e.CallID); v != nil {
			add("judgement", none, "it was proposed that it is "+word(v.Verdict)+", and nobody who may operate has decided")
		} else {
			add("judgement", none, "nobody has judged it")
		}
	}
	if e.CorrectedBy != "" {
		add("repeated question", failed, "it was asked again soon, by "+word(e.CorrectedBy))
	}
	if e.BeyondManifest != nil {
		add("effects", failed, "the program reached, or tried to reach, what the manifest of its method lacks")
	}
	if e.SandboxLevel != "" && ran(e) {
		add("confinement", passed, "level "+word(e.SandboxLevel))
	}
	return list
}

// ran reports whether any program ran for the call.
func ran(e *agent.LogEntry) bool {
	return e.ProgramSource != agent.SourceNone && e.ProgramSource != "" ||
		slices.ContainsFunc(e.AttemptFailures, func(f agent.AttemptFailure) bool { return f.Stage != "validation" })
}

// maxFixesShown bounds how many corrections of a program's text are named.
const maxFixesShown = 8

// fixesOf returns what the gate corrected in the text of the program that answered, where that is kept.
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

// examples says what the examples of the method meant to the program.
func examples(in *Input, written bool) Check {
	c := Check{Name: "examples", Result: none, Detail: "none were kept of the method"}
	before, of := 0, ""
	if in.Artifact != nil {
		for _, x := range in.Artifact.Examples {
			if x.CallID == in.Call.Log.CallID {
				of = "; one kept now is of this call"
			}
			if x.State == agent.ExampleActive && x.CreatedAt.Before(began(&in.Call.Log)) {
				before++
			}
		}
	}
	switch n := plural(before, "example", "examples"); {
	case before == 0:
	case written && in.Call.Log.Generation != "":
		c.Result, c.Detail = passed, "the program was kept, so that it holds what was expected then; kept of that: "+n
	default:
		c.Detail = "kept now, of before the call: " + n + "; a program of a model is held to them before it is kept, and not at each call"
	}
	c.Detail += of
	return c
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// tryFlags holds the flags of tools try.
type tryFlags struct {
	candidateFlags
	args    string
	kwargs  []string
	context string
	noFetch bool
}

func tryCommand(sh Shell) *cobra.Command {
	var f tryFlags
	c := operatorCommand(sh, "recurgentd tools", operation{use: "try ROLE METHOD [ARG...]",
		short: "Try a program on an input, beside the one that serves", least: 2, most: 2 + 64,
		long: `Try a program, or an earlier generation, on an input beside the program that serves: what each answers, how they
hold the examples, and which earlier answers would change. Nothing is kept or counted, no model is asked, and
nothing is written outside. Arguments are JSON where they parse as JSON, else text.`,
		exits: `Exit status: 0 when the candidate answers with a value and holds every example, 1 when it does not, 2 for a wrong
command line, 3 when no daemon answers or it refuses the request.`,
		example: "tax net 1000 --code net.go",
		run:     func(t *errand) error { return t.try(&f) }})
	c.Example += "\n  recurgentd tools try tax net 1000 --generation gen-1\n  recurgentd tools try tax net --args '[1000]' --kwargs rate=0.3 --code -"
	f.add(c)
	c.Flags().StringVar(&f.args, "args", "", "the arguments as a JSON array, instead of ARG...")
	c.Flags().StringArrayVar(&f.kwargs, "kwargs", nil, "keyword argument NAME=VALUE, or a JSON object; may be repeated")
	c.Flags().StringVar(&f.context, "context", "", "the session's context, a JSON object")
	c.Flags().BoolVar(&f.noFetch, "no-fetch", false, "deny fetches")
	return c
}

// input returns the body of a request, without the program.
func (f *tryFlags) input(rest []string) (map[string]any, error) {
	args := []json.RawMessage{}
	for _, a := range rest {
		args = append(args, client.Value(a))
	}
	if f.args != "" {
		if len(rest) > 0 {
			return nil, errors.New("--args and ARG... cannot be used together")
		}
		if err := json.Unmarshal([]byte(f.args), &args); err != nil {
			return nil, fmt.Errorf("--args: %q is not a JSON array", f.args)
		}
	}
	kwargs, err := keywordArguments(f.kwargs)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"args": args, "kwargs": kwargs, "fetch": "live"}
	if f.noFetch {
		body["fetch"] = "denied"
	}
	if f.context != "" {
		var o map[string]json.RawMessage
		if json.Unmarshal([]byte(f.context), &o) != nil || o == nil {
			return nil, fmt.Errorf("--context: %q is not a JSON object", f.context)
		}
		body["context"] = o
	}
	return body, nil
}

// tried is the output of tools try for scripts.
type tried struct {
	Serves    *operator.TryReport `json:"serves"`    // null if nothing serves yet
	Candidate *operator.TryReport `json:"candidate"` // null if none was named
}

// try runs the serving program and the candidate, if one is named, on the input. The exit code is for the candidate.
func (t *errand) try(f *tryFlags) error {
	input, err := f.input(t.args[2:])
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	program, err := f.body(t.sh)
	if err != nil {
		return err
	}
	var both tried
	both.Serves, err = t.tryOne(input)
	var no *client.Refusal
	if len(program) > 0 && errors.As(err, &no) && (no.Code == "not_found" || no.Code == "no_program") {
		err = nil // the method has no program yet
	}
	if err != nil {
		return err
	}
	judged := both.Serves
	if len(program) > 0 {
		for name, value := range program {
			input[name] = value
		}
		if both.Candidate, err = t.tryOne(input); err != nil {
			return err
		}
		judged = both.Candidate
	}
	if t.out.human() {
		err = t.sideBySide(both)
	} else {
		err = t.out.value(both)
	}
	switch {
	case err != nil:
		return err
	case !judged.Outcome.OK():
		return exitWith(ExitFailed, fmt.Errorf("%s.%s ended in %s: %s", t.args[0], t.args[1], judged.Outcome.ErrorType,
			judged.Outcome.ErrorMessage))
	case judged.Examples.Failed > 0:
		return exitWith(ExitFailed, errors.New("it does not hold "+text.Plural(judged.Examples.Failed, "example")))
	}
	return nil
}

// tryOne runs one program on the input.
func (t *errand) tryOne(body map[string]any) (*operator.TryReport, error) {
	var r operator.TryReport
	err := t.c.JSON(t.ctx, http.MethodPost, client.MethodPath(t.args[0], t.args[1])+"/try", body, &r)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// sideBySide prints the serving program's results next to the candidate's, and the earlier answers that would change.
func (t *errand) sideBySide(both tried) error {
	header, columns := "WHAT SERVES", []*operator.TryReport{both.Serves}
	if both.Candidate != nil {
		header, columns = header+" CANDIDATE", append(columns, both.Candidate)
	}
	rows := [][]string{{"answer"}, {"examples"}, {"earlier answers"}}
	for _, r := range columns {
		if r == nil {
			for i := range rows {
				rows[i] = append(rows[i], "")
			}
			continue
		}
		rows[0] = append(rows[0], answerOfOutcome(r.Outcome))
		rows[1] = append(rows[1], fmt.Sprintf("%d passed, %d failed, %d skipped", r.Examples.Passed, r.Examples.Failed,
			r.Examples.Skipped))
		rows[2] = append(rows[2], fmt.Sprintf("%d same, %d changed", r.Fixtures.Same, len(r.Fixtures.Changed)))
	}
	if err := t.table(header, rows); err != nil || both.Candidate == nil || len(both.Candidate.Fixtures.Changed) == 0 {
		return err
	}
	fmt.Fprintln(t.sh.Stdout, "\nearlier answers that would change:")
	rows = nil
	for _, x := range both.Candidate.Fixtures.Changed {
		rows = append(rows, []string{x.CallID, text.JSON(x.Was), answerOf(x.Now, x.Error)})
	}
	return t.table("CALL WAS NOW", rows)
}

func answerOfOutcome(o agent.Outcome) string {
	if !o.OK() {
		return "error " + o.ErrorType + ": " + o.ErrorMessage
	}
	return text.JSON(o.Value)
}

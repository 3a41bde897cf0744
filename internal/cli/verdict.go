package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

const exitsOfWrong = `Exit status: 0 when it was done, 1 when --wait was given and the correction failed, 2 for a wrong command line, 3
when no daemon answers or it refuses the request.`

func rightCommand(sh Shell) *cobra.Command {
	j := client.Judgement{Verdict: agent.VerdictRight}
	c := operatorCommand(sh, "recurgentd", operation{use: "right CALL_ID",
		short: "Say that the answer of a call is right", least: 1, most: 1,
		long: `Say that the answer of a call is right. The call becomes an example: no program that a model writes from
now on may answer its input otherwise. recurgentd call prints the id of a call, and so does recurgentd watch.`,
		example: "call_06gzqwq081srb0e6zx42fm96t4",
		run:     func(t *errand) error { return t.judge(j, false) }})
	c.Flags().StringVar(&j.Note, "note", "", "a word on it, which the model sees, too")
	return c
}

func wrongCommand(sh Shell) *cobra.Command {
	j := client.Judgement{Verdict: agent.VerdictWrong}
	var expected string
	var wait bool
	var c *cobra.Command
	c = operatorCommand(sh, "recurgentd", operation{use: "wrong CALL_ID",
		short: "Say that the answer of a call is wrong, and what is right", least: 1, most: 1,
		long: `Say that the answer of a call is wrong. What is expected becomes an example, and by policy the model is asked
to correct the program: it sees the code, the input, the wrong answer, the expected one and the note. The old
program goes on answering until a correction gives every example. recurgentd call prints the id of a call,
and so does recurgentd watch; nested calls can be judged, too.`,
		exits: exitsOfWrong, example: `call_06gzqwq081srb0e6zx42fm96t4 --expected 700 --note "70 percent, not 60" --wait`,
		run: func(t *errand) error {
			if c.Flags().Changed("expected") {
				j.Expected = client.Value(expected)
			}
			if j.Expected != nil && j.ErrorType != "" {
				return exitWith(ExitUsage, errors.New("--expected and --expected-error cannot be used together"))
			}
			return t.judge(j, wait)
		}})
	c.Flags().StringVar(&expected, "expected", "", "the right answer, JSON where it parses as JSON, else text")
	c.Flags().StringVar(&j.ErrorType, "expected-error", "",
		"the type of the error that is right, such as invalid_input")
	c.Flags().StringVar(&j.Note, "note", "", "what is wrong; the model sees it")
	c.Flags().BoolVar(&wait, "wait", false, "wait for the first attempt at a correction")
	return c
}

func verdictCommand(sh Shell) *cobra.Command {
	var drop bool
	c := operatorCommand(sh, "recurgentd", operation{use: "verdict CALL_ID",
		short: "Show what was said of a call's answer, or take it back", least: 1, most: 1,
		example: "call_06gzqwq081srb0e6zx42fm96t4",
		run: func(t *errand) error {
			if drop {
				return t.dropVerdict()
			}
			data, err := t.c.Do(t.ctx, http.MethodGet, client.VerdictPath(t.args[0]), nil)
			if err != nil {
				return err
			}
			_, err = t.judged(data)
			return err
		}})
	c.Example += "\n  recurgentd verdict call_06gzqwq081srb0e6zx42fm96t4 --drop"
	c.Flags().BoolVar(&drop, "drop", false, "take it back, with the example that it made")
	return c
}

func (t *errand) dropVerdict() error {
	if _, err := t.c.Do(t.ctx, http.MethodDelete, client.VerdictPath(t.args[0]), nil); err != nil {
		return err
	}
	if !t.out.human() {
		return t.out.value(map[string]any{"call_id": t.args[0], "verdict": nil})
	}
	return t.out.line("%s: the verdict is taken back", text.Cell(t.args[0]))
}

// judge sends the verdict and prints the result. With wait, it first waits for the first attempt at a correction.
func (t *errand) judge(j client.Judgement, wait bool) error {
	patience := time.Duration(0)
	if wait {
		patience = time.Minute
	}
	data, waited, err := t.c.Judge(t.ctx, t.args[0], j, patience)
	for err == nil && waited && unfinished(data) {
		select {
		case <-time.After(time.Second):
			data, err = t.c.Do(t.ctx, http.MethodGet, client.VerdictPath(t.args[0]), nil)
		case <-t.ctx.Done():
			err = errors.New("interrupted; the verdict is stored, and the correction continues")
		}
	}
	if err != nil {
		return err
	}
	v, err := t.judged(data)
	if err == nil && wait && t.out.human() && v.Correction.State == agent.CorrectionNone {
		return t.out.line("no correction was begun: the verdict is a proposal, no program is kept, or the policy " +
			"leaves corrections to a person (correction=manual)")
	}
	if err != nil || !waited || v.Correction.State != agent.CorrectionFailed &&
		v.Correction.State != agent.CorrectionBackingOff {
		return err
	}
	return exitWith(ExitFailed, errors.New("the correction failed; the old program still answers"))
}

// unfinished reports whether the correction is still queued or running.
func unfinished(data []byte) bool {
	var v operator.JudgedCall
	_ = json.Unmarshal(data, &v) // an unreadable reply counts as finished and is reported later
	return v.Correction.State == agent.CorrectionQueued || v.Correction.State == agent.CorrectionRunning
}

// judged prints a verdict.
func (t *errand) judged(data []byte) (v operator.JudgedCall, err error) {
	if err := t.read("the verdict", data, &v); err != nil {
		return v, err
	}
	if !t.out.human() {
		return v, t.out.document(data)
	}
	line := text.Cell(v.Role) + "." + text.Cell(v.Method)
	if v.Generation != nil {
		line += " (" + text.Cell(*v.Generation) + ")"
	}
	line += ": " + text.Cell(v.Verdict)
	switch {
	case v.Expected != nil:
		line += ", expected " + text.Clean(string(v.Expected), 200)
	case v.ExpectedType != "":
		line += ", expected the error " + text.Cell(v.ExpectedType)
	}
	if v.Note != "" {
		line += " (" + text.Clean(v.Note, 200) + ")"
	}
	if v.ExampleID != nil && v.ExampleState != nil {
		line += "\nexample: " + text.Cell(*v.ExampleID) + ", " + text.Cell(*v.ExampleState)
	}
	if v.Correction.State != agent.CorrectionNone {
		line += "\ncorrection: " + text.Correction(v.Correction)
	}
	return v, t.out.line("%s", line)
}

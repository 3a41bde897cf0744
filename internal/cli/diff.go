package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

// diff compares two generations: their sources, their effects, and the answers that changed with them. By default it
// compares the current one with its parent.
func (t *errand) diff() error {
	var a artifactFields
	path := client.MethodPath(t.args[0], t.args[1])
	if err := t.c.Get(t.ctx, path, &a); err != nil {
		return err
	}
	var all generations
	if err := t.c.Get(t.ctx, path+"/generations", &all); err != nil {
		return err
	}
	to := all.find(a.Current)
	if len(t.args) == 4 {
		to = all.find(t.args[3])
	}
	var from *agent.Generation
	switch {
	case len(t.args) > 2:
		from = all.find(t.args[2])
	case to != nil && to.ParentID != nil:
		from = all.find(*to.ParentID)
	}
	if from == nil || to == nil {
		return exitWith(ExitUsage, fmt.Errorf("%s.%s does not have both generations; "+
			"recurgentd tools lineage lists those it has", a.Role, a.MethodName))
	}
	changed := all.changed(from, to)
	lines := diffLines(strings.Split(text.Printable(from.Code), "\n"), strings.Split(text.Printable(to.Code), "\n"))
	if !t.out.human() {
		return t.out.value(map[string]any{"from": from.ID, "to": to.ID, "diff": lines, "changed_answers": changed,
			"effects": map[string]any{"gone": from.Reach().Without(to.Reach()),
				"new": to.Reach().Without(from.Reach())}})
	}
	colours := t.out.colours()
	for i, l := range lines {
		switch l[0] {
		case '-':
			lines[i] = colours.Paint(text.Bad, l)
		case '+':
			lines[i] = colours.Paint(text.Good, l)
		}
	}
	err := t.out.line("--- %s (%s)\n+++ %s (%s)\n%s", from.ID, text.Cell(from.Trigger), to.ID, text.Cell(to.Trigger),
		strings.Join(lines, "\n"))
	if err != nil {
		return err
	}
	if reach := effectsDiff(from, to); len(reach) > 0 {
		if err := t.out.line("\neffects that changed with it:\n%s", strings.Join(reach, "\n")); err != nil {
			return err
		}
	}
	if len(changed) == 0 {
		return nil
	}
	fmt.Fprintln(t.sh.Stdout, "\nanswers that changed with it:")
	var rows [][]string
	for _, x := range changed {
		rows = append(rows, []string{x.CallID, inputOf(x.Args, x.Kwargs), text.JSON(x.Was),
			answerOf(x.Now, x.ErrorType)})
	}
	return t.table("CALL INPUT WAS NOW", rows)
}

// changed returns the answers that the generations after from, up to to, changed on a person's request, oldest first.
// It is empty if to does not descend from from.
func (g generations) changed(from, to *agent.Generation) []agent.ChangedAnswer {
	all := []agent.ChangedAnswer{}
	for x := to; x != nil && x != from; {
		all = append(slices.Clone(x.ChangedAnswers), all...)
		if x.ParentID == nil {
			return []agent.ChangedAnswer{}
		}
		x = g.find(*x.ParentID)
	}
	return all
}

// inputOf formats arguments in the notation of a call.
func inputOf(args []json.RawMessage, kwargs json.RawMessage) string {
	parts := make([]string, 0, len(args)+1)
	for _, a := range args {
		parts = append(parts, text.Clean(text.JSON(a), 40))
	}
	if len(kwargs) > len("{}") {
		parts = append(parts, text.Clean(text.JSON(kwargs), 40))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// answerOf formats a value, or the error type if there is one.
func answerOf(value json.RawMessage, errorType string) string {
	if errorType != "" {
		return "error " + errorType
	}
	return text.JSON(value)
}

// diffLines compares by the longest common subsequence and returns each line prefixed with a space, - or +. Programs
// are at most 64 KiB long. If a side has more than 2,000 lines, all lines count as changed.
func diffLines(a, b []string) []string {
	const most = 2000
	if len(a) > most || len(b) > most {
		return append(marked("-", a), marked("+", b)...)
	}
	var out []string
	common := commonLines(a, b)
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	out = append(out, marked("-", a[i:])...)
	return append(out, marked("+", b[j:])...)
}

func marked(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = mark + l
	}
	return out
}

// commonLines[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
func commonLines(a, b []string) [][]int {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

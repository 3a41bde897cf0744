package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

func replayCommand(sh Shell) *cobra.Command {
	var out *output
	c := &cobra.Command{
		Use:   "replay CALL_ID...",
		Short: "Run recorded calls again and compare",
		Long: `Run the programs of ended calls again on the same input and on the effects that were recorded with them:
time, randomness, fetches, nested calls. It has no effects. Each line says whether the second run gave the same
bytes.

Exit status: 0 when all are equal, 1 when one differs or cannot be replayed, 2 for a wrong command line, 3
when no daemon answers or it does not know a call.`,
		Example: "  recurgentd replay call_06gzqwq081srb0e6zx42fm96t4",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				return replayCalls(ctx, c,
					out, args)
			})
		},
	}
	out = addOutput(c, sh)
	addFlags(ClientScope, c.Flags())
	return c
}

// replayCalls replays the calls one after another. It returns an error if one was not equal.
func replayCalls(ctx context.Context, c *client.Client, out *output, ids []string) error {
	unequal := 0
	for _, id := range ids {
		var report operator.ReplayReport
		if err := c.JSON(ctx, "POST", "/v1/calls/"+url.PathEscape(id)+"/replay", nil, &report); err != nil {
			return exitWith(ExitUnreachable, err)
		}
		if !report.Equal {
			unequal++
		}
		err := error(nil)
		if out.human() {
			id, verdict, detail := replayLine(report)
			err = out.line("%s  %s: %s", text.Cell(id), out.colours().Status(verdict, verdict),
				text.Plain(text.OneLine(detail)))
		} else {
			err = out.value(report)
		}
		if err != nil {
			return exitWith(ExitFailed, err)
		}
	}
	if unequal > 0 {
		return exitWith(ExitFailed, errors.New(text.Plural(unequal, "call")+" replayed with another outcome"))
	}
	return nil
}

// replayLine formats a report as a verdict and a detail.
func replayLine(r operator.ReplayReport) (id, verdict, detail string) {
	switch {
	case !r.Replayable:
		return r.CallID, "not replayable", r.Reason
	case r.Equal:
		return r.CallID, "equal", r.Replayed
	case r.Reason != "":
		return r.CallID, "differs", r.Reason
	}
	return r.CallID, "differs", fmt.Sprintf("was %s, now %s", r.Recorded, r.Replayed)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/runtime"
)

func replayCommand(sh shell) *cobra.Command {
	var whole bool
	c := &cobra.Command{
		Use:   "replay CALL_ID...",
		Short: "Run recorded calls again and compare",
		Long: `Run the programs of ended calls again on the same input and on the effects that were recorded with them:
time, chance, fetches, nested calls. Nothing real happens. Each line says whether the second run ended in
the same bytes.

Exit status: 0 when all are equal, 1 when one differs or cannot be replayed, 2 for a wrong command line, 3
when no daemon answers or it does not know a call.`,
		Example: "  recurgentd replay call_06gzqwq081srb0e6zx42fm96t4",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := loadOptions(clientScope, cmd.Flags(), sh.env)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return replayCalls(ctx, sh, newClient(o), args, whole)
		},
	}
	c.Flags().BoolVar(&whole, "json", false, "print reports as JSON lines")
	addFlags(clientScope, c.Flags())
	return c
}

func replayCalls(ctx context.Context, sh shell, c *client, ids []string, whole bool) error {
	unequal := 0
	for _, id := range ids {
		var report runtime.ReplayReport
		if err := c.json(ctx, "POST", "/v1/calls/"+url.PathEscape(id)+"/replay", nil, &report); err != nil {
			return exitWith(exitUnreachable, err)
		}
		if !report.Equal {
			unequal++
		}
		line := replayLine(report)
		if whole {
			raw, err := json.Marshal(report)
			if err != nil {
				return exitWith(exitFailed, err)
			}
			line = string(raw)
		}
		fmt.Fprintln(sh.stdout, line)
	}
	if unequal > 0 {
		return exitWith(exitFailed, errors.New(plural(unequal, "call")+" did not replay equal"))
	}
	return nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func replayLine(r runtime.ReplayReport) string {
	switch {
	case !r.Replayable:
		return fmt.Sprintf("%s  not replayable: %s", r.CallID, r.Reason)
	case r.Equal:
		return fmt.Sprintf("%s  equal: %s", r.CallID, r.Replayed)
	case r.Reason != "":
		return fmt.Sprintf("%s  differs: %s", r.CallID, r.Reason)
	}
	return fmt.Sprintf("%s  differs: was %s, now %s", r.CallID, r.Recorded, r.Replayed)
}

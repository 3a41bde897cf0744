package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/cli/watch"
	"github.com/recurgentd/recurgentd/internal/client"
)

func watchCommand(sh Shell) *cobra.Command {
	var want watch.Filter
	var last int
	var plain bool
	var out *output
	c := &cobra.Command{
		Use:        "watch",
		SuggestFor: []string{"calls", "log", "logs", "tail"},
		Short:      "Watch calls as they end, on a screen or as lines",
		Long: `Watch the calls of a daemon. On a terminal, a screen shows running and ended calls, each with its nested calls
below it, and has filters. Elsewhere, with --plain or with --output json or yaml, it prints one call per line,
oldest first, as they are committed: children before their parents. If the daemon goes away, watch waits for it
and misses no call.

Keys of the screen: q ends, / changes the filter (role=calculator status=error), Esc takes it away, t shows a
list instead of trees, the arrows, PgUp, PgDn and Home select a call, End follows new ones. Of the selected call,
w says that its answer is wrong (it asks what is right, and for a note), r that it is right, u takes that back.
Doubted programs and the corrections under way are shown beside their calls.

Exit status: 0 after q, Ctrl-C or SIGTERM, 2 for a wrong command line, 3 when no daemon answers or it
refuses the request.`,
		Example: `  recurgentd watch
  recurgentd watch --role calculator --status error
  recurgentd watch --output json | jq -r 'select(.weak_success) | .call_id'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := want.Validate(); err != nil {
				return exitWith(ExitUsage, err)
			}
			if last < 0 || last > 500 {
				return exitWith(ExitUsage, errors.New("--last must be 0 to 500"))
			}
			return sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				f := &watch.Tail{Client: c, Want: want, Last: last}
				if _, terminal := sh.terminal(sh.Stdout); terminal && !plain && out.human() {
					return watchScreen(ctx, sh, f)
				}
				return watchLines(ctx, f, out)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&want.Role, "role", "", "only calls of this role")
	flags.StringVar(&want.Method, "method", "", "only calls of this method")
	flags.StringVar(&want.Status, "status", "", "only calls with this status: ok, error, or running on a screen")
	flags.StringVar(&want.Trace, "trace", "", "only calls of the trace whose id begins so")
	flags.StringVar(&want.Session, "session", "", "only calls of the session whose id begins so")
	flags.IntVar(&last, "last", 20, "begin with so many of the newest ended calls")
	flags.BoolVar(&plain, "plain", false, "print lines on a terminal, too")
	out = addOutput(c, sh)
	addFlags(ClientScope, flags)
	return c
}

func watchScreen(ctx context.Context, sh Shell, f *watch.Tail) error {
	at := watch.Terminal{Out: sh.Stdout, Colours: sh.colours(sh.Stdout)}
	if keys, ok := sh.terminal(sh.Stdin); ok {
		at.Keys = keys
	}
	daemon, terminal := watch.Screen(ctx, at, f)
	if daemon != nil {
		return exitWith(ExitUnreachable, daemon)
	}
	return exitWith(ExitFailed, terminal)
}

// watchLines prints one call per line, unbuffered so that a pipe sees each at once.
func watchLines(ctx context.Context, f *watch.Tail, out *output) error {
	colours := out.colours()
	away := false // report a loss once, not at each attempt
	f.State = func(gone error) {
		if gone != nil && !away {
			fmt.Fprintf(out.sh.Stderr, "recurgentd: lost the daemon, connecting again: %s\n",
				text.Clean(gone.Error(), 200))
		} else if gone == nil && away {
			fmt.Fprintln(out.sh.Stderr, "recurgentd: connected again")
		}
		away = gone != nil
	}
	f.Each = func(raw json.RawMessage, e *agent.LogEntry) error {
		w := watch.CallFrom(e)
		switch {
		case !f.Want.Matches(&w):
			return nil
		case !out.human():
			return out.document(raw)
		}
		return out.line("%s", watch.Line(colours, text.Clean(e.Timestamp, 32), &w))
	}
	return exitWith(ExitUnreachable, f.Run(ctx))
}

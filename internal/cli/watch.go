package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
)

func watchCommand(sh Shell) *cobra.Command {
	var want filter
	var last int
	var plain bool
	var out *output
	c := &cobra.Command{
		Use:   "watch",
		Short: "Watch calls as they end, on a screen or as lines",
		Long: `Watch the calls of a daemon. On a terminal it is a screen: calls under way and ended ones, what they delegated
below them, filters. Elsewhere, with --plain or with --output json or yaml, it is one call a line, oldest
first, as they are committed: children before their parents. A daemon that goes away is waited for, and
nothing is lost meanwhile.

Keys of the screen: q ends, / changes the filter (role=calculator status=error), Esc takes it away, t shows a
list instead of trees, the arrows, PgUp, PgDn, Home and End move.

Exit status: 0 after q, Ctrl-C or SIGTERM, 2 for a wrong command line, 3 when no daemon answers or it
refuses the request.`,
		Example: `  recurgentd watch
  recurgentd watch --role calculator --status error
  recurgentd watch --output json | jq -r 'select(.weak_success) | .call_id'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := loadOptions(ClientScope, cmd.Flags(), sh.Env)
			if err == nil {
				err = want.validate()
			}
			if err == nil && (last < 0 || last > 500) {
				err = errors.New("--last must be 0 to 500")
			}
			if err != nil {
				return exitWith(ExitUsage, err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			f := &tail{c: newClient(o), want: want, last: last}
			if f.screenful(sh, out, plain) {
				return watchScreen(ctx, sh, f)
			}
			return watchLines(ctx, f, out)
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

func (f *tail) screenful(sh Shell, out *output, plain bool) bool {
	_, terminal := sh.terminal(sh.Stdout)
	return terminal && !plain && out.human()
}

// watchLines prints one call a line. Each is written at once, so that a pipe sees it.
func watchLines(ctx context.Context, f *tail, out *output) error {
	colours := out.colours()
	away := false // say a loss once, not at each try
	f.state = func(gone error) {
		if gone != nil && !away {
			fmt.Fprintf(out.sh.Stderr, "recurgentd: lost the daemon, connecting again: %s\n", clean(gone.Error(), 200))
		} else if gone == nil && away {
			fmt.Fprintln(out.sh.Stderr, "recurgentd: connected again")
		}
		away = gone != nil
	}
	f.each = func(raw json.RawMessage, e *agent.LogEntry) error {
		w := watchedFrom(e)
		switch {
		case !f.want.matches(&w):
			return nil
		case !out.human():
			return out.document(raw)
		}
		return out.line("%s", watchLine(colours, clean(e.Timestamp, 32), &w))
	}
	return ending(ctx, f.run(ctx))
}

// watchLine is a call on a line: when, how it ended, how long it took, where its program came from, its id, and what it was.
func watchLine(colours palette, at string, w *watched) string {
	parts := []string{at, colours.status(w.Status, pad(w.Status, 5)), fmt.Sprintf("%9s", w.duration()), pad(w.Source, 9), clean(w.ID, 40), strings.Repeat("  ", w.Depth) + w.Text}
	if w.Detail != "" {
		parts = append(parts, "-> "+w.Detail)
	}
	return strings.Join(parts, "  ")
}

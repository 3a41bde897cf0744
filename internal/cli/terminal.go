package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

// withClient runs a client command: with the daemon that its flags name, until it is done or a signal comes.
func (sh Shell) withClient(cmd *cobra.Command, run func(context.Context, *client.Client) error) error {
	o, err := loadOptions(ClientScope, cmd.Flags(), sh.Env)
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, client.New(o.URL, o.Token))
}

// terminal returns the file behind w where it is a terminal that obeys escape sequences. An unset TERM counts as one that
// does not: nothing is known of it.
func (sh Shell) terminal(w any) (*os.File, bool) {
	f, ok := w.(*os.File)
	if kind, _ := sh.Env("TERM"); !ok || kind == "" || kind == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// colours decides, for every command, whether text for w is coloured: on terminals only, and never with NO_COLOR set to
// anything (https://no-color.org).
func (sh Shell) colours(w io.Writer) text.Palette {
	if off, _ := sh.Env("NO_COLOR"); off != "" {
		return false
	}
	_, ok := sh.terminal(w)
	return text.Palette(ok)
}

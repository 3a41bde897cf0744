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

// withClient runs a client command with the daemon selected by its flags. Its context ends on SIGINT and SIGTERM.
func (sh Shell) withClient(cmd *cobra.Command, run func(context.Context, *client.Client) error) error {
	o, err := loadOptions(ClientScope, cmd.Flags(), sh.Env)
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := client.New(o.URL, o.Token, o.roots).In(o.Namespace)
	return inCommands(cmd, c, run(ctx, c))
}

// terminal returns the file behind w if it is a terminal that supports escape sequences. A terminal with TERM unset or
// "dumb" does not count.
func (sh Shell) terminal(w any) (*os.File, bool) {
	f, ok := w.(*os.File)
	if kind, _ := sh.Env("TERM"); !ok || kind == "" || kind == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// colours decides whether text for w is coloured: only on terminals, and never if NO_COLOR is set
// (https://no-color.org).
func (sh Shell) colours(w io.Writer) text.Palette {
	if off, _ := sh.Env("NO_COLOR"); off != "" {
		return false
	}
	_, ok := sh.terminal(w)
	return text.Palette(ok)
}

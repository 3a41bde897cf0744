// Package cli implements the command line of recurgentd: all commands, their output, and the configuration of the
// daemon. Only this package reads flags and environment variables.
//
// It keeps no state and decides nothing about calls; that is up to internal/runtime. A diff of two programs compares at
// most 2,000 lines of each.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// Exit codes.
const (
	ExitFailed      = 1 // the daemon could not start or stop cleanly; the call ended in an error outcome
	ExitUsage       = 2 // the command line or the configuration is wrong
	ExitUnreachable = 3 // no daemon answers, or it refuses the request
)

// Sections of the help texts about exit codes.
const (
	exitsOfClients = `Exit status: 0 when it was done, 2 for a wrong command line, 3 when no daemon answers or it refuses
the request.`
	exitsOfAll = "Exit status: 0 when it was done, 1 when it failed, 2 for a wrong command line."
)

// An exitError is an error with its exit code.
type exitError struct {
	Code int
	Err  error // nil if the failure was already reported
}

func (e *exitError) Error() string { return fmt.Sprint(e.Err) }

func (e *exitError) Unwrap() error { return e.Err }

// exitWith adds an exit code to an error. nil stays nil.
func exitWith(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// A Shell provides what commands use of their process. Tests replace it.
type Shell struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    func(name string) (value string, set bool)
	// Clock is used for records, windows and maintenance; nil means the machine's clock.
	Clock func() time.Time
	// CompilerDir is app.Options.CompilerDir. Like GoCache, it is set by tests.
	CompilerDir string
	GoCache     string // app.Options.GoCache

	StopTime time.Duration // limit of a clean stop, set by tests; 0 means app.StopTime
}

// System returns the shell of this process.
func System() Shell {
	return Shell{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv}
}

// Main runs the command line and returns the exit code. It reports an error in one line on stderr.
func Main(sh Shell, args []string) int {
	root := Command(sh)
	args = shieldNumbers(args)
	root.SetArgs(args)
	command, err := unknown(root, args)
	if err == nil {
		command, err = root.ExecuteC()
	}
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) { // cobra's own errors concern the command line
		exit = &exitError{ExitUsage, fmt.Errorf("%w; see %s --help", inWords(command, err), command.CommandPath())}
	}
	if exit.Err != nil {
		fmt.Fprintf(sh.Stderr, "recurgentd: %s\n", text.Plain(text.OneLine(text.JSON(exit.Err.Error()))))
	}
	return exit.Code
}

// inWords replaces cobra's error about the number of arguments by the usage of the command, and adds what is similar to
// an unknown flag. Other errors stay.
func inWords(c *cobra.Command, err error) error {
	said := err.Error()
	if name, is := strings.CutPrefix(said, "unknown flag: --"); is {
		flags := &cobra.Command{SuggestionsMinimumDistance: 2}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			flags.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
		})
		return errors.New(said + meant(flags, "--"+name))
	}
	if strings.HasPrefix(said, "unknown command ") && !c.HasSubCommands() { // by cobra.NoArgs
		return fmt.Errorf("%s takes no arguments, got %s", c.CommandPath(),
			strings.TrimSuffix(strings.TrimPrefix(said, "unknown command "), fmt.Sprintf(" for %q", c.CommandPath())))
	}
	if !strings.HasPrefix(said, "accepts ") && !strings.HasPrefix(said, "requires at least ") {
		return err
	}
	write := "write " + strings.TrimSuffix(c.UseLine(), " [flags]")
	if example, _, _ := strings.Cut(strings.TrimSpace(c.Example), "\n"); example != "" {
		write += ", such as: " + example
	}
	return errors.New(write)
}

// unknown returns an error for an unknown command, also in a group or after help, where cobra would print the help and
// succeed.
func unknown(root *cobra.Command, args []string) (*cobra.Command, error) {
	if len(args) > 0 && args[0] == "help" {
		args = args[1:]
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "__complete") { // cobra adds it when it runs
		return root, nil
	}
	c, rest, err := root.Find(args)
	if err != nil {
		c = root
	}
	if (err == nil && (!c.HasParent() || c.Runnable())) || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return c, nil // cobra handles the rest
	}
	return c, fmt.Errorf("unknown command %q for %q%s", rest[0], c.CommandPath(), meant(c, rest[0]))
}

// meant asks whether one of the subcommands that are similar to the word was meant. It returns "" if there are none.
func meant(c *cobra.Command, word string) string {
	c.SuggestionsMinimumDistance = 2
	if similar := c.SuggestionsFor(word); len(similar) > 0 {
		return "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return ""
}

// Command returns the root command with all subcommands.
func Command(sh Shell) *cobra.Command {
	root := &cobra.Command{
		Use:   "recurgentd",
		Short: "Answer calls to methods that nobody wrote",
		Long: `recurgentd answers calls to methods that nobody wrote: a model writes the program on the
first call. From then on the program answers, confined, usually in under a millisecond.

Commands that print data take --output table, json or yaml. Colours are for terminals, and off where NO_COLOR is
set. Release archives hold every command as cli.md; docs/configuration.md has every setting.

Exit status: 0 when it was done, 1 when it failed or a call ended in an error outcome, 2 for a wrong command
line or setting, 3 when no daemon answers or it refuses the request.`,
		Example: `  recurgentd demo                          see it work, offline
  recurgentd serve                         start the daemon
  recurgentd call calculator add 2 3       make one call
  recurgentd wrong CALL_ID --expected 5    say that an answer is wrong
  recurgentd watch                         see what is going on
  recurgentd mcp                           serve the methods to an agent
  recurgentd doctor                        see what is missing`,
		SilenceErrors: true, SilenceUsage: true, Version: app.ReadBuild().String(),
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(sh.Stdin)
	root.SetOut(sh.Stdout)
	root.SetErr(sh.Stderr)
	root.AddCommand(serveCommand(sh), callCommand(sh), rightCommand(sh), wrongCommand(sh), verdictCommand(sh),
		testCommand(sh), predictCommand(sh),
		demoCommand(sh), versionCommand(sh), healthcheckCommand(sh), toolsCommand(sh), connectionsCommand(sh),
		namespacesCommand(sh), policyCommand(sh), filesCommand(sh), historyCommand(sh), inboxCommand(sh),
		recommendCommand(sh), reportCommand(sh), usageCommand(sh), storeCommand(sh), replicasCommand(sh),
		replayCommand(sh), whyCommand(sh), mcpCommand(sh), doctorCommand(sh), watchCommand(sh), manCommand(sh),
		referenceCommand(sh))
	completeHelp(root)
	return root
}

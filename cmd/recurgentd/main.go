// Recurgentd is a daemon in which a call names a role and a method that nobody has written; a model writes the
// program once, and from then on the program answers. The one binary is the daemon (serve), the confined process in
// which programs run (runner), and the client commands.
//
// This package reads flags and environment, wires the parts together and speaks to people. It decides nothing about
// calls: that is internal/runtime.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Exit codes.
const (
	exitFailed      = 1 // the daemon could not start or stop cleanly; the call ended in an error outcome
	exitUsage       = 2 // the command line or the configuration is wrong
	exitUnreachable = 3 // no daemon answers, or it refuses the request
)

// What the help texts say of them.
const (
	exitsOfClients = `Exit status: 0 when it was done, 2 for a wrong command line, 3 when no daemon answers or it refuses
the request.`
	exitsOfAll = "Exit status: 0 when it was done, 1 when it failed, 2 for a wrong command line."
)

// An exitError is an error with the exit code it stands for.
type exitError struct {
	Code int
	Err  error // nil when everything has been said already
}

func (e *exitError) Error() string { return fmt.Sprint(e.Err) }
func (e *exitError) Unwrap() error { return e.Err }

func exitWith(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// A shell is what a command has of its surroundings.
type shell struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	env    func(string) (string, bool)
	clock  func() time.Time // of records, windows and maintenance; nil is the machine's
}

func main() {
	// The runner comes first and alone: it must be up in milliseconds and needs nothing of the rest.
	if len(os.Args) > 1 && os.Args[1] == "runner" {
		os.Exit(sandbox.RunnerMain())
	}
	os.Exit(run(shell{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}, os.Args[1:]))
}

// run executes the command line and returns the exit code. What goes wrong is told in one line on stderr.
func run(sh shell, args []string) int {
	root := rootCommand(sh)
	root.SetArgs(shieldNumbers(args))
	command, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) { // cobra's own errors are about the command line
		exit = &exitError{exitUsage, fmt.Errorf("%w; see %s --help", err, command.CommandPath())}
	}
	if exit.Err != nil {
		fmt.Fprintf(sh.stderr, "recurgentd: %s\n", plainText(oneLine(exit.Err.Error())))
	}
	return exit.Code
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func rootCommand(sh shell) *cobra.Command {
	root := &cobra.Command{
		Use:   "recurgentd",
		Short: "Answer calls to methods that nobody wrote",
		Long: `recurgentd answers calls to methods that nobody wrote: a model writes the program on the
first call, and from then on the program answers, confined, in under a millisecond.

Commands that print data take --output table, json or yaml. Colours are for terminals, and off where NO_COLOR is
set. docs/cli.md has every command, docs/configuration.md every setting.

Exit status: 0 when it was done, 1 when it failed or a call ended in an error outcome, 2 for a wrong command
line or setting, 3 when no daemon answers or it refuses the request.`,
		Example: `  recurgentd demo                          see it work, offline
  recurgentd serve                         start the daemon
  recurgentd call calculator add 2 3       make one call
  recurgentd watch                         see what is going on
  recurgentd doctor                        see what is missing`,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(sh.stdin)
	root.SetOut(sh.stdout)
	root.SetErr(sh.stderr)
	root.AddCommand(serveCommand(sh), runnerCommand(), callCommand(sh), demoCommand(sh), versionCommand(sh), healthcheckCommand(sh), toolsCommand(sh), policyCommand(sh), historyCommand(sh), recommendCommand(sh), storeCommand(sh), replayCommand(sh), doctorCommand(sh), watchCommand(sh), manCommand(sh))
	completeHelp(root)
	return root
}

// runnerCommand stands in the tree so that help and completion know the name; main runs it before cobra is built.
func runnerCommand() *cobra.Command {
	return &cobra.Command{Use: "runner", Hidden: true, Short: "Run programs (started by the daemon)", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return &exitError{Code: sandbox.RunnerMain()} }}
}

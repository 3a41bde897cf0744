package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// referenceCommand prints the page cli.md of release archives: every command, with the text of --help.
func referenceCommand(sh Shell) *cobra.Command {
	return &cobra.Command{Use: "reference", Hidden: true, Short: "Print every command as a Markdown page",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(sh.Stdout, reference(cmd.Root()))
			return exitWith(ExitFailed, err)
		}}
}

const aboutCommands = "# The command line\n" + `
One binary is the daemon and its clients. Each section has the text of --help. The completion of a shell comes from
recurgentd completion (bash, zsh, fish, powershell).

**Exit codes** are the same everywhere: 0 done, 1 failed or the call ended in an error outcome, 2 a wrong command line or setting,
3 no daemon answers or it refuses the request. An error is one line on stderr that says what to do.

**Data** goes to stdout: --output table for people, --output json (short: --json) with one document a line, --output yaml with the
same documents under the same names. Characters that a terminal could obey, or that nobody can see, are escaped or replaced
in all three.

**Colours** and lines that change are for terminals only: not in a pipe, not with TERM=dumb. NO_COLOR with any value turns colours off.

**Which daemon**: --url or RECURGENT_URL, with the token in RECURGENT_TOKEN or a file.
`

// reference returns the page. It contains no date, so the same commit gives the same bytes.
func reference(root *cobra.Command) string {
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	b.WriteString(aboutCommands)
	var section func(c *cobra.Command)
	section = func(c *cobra.Command) {
		path := c.CommandPath()
		heading := strings.Repeat("#", 2+min(1, strings.Count(path, " ")/2))
		fmt.Fprintf(&b, "\n%s %s\n\n%s.\n\n```text\n%s\n```\n\n```text\n%s\n```\n", heading, path, c.Short,
			strings.TrimSpace(c.Long), dedent(c.Example))
		if c.Runnable() {
			fmt.Fprintf(&b, "\n```text\n%s\n%s```\n", c.UseLine(), c.LocalFlags().FlagUsagesWrapped(120))
		}
		if c.Name() == "completion" { // the subcommands for shells differ only in their names
			return
		}
		for _, sub := range shownCommands(c) {
			section(sub)
		}
	}
	section(root)
	return b.String()
}

// dedent removes the indentation of example lines.
func dedent(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

package cli

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls f for the command and all below it.
func everyCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		everyCommand(sub, f)
	}
}

func commandTree() *cobra.Command {
	return Command(Shell{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Env: noEnvironment})
}

// Every help text renders: a summary of one line, examples that the command line takes, what the exit codes are, and a word
// for each flag.
func TestEveryHelpText(t *testing.T) {
	everyCommand(commandTree(), func(c *cobra.Command) {
		name := c.CommandPath()
		if c.Short == "" || strings.ContainsAny(c.Short, "\n") || strings.HasSuffix(c.Short, ".") || len(c.Short) > 100 {
			t.Errorf("%s: the summary is no line without a full stop: %q", name, c.Short)
		}
		if c.Hidden {
			return // for images and archives, not for people
		}
		var b bytes.Buffer
		c.SetOut(&b)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"Exit status: 0 ", "Examples:\n", "Usage:\n  recurgentd", c.Example} {
			if !strings.Contains(b.String(), part) || part == "" {
				t.Errorf("%s: its help does not have %q:\n%s", name, part, b.String())
			}
		}
		for line := range strings.SplitSeq(c.Example, "\n") {
			checkExample(t, c, strings.TrimSpace(line))
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s: no word on it", name, f.Name)
			}
		})
	})
}

// checkExample holds an example to the command line: it is of this command or of one below it, and its flags exist.
func checkExample(t *testing.T, c *cobra.Command, line string) {
	t.Helper()
	_, rest, ok := strings.Cut(line, "recurgentd")
	if !ok {
		t.Errorf("%s: %q is no example", c.CommandPath(), line)
		return
	}
	rest, _, _ = strings.Cut(rest, "|")
	rest, _, _ = strings.Cut(rest, " > ")
	rest, _, _ = strings.Cut(rest, "   ") // a remark
	words := strings.Fields(rest)
	target, args, err := commandTree().Find(words)
	if err != nil || !strings.HasPrefix(target.CommandPath(), c.CommandPath()) {
		t.Errorf("%s: %q is an example of %s (%v)", c.CommandPath(), line, target.CommandPath(), err)
		return
	}
	for _, a := range args {
		if name, isFlag := strings.CutPrefix(a, "--"); isFlag {
			name, _, _ = strings.Cut(name, "=")
			if target.Flags().Lookup(name) == nil {
				t.Errorf("%s: %q: there is no --%s", c.CommandPath(), line, name)
			}
		}
	}
}

const commandLinePath = "../../docs/cli.md"

// docs/cli.md is written from the commands themselves: make docs.
func TestCommandLineDocument(t *testing.T) {
	want := commandLineDocument(t)
	if *update {
		if err := os.WriteFile(commandLinePath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(commandLinePath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/cli.md is stale; write it with: make docs")
	}
}

func commandLineDocument(t *testing.T) []byte {
	t.Helper()
	screen, err := os.ReadFile("../../test/e2e/commands/testdata/watch-tree.screen")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString(`# The command line

<!-- Written by make docs from the commands in internal/cli. Do not edit. -->

One binary is the daemon and its clients. ` + "`recurgentd help COMMAND`" + ` says what stands here, ` + "`recurgentd completion bash`" + ` (zsh, fish) writes
the completion of a shell, and release archives hold manual pages.

**Exit codes** are the same everywhere: 0 done, 1 failed or the call ended in an error outcome, 2 a wrong command line or setting,
3 no daemon answers or it refuses the request. What goes wrong is one line on stderr that says what to do.

**Data** goes to stdout, in one of three forms: ` + "`--output table`" + ` for people, ` + "`--output json`" + ` (short: ` + "`--json`" + `) with one document a line,
` + "`--output yaml`" + ` with the same documents under the same names. Characters that a terminal could obey, or that nobody can see, are
escaped or replaced in all three.

**Colours** and lines that change are for terminals only: not in a pipe, not with ` + "`TERM=dumb`" + `. ` + "`NO_COLOR`" + ` with any value turns colours off.

**Which daemon**: ` + "`--url` or `RECURGENT_URL`" + `, with the token in ` + "`RECURGENT_TOKEN`" + ` or a file; [configuration.md](configuration.md) has every setting.

The screen of ` + "`recurgentd watch`" + `, as a test draws it:

` + "```text\n" + regexp.MustCompile(`\n{3,}`).ReplaceAllString(string(screen), "\n\n") + "```\n")
	everyCommand(commandTree(), func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Parent() != nil && c.Parent().Name() == "completion" {
			return
		}
		depth := strings.Repeat("#", 2+min(1, strings.Count(c.CommandPath(), " ")/2))
		fmt.Fprintf(&b, "\n%s %s\n\n%s.\n\n```text\n%s\n```\n\n```text\n%s\n```\n", depth, c.CommandPath(), c.Short, strings.TrimSpace(c.Long), strings.TrimRight(dedent(c.Example), "\n"))
		if c.Runnable() {
			flags := c.LocalFlags().FlagUsagesWrapped(120)
			fmt.Fprintf(&b, "\n```text\n%s\n%s```\n", c.UseLine(), flags)
		}
	})
	return b.Bytes()
}

func dedent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

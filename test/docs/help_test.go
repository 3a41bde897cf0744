package docs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli"
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
	return cli.Command(cli.Shell{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
		Env: func(string) (string, bool) { return "", false }})
}

// Every help text renders: a summary of one line, examples that the command line takes, what the exit codes are, and a
// word for each flag.
func TestEveryHelpText(t *testing.T) {
	t.Parallel()
	everyCommand(commandTree(), func(c *cobra.Command) {
		name := c.CommandPath()
		if c.Short == "" || strings.ContainsAny(c.Short, "\n") || strings.HasSuffix(c.Short, ".") ||
			len(c.Short) > 100 {
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

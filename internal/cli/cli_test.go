package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A command with too few or too many arguments prints its usage.
func TestNumbersOfArguments(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"why": "recurgentd: write recurgentd why CALL_ID, such as: recurgentd why call_", "tools show a b c": "recurgentd: write recurgentd tools show ", "store copy x": "recurgentd: write recurgentd store copy FROM TO"} {
		var stderr bytes.Buffer
		sh := Shell{Stdin: strings.NewReader(""), Stdout: &stderr, Stderr: &stderr,
			Env: func(string) (string, bool) { return "", false }}
		if code := Main(sh, strings.Fields(line)); code != ExitUsage || !strings.HasPrefix(stderr.String(), want) ||
			!strings.Contains(stderr.String(), "--help") {
			t.Errorf("%s: %d, %q", line, code, stderr.String())
		}
	}
}

// An unknown command is a command line error in every group, as at the top level, so that a script does not take help
// for success.
func TestUnknownCommands(t *testing.T) {
	t.Parallel()
	var groups [][]string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasSubCommands() {
			groups = append(groups, strings.Fields(c.CommandPath())[1:])
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(Command(Shell{}))
	if len(groups) < 8 {
		t.Fatalf("the groups are %v", groups)
	}
	for _, group := range groups {
		var stdout, stderr bytes.Buffer
		sh := Shell{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
			Env: func(string) (string, bool) { return "", false }}
		if code := Main(sh, append(group, "nonsense",
			"more")); code != ExitUsage || stdout.Len() > 0 || !strings.Contains(stderr.String(),
			`unknown command "nonsense"`) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v nonsense: %d, %q, %q", group, code, stdout.String(), stderr.String())
		}
		stdout.Reset()
		if code := Main(sh, append(group, "--help")); code != 0 || stdout.Len() == 0 {
			t.Errorf("%v --help: %d, %q", group, code, stdout.String())
		}
	}
}

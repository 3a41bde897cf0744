package daemon

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// help and completion work as commands, for every shell.
func TestHelpAndCompletionCommands(t *testing.T) {
	t.Parallel()
	env := rig.Environment(t.TempDir())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"help"}, "Available Commands:"}, {[]string{"help", "tools", "rollback"}, "--generation"},
		{[]string{"help", "watch"}, "Keys of the screen"},
		{[]string{"completion", "--help"}, "recurgentd completion bash"},
		{[]string{"completion", "bash"}, "__start_recurgentd"}, {[]string{"completion", "zsh"}, "#compdef recurgentd"},
		{[]string{"completion", "fish"}, "complete -c recurgentd"},
		{[]string{"__complete", "history", "x", "--output", ""}, "yaml\n"}, {[]string{"__complete", "wat"}, "watch\t"},
		{[]string{"__complete", "watch", "--st"}, "--status"},
	} {
		out, errs, code := rig.Run(t, env, c.args...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%q: %d, want %q in\n%.600s%s", c.args, code, c.want, out, errs)
		}
	}
	// A wrong command line gets one line that says where to find help.
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"wach"}, "see recurgentd --help"}, {[]string{"tools", "quarantine", "only-a-role"},
			"see recurgentd tools quarantine --help"},
		{[]string{"store", "verify", "--data-dir", "/nowhere/at/all"}, "RECURGENT_DATA_DIR names another"},
		{[]string{"recommend", "--undo"}, "--apply or --dismiss"},
		{[]string{"doctor", "--runners", "0"}, "of 1 checks failed"},
	} {
		_, errs, code := rig.Run(t, env, c.args...)
		if code == 0 || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %d, %q, want a line with %q", c.args, code, errs, c.want)
		}
	}
}

package daemon

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func TestCallCommand(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "echo.echo": {rig.ProgEcho},
		"calculator.increment": {rig.ProgIncrement}, "calculator.fail": {rig.ProgFails}})
	d := rig.Start(t, m)
	out, errs, code := d.Client("call", "calculator", "add", "2", "-3")
	if out != "-1\n" || code != 0 {
		t.Errorf("add: got %q, %q, %d", out, errs, code)
	}
	id := regexp.MustCompile(`(?m)^session (\S+)$`).FindStringSubmatch(errs)
	if id == nil {
		t.Fatalf("the session is not printed: %q", errs)
	}
	for want := range 2 {
		out, errs, code = d.Client("call", "calculator", "increment", "--session", id[1])
		if out != string(rune('1'+want))+"\n" || !regexp.MustCompile(`^call call_\S+\n$`).MatchString(errs) ||
			code != 0 {
			t.Errorf("increment: got %q, %q, %d", out, errs, code)
		}
	}
	out, _, code = d.Client("call", "echo", "echo", "plain text", `{"a":[1]}`, "true", "--kwargs", "n=5", "--kwargs",
		"name=Ada=x", "--kwargs", `{"deep":{"x":null}}`, "--json")
	var r rig.Reply
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("--json: %v, %d: %q", err, code, out)
	}
	want := map[string]any{"args": []any{"plain text", map[string]any{"a": []any{1}}, true},
		"kwargs": map[string]any{"n": 5, "name": "Ada=x", "deep": map[string]any{"x": nil}}}
	if !rig.Equal(want, r.Outcome.Value) {
		t.Errorf("arguments: got %v, want %v", r.Outcome.Value, want)
	}
	out, errs, code = d.Client("call", "calculator", "fail")
	if out != "" || code != 1 || !strings.Contains(errs, "not_today: closed on Sundays") {
		t.Errorf("an error outcome: got %q, %q, %d", out, errs, code)
	}
	out, _, code = d.Client("call", "calculator", "fail", "--json")
	if code != 1 || json.Unmarshal([]byte(out), &r) != nil || r.Outcome.ErrorType != "not_today" {
		t.Errorf("an error outcome as JSON: got %q, %d", out, code)
	}
}

func TestClientCommandsEndWithTheRightCode(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{}))
	for _, c := range []struct {
		args []string
		code int
		want string // part of stderr
	}{
		{[]string{"call", "calculator"}, 2, "recurgentd call --help"},
		{[]string{"call"}, 2, "recurgentd call --help"},
		{[]string{"call", "a", "b", "--kwargs", "x"}, 2, "NAME=VALUE"},
		{[]string{"call", "a", "b", "--kwargs", "{"}, 2, "JSON object"},
		{[]string{"call", "a", "b", "--no-such-flag"}, 2, "--no-such-flag"},
		{[]string{"call", "a", "b", "--url", "nonsense"}, 2, "url"},
		{[]string{"call", "a/b", "c"}, 3, "refused"},
		{[]string{"call", "a", "b", "--session", "none"}, 3, "404"},
		{[]string{"call", "a", "b", "--url", "http://127.0.0.1:1"}, 3, "cannot reach the daemon"},
		{[]string{"healthcheck"}, 0, ""},
		{[]string{"healthcheck", "--url", "http://127.0.0.1:1"}, 3, "cannot reach"},
		{[]string{"version"}, 0, ""},
		{[]string{"no-such-command"}, 2, "no-such-command"},
	} {
		out, errs, code := d.Client(c.args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: got %d, %q, want %d and %q", c.args, code, errs, c.code, c.want)
		}
		if code != 0 && (out != "" || strings.Count(strings.TrimSpace(errs), "\n") != 0 ||
			!strings.HasPrefix(errs, "recurgentd: ")) {
			t.Errorf("%q: want one line on stderr, got %q and %q", c.args, errs, out)
		}
	}
}

func TestVersionAndCompletion(t *testing.T) {
	t.Parallel()
	out, _, code := rig.Run(t, rig.Environment(t.TempDir()), "version")
	if code != 0 || !strings.HasPrefix(out, "recurgentd ") || !strings.Contains(out, "go1.") {
		t.Errorf("version: %q, %d", out, code)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, _, code := rig.Run(t, rig.Environment(t.TempDir()), "completion",
			shell); code != 0 || !strings.Contains(out, "recurgentd") {
			t.Errorf("completion %s: code %d", shell, code)
		}
	}
}

// Every command and flag says what it is for, and hidden ones stay hidden.
func TestHelp(t *testing.T) {
	t.Parallel()
	out, _, code := rig.Run(t, rig.Environment(t.TempDir()), "--help")
	if code != 0 || strings.Contains(out, "runner ") || strings.Contains(out, "healthcheck") {
		t.Errorf("help: code %d\n%s", code, out)
	}
	for _, command := range []string{"serve", "call", "demo", "version", "completion"} {
		if !strings.Contains(out, "\n  "+command) {
			t.Errorf("help does not list %s:\n%s", command, out)
		}
	}
	out, _, _ = rig.Run(t, rig.Environment(t.TempDir()), "serve", "--help")
	for _, s := range cli.Settings() {
		if s.Scope == cli.ServeScope && !s.Secret && (!strings.Contains(out, "--"+s.Name) ||
			!strings.Contains(out, s.Env)) {
			t.Errorf("serve --help does not list %s", s.Name)
		}
	}
}

package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli"
)

func TestCallCommand(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}, "echo.echo": {progEcho}, "calculator.increment": {progIncrement}, "calculator.fail": {progFails}})
	d := newDaemon(t, m)
	out, errs, code := d.client("call", "calculator", "add", "2", "-3")
	if out != "-1\n" || code != 0 {
		t.Errorf("add: got %q, %q, %d", out, errs, code)
	}
	id := regexp.MustCompile(`(?m)^session (\S+)$`).FindStringSubmatch(errs)
	if id == nil {
		t.Fatalf("the session is not told: %q", errs)
	}
	for want := range 2 {
		out, errs, code = d.client("call", "calculator", "increment", "--session", id[1])
		if out != string(rune('1'+want))+"\n" || errs != "" || code != 0 {
			t.Errorf("increment: got %q, %q, %d", out, errs, code)
		}
	}
	out, _, code = d.client("call", "echo", "echo", "plain text", `{"a":[1]}`, "true", "--kwargs", "n=5", "--kwargs", "name=Ada=x", "--kwargs", `{"deep":{"x":null}}`, "--json")
	var r reply
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("--json: %v, %d: %q", err, code, out)
	}
	want := map[string]any{"args": []any{"plain text", map[string]any{"a": []any{1}}, true}, "kwargs": map[string]any{"n": 5, "name": "Ada=x", "deep": map[string]any{"x": nil}}}
	if !equal(want, r.Outcome.Value) {
		t.Errorf("arguments: got %v, want %v", r.Outcome.Value, want)
	}
	out, errs, code = d.client("call", "calculator", "fail")
	if out != "" || code != 1 || !strings.Contains(errs, "not_today: closed on Sundays") {
		t.Errorf("an error outcome: got %q, %q, %d", out, errs, code)
	}
	out, _, code = d.client("call", "calculator", "fail", "--json")
	if code != 1 || json.Unmarshal([]byte(out), &r) != nil || r.Outcome.ErrorType != "not_today" {
		t.Errorf("an error outcome as JSON: got %q, %d", out, code)
	}
}

func TestClientCommandsEndWithTheRightCode(t *testing.T) {
	d := newDaemon(t, newModel(t, script{}))
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
		out, errs, code := d.client(c.args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: got %d, %q, want %d and %q", c.args, code, errs, c.code, c.want)
		}
		if code != 0 && (out != "" || strings.Count(strings.TrimSpace(errs), "\n") != 0 || !strings.HasPrefix(errs, "recurgentd: ")) {
			t.Errorf("%q: want one line on stderr, got %q and %q", c.args, errs, out)
		}
	}
}

func TestVersionAndCompletion(t *testing.T) {
	out, _, code := runBinary(t, cleanEnvironment(t.TempDir()), "version")
	if code != 0 || !strings.HasPrefix(out, "recurgentd ") || !strings.Contains(out, "go1.") {
		t.Errorf("version: %q, %d", out, code)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, _, code := runBinary(t, cleanEnvironment(t.TempDir()), "completion", shell); code != 0 || !strings.Contains(out, "recurgentd") {
			t.Errorf("completion %s: code %d", shell, code)
		}
	}
}

// Every command and flag says what it is for, and hidden ones stay hidden.
func TestHelp(t *testing.T) {
	out, _, code := runBinary(t, cleanEnvironment(t.TempDir()), "--help")
	if code != 0 || strings.Contains(out, "runner ") || strings.Contains(out, "healthcheck") {
		t.Errorf("help: code %d\n%s", code, out)
	}
	for _, command := range []string{"serve", "call", "demo", "version", "completion"} {
		if !strings.Contains(out, "\n  "+command) {
			t.Errorf("help does not list %s:\n%s", command, out)
		}
	}
	out, _, _ = runBinary(t, cleanEnvironment(t.TempDir()), "serve", "--help")
	for _, s := range cli.Settings() {
		if s.Scope == cli.ServeScope && !s.Secret && (!strings.Contains(out, "--"+s.Name) || !strings.Contains(out, s.Env)) {
			t.Errorf("serve --help does not tell of %s", s.Name)
		}
	}
}

// The demo tells the whole story against a real daemon on a directory of its own.
func TestDemo(t *testing.T) {
	out, errs, code := runBinary(t, append(cleanEnvironment(t.TempDir()), "COLUMNS=100"), "demo")
	if code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, errs, out)
	}
	for _, part := range []string{"generated", "persisted", "repaired", "calculator.add(2, 3)", "= 5", "= 42", `{"x":6}`, "invoice.total", "calculator.multiply", `"AL"`, " serve ", " call calculator add 2 3"} {
		if !strings.Contains(out, part) {
			t.Errorf("the demo does not show %q:\n%s", part, out)
		}
	}
	comparePicture(t, out)
}

package daemon

import (
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// progText returns its argument.
var progText = rig.Program("\treturn call.Arg(0, \"x\"), nil")

// Text is printed as text: with --raw as it is, and without escapes that are for web pages in values, documents, tables
// and pages.
func TestTextIsPrintedAsText(t *testing.T) {
	t.Parallel()
	const plain = `a<b>&c "d"`
	d := rig.Start(t, rig.NewModel(t, rig.Script{"echo.say": {progText}}))
	out, errs, code := d.Client("call", "echo", "say", plain)
	if out != `"a<b>&c \"d\""`+"\n" || code != 0 {
		t.Errorf("the value: %q, %q, %d", out, errs, code)
	}
	id := regexp.MustCompile(`(?m)^call (\S+)$`).FindStringSubmatch(errs)[1]
	session := regexp.MustCompile(`(?m)^session (\S+)$`).FindStringSubmatch(errs)[1]
	if out, _, code := d.Client("call", "echo", "say", plain, "--raw", "--session",
		session); out != plain+"\n" || code != 0 {
		t.Errorf("raw: %q, %d", out, code)
	}
	if out, _, code := d.Client("call", "echo", "say", `{"a":"<"}`, "--raw"); out != `{"a":"<"}`+"\n" || code != 0 {
		t.Errorf("raw, and no text: %q, %d", out, code)
	}
	if _, errs, code := d.Client("call", "echo", "say", plain, "--raw",
		"--json"); code != 2 || !strings.Contains(errs, "raw") {
		t.Errorf("raw JSON: %q, %d", errs, code)
	}
	for _, args := range [][]string{{"call", "echo", "say", plain, "--json"},
		{"call", "echo", "say", `\u003c`, "--json"}, {"history", session}, {"history", session, "--json"}, {"why", id},
		{"why", id, "--json"},
		{"right", id}, {"tools", "examples", "list", "echo", "say"}, {"tools", "examples", "get", "echo", "say"},
		{"tools", "show", "echo", "say"}, {"tools", "try", "echo", "say", plain},
		{"tools", "decisions", "--json"}} {
		out, errs, _ := d.Client(args...)
		if regexp.MustCompile(`(?i)(^|[^\\])\\u00(3c|3e|26)`).MatchString(out + errs) {
			t.Errorf("%q: %s%s", args, out, errs)
		}
	}
	w := rig.OnTerminal(t, 60, 5, append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL, "NO_COLOR=1"), "call", "echo",
		"say", `{"a":{"b":1}}`, "--session", session)
	w.Shows(`    "b": 1`)
}

// Hints speak of commands, flags and variables.
func TestHintsAreCommands(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{}))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"why", "abc"}, "recurgentd tools decisions"},
		{[]string{"replay", "call_06gzqwq081srb0e6zx42fm96t4"}, "recurgentd tools decisions"},
		{[]string{"tools", "show", "nobody"}, "recurgentd tools list"},
		{[]string{"call", "a", "b", "--session", "none"}, "recurgentd call without --session"},
		{[]string{"tools", "undo", "aud_06gzqwq081srb0e6zx42fm96t6"}, "recurgentd tools audit"},
		{[]string{"tools", "list", "--url", d.URL + "/v1"}, "without /v1"},
		{[]string{"policy", "set", "fetches_per_cal=1"}, "recurgentd policy get lists them"},
	} {
		_, errs, code := d.Client(c.args...)
		if code != 3 || !strings.Contains(errs, c.want) || regexp.MustCompile(`GET |POST |the path`).MatchString(errs) {
			t.Errorf("%q: %d, %s", c.args, code, errs)
		}
	}
}

// A shell completes what the daemon knows, and nothing, quickly and without a word, where none answers.
func TestCompletion(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "cinema.say": {progText}}))
	d.Call(d.Session("calculator"), "add", 2, 3)
	d.Call(d.Session("cinema"), "say", "x")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"call", "c"}, "calculator\ncinema\n:4\n"},
		{[]string{"call", "ca"}, "calculator\n:4\n"},
		{[]string{"call", "calculator", ""}, "add\n:4\n"},
		{[]string{"call", "calculator", "add", ""}, ":4\n"},
		{[]string{"tools", "show", "cinema", "s"}, "say\n:4\n"},
		{[]string{"tools", "examples", "run", "calculator", ""}, "add\n:4\n"},
		{[]string{"inbox", "ci"}, "cinema\n:4\n"},
		{[]string{"policy", "set", "repair_e"}, "repair_enabled=\n:6\n"},
		{[]string{"policy", "get", "maintenance.i"}, "maintenance.interval_hours\n:4\n"},
		{[]string{"call", "--url", "http://127.0.0.1:1", "c"}, ":4\n"},
	} {
		args := append([]string{"__completeNoDesc"}, c.args...)
		if out, _, code := d.Client(args...); out != c.want || code != 0 {
			t.Errorf("%q: got %q, %d, want %q", args, out, code, c.want)
		}
	}
}

package daemon

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/cli"
	"github.com/recurgentd/recurgentd/internal/cli/clitest"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Every command that prints data has the three forms, with the same names in both machine forms; --json is the short
// one; another form is refused.
func TestOutputEverywhere(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	s := d.Session("calculator")
	id := d.Call(s, "add", 2, 3).CallID
	d.Call(s, "add", 2, 4)
	d.Call(s, "divide", 4, 2) // a program that never answered with a value would be forged again
	for i, c := range []struct {
		args []string
		name string // a member of what is printed
		code int
	}{
		{[]string{"call", "calculator", "add", "2", "3", "--session", s}, "call_id", 0},
		{[]string{"call", "calculator", "divide", "1", "0", "--session", s}, "outcome", 1},
		{[]string{"tools", "list"}, "data", 0}, {[]string{"tools", "list", "calculator"}, "data", 0},
		{[]string{"tools", "show", "calculator"}, "role", 0}, {[]string{"tools", "show", "calculator", "add"}, "code",
			0},
		{[]string{"tools", "lineage", "calculator", "add"}, "data", 0},
		{[]string{"tools", "scorecards", "calculator", "add"}, "scorecard", 0},
		{[]string{"tools", "decisions"}, "data", 0},
		{[]string{"tools", "stale"}, "data", 0}, {[]string{"tools", "pin", "calculator", "add"}, "pinned", 0},
		{[]string{"tools", "audit"}, "data", 0},
		{[]string{"tools", "archive", "calculator"}, "target", 0}, {[]string{"tools", "prune"}, "targets", 0},
		{[]string{"policy", "get"}, "degraded", 0}, {[]string{"policy", "get", "degraded"}, "min_failures", 0},
		{[]string{"policy", "set", "repair_enabled=true"}, "degraded", 0},
		{[]string{"history", s, "--last", "1"}, "seq", 0}, {[]string{"recommend"}, "data", 0},
		{[]string{"usage"}, "data", 0}, {[]string{"replicas"}, "data", 0},
		{[]string{"namespaces", "list"}, "data", 0}, {[]string{"namespaces", "create", "acme"}, "name", 0},
		{[]string{"namespaces", "rm", "acme"}, "holds", 0},
		{[]string{"replay", id}, "equal", 0}, {[]string{"version"}, "go", 0},
		{[]string{"doctor", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir()}, "", 0},
	} {
		docs := map[string]any{}
		forms := [][]string{{"--output", "json"}, {"-o", "yaml"}, {"--json"}, {"--output=table"}}
		if testing.Short() { // the ways of asking take turns
			forms = forms[i%2 : 2+i%2*2]
		}
		for _, form := range forms {
			out, errs, code := d.Client(append(append([]string{}, c.args...), form...)...)
			if code != c.code {
				t.Errorf("%v %v: exit code %d: %s", c.args, form, code, errs)
				continue
			}
			var v any
			switch form[len(form)-1] {
			case "json", "--json":
				if err := json.Unmarshal([]byte(out), &v); err != nil || strings.Count(out, "\n") != 1 {
					t.Errorf("%v: not one line of JSON (%v): %s", c.args, err, out)
				}
				docs["json"] = v
			case "yaml":
				if err := yaml.Unmarshal([]byte(out), &v); err != nil {
					t.Errorf("%v: not YAML (%v): %s", c.args, err, out)
				}
				docs["yaml"] = v
			default:
				if out == "" && c.code == 0 || strings.HasPrefix(out, "{\"") {
					t.Errorf("%v: no table: %q", c.args, out)
				}
			}
			if strings.Contains(out, "\x1b") {
				t.Errorf("%v %v: an escape byte in a pipe: %q", c.args, form, out)
			}
		}
		for form, v := range docs {
			if m, ok := v.(map[string]any); c.name != "" && (!ok || m[c.name] == nil) {
				t.Errorf("%v as %s has no %s: %v", c.args, form, c.name, v)
			}
		}
		if a, b := shape(docs["json"]), shape(docs["yaml"]); a != b {
			t.Errorf("%v: JSON has\n%s\nYAML has\n%s", c.args, a, b)
		}
		if testing.Short() && i%4 != 0 {
			continue
		}
		if _, errs, code := d.Client(append(append([]string{}, c.args...), "--output",
			"xml")...); code != cli.ExitUsage || !strings.Contains(errs, "table, json, yaml") {
			t.Errorf("%v --output xml: %d, %s", c.args, code, errs)
		}
	}
	d.Stop(syscall.SIGTERM)
	for _, verb := range []string{"verify", "repair"} {
		out, errs, code := d.Client("store", verb, "--output", "yaml")
		var v map[string]any
		if err := yaml.Unmarshal([]byte(out), &v); err != nil || code != 0 || v["sessions"] == nil ||
			v["problems"] == nil {
			t.Errorf("store %s: %d %v %s%s", verb, code, err, out, errs)
		}
	}
}

// shape is the names of a document, without the values.
func shape(v any) string {
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			b.WriteByte('{')
			for _, name := range slices.Sorted(maps.Keys(v)) {
				b.WriteString(name + ":")
				walk(v[name])
			}
			b.WriteByte('}')
		case []any:
			b.WriteByte('[')
			if len(v) > 0 {
				walk(v[0])
			}
			b.WriteByte(']')
		default:
			b.WriteByte('.')
		}
	}
	walk(v)
	return b.String()
}

// Colour is for terminals only, and NO_COLOR with any value or a dumb terminal turn it off, in every command that has
// some.
func TestColourOnTerminalsOnly(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	s := d.Session("calculator")
	id := d.Call(s, "add", 2, 3).CallID
	stage := newStageDaemon(t)
	stage.end(clitest.SomeCalls()...)
	for _, args := range [][]string{{"tools", "list"}, {"history", s}, {"replay", id}, {"tools", "decisions"},
		{"watch", "--plain", "--url", stage.URL}, {"watch", "--url", stage.URL}} {
		for _, c := range []struct {
			env  []string
			want bool
		}{{nil, true}, {[]string{"NO_COLOR=1"}, false}, {[]string{"NO_COLOR=yes"}, false},
			{[]string{"NO_COLOR="}, true}, {[]string{"TERM=dumb"}, false}} {
			w := rig.OnTerminal(t, 200, 20, append(append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL), c.env...),
				args...)
			if args[0] == "watch" {
				w.Shows("units.convert", "divided by z")
				if err := w.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			w.Ends(0)
			coloured := rig.Coloured(w.Bytes())
			if coloured != c.want {
				t.Errorf("%v with %v: coloured %v, want %v: %q", args, c.env, coloured, c.want, w.Bytes())
			}
			if len(c.env) > 0 && c.env[0] == "TERM=dumb" && bytes.Contains(w.Bytes(), []byte("\x1b")) {
				t.Errorf("%v: escape bytes for a dumb terminal: %q", args, w.Bytes())
			}
		}
	}
}

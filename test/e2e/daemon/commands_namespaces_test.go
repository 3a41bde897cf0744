package daemon

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Namespaces are made, listed and erased by commands, and --namespace has the other commands act in one.
func TestNamespaceCommands(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd, rig.ProgAdd}})
	d := rig.Start(t, m)
	env := append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL)
	in := func(namespace string) []string { return append(env, "RECURGENT_NAMESPACE="+namespace) }
	for i, step := range []struct {
		env    []string
		args   string
		code   int
		stdout string // all of it, where it does not end in ...
		stderr string // a part
	}{
		{env, "tools list --namespace acme", cli.ExitUnreachable, "", `there is no namespace "acme"`},
		{env, "namespaces create Not/One", cli.ExitUnreachable, "", "is not a namespace"},
		{env, "tools list --namespace Not/One", cli.ExitUsage, "", "namespace"},
		{env, "namespaces create acme", 0, "acme: ready\n", ""},
		{env, "namespaces create acme", 0, "acme: ready\n", ""},
		{in("none"), "namespaces create beta --json", 0, `{"name":"beta","created_at":"...`, ""},
		{env, "namespaces list", 0, "NAME     CREATED\nacme     ...", ""},
		{env, "call --namespace acme calculator add 2 3", 0, "5\n", "session "},
		{env, "tools list --namespace acme", 0, "ROLE        ...", ""},
		{in("beta"), "tools list --json", 0, `{"data":[],"next_cursor":null}` + "\n", ""},
		{env, "tools list --json", 0, `{"data":[],"next_cursor":null}` + "\n", ""},
		{in("beta"), "call calculator add 4 3", 0, "7\n", "session "},
		{env, "namespaces rm acme", 0,
			"acme, with 1 sessions, 1 tools with 1 methods, 0 connections: would be erased; nothing has changed, --yes does it\n", ""},
		{in("acme"), "namespaces rm acme --yes", 0,
			"acme, with 1 sessions, 1 tools with 1 methods, 0 connections: erased\n", ""},
		{env, "namespaces rm acme --yes", cli.ExitUnreachable, "", "404"},
		{env, "namespaces rm default --yes", cli.ExitUnreachable, "", "cannot be deleted"},
		{env, "call --namespace acme calculator add 2 3", cli.ExitUnreachable, "", `there is no namespace "acme"`},
		{in("beta"), "call calculator add 1 1", 0, "2\n", "session "},
		{env, "namespaces list --namespace acme", cli.ExitUsage, "", "--namespace"},
	} {
		out, errs, code := rig.Run(t, step.env, strings.Fields(step.args)...)
		want, part := strings.CutSuffix(step.stdout, "...")
		if code != step.code || out != want && (!part || !strings.HasPrefix(out, want)) ||
			!strings.Contains(errs, step.stderr) {
			t.Errorf("%d %s: %d\n%s%s", i, step.args, code, out, errs)
		}
	}
	if n := len(m.Questions()); n != 2 {
		t.Errorf("the model was asked %d times, want once in each namespace", n)
	}
}

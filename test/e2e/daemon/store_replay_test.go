package daemon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Every recorded call replays to the same bytes, by recurgentd replay, also after a restart; one that cannot be
// replayed says why.
func TestReplay(t *testing.T) {
	t.Parallel()
	programs := map[string]string{
		"pure": rig.Program("\treturn []any{call.Args, call.Kwargs, call.Role}, nil"),
		"clock": strings.Replace(rig.Program("\treturn time.Now().Format(time.RFC3339Nano), nil"), "import (",
			"import (\n\t\"time\"\n", 1),
		"random": strings.Replace(rig.Program("\treturn []int{rand.Int(), rand.IntN(100)}, nil"), "import (",
			"import (\n\t\"math/rand/v2\"\n", 1),
		"context": rig.Program("\tn, _ := call.Context[\"n\"].(float64)\n\tcall.Context[\"n\"] = n + 1\n\treturn n, nil"),
		"history": rig.Program("\treturn call.History(), nil"),
		"nested":  rig.Program("\treturn call.Tool(\"keeper\").Call(\"pure\", 1).Value, nil"),
		"denied":  rig.Program("\t_, err := call.Fetch(\"https://127.0.0.1/\")\n\treturn nil, err"),
		"tools":   rig.Program("\treturn call.Tools(), nil"),
		"authors": rig.Program("\treturn nil, recurgent.Fail(\"not_today\", \"closed on Sundays\")"),
		"input":   rig.Program("\treturn call.Arg(0, \"x\"), nil"),
	}
	answers := rig.Script{}
	for name, source := range programs {
		answers["keeper."+name] = []any{source}
	}
	d := rig.Start(t, rig.NewModel(t, answers))
	s := d.Session("keeper", map[string]any{"context": map[string]any{"n": 41}})
	var ids []string
	for range 3 {
		for name := range programs {
			ids = append(ids, d.Invoke(s, map[string]any{"method": name, "args": []any{1, "two"},
				"kwargs": map[string]any{"k": []int{1}}}).CallID)
		}
	}
	for range 40 { // a history that no journal holds in full
		ids = append(ids, d.Call(s, "input", strings.Repeat("x", 200)).CallID)
	}
	ids = append(ids, d.Call(s, "history").CallID)
	masked := d.Invoke(s, map[string]any{"method": "pure",
		"kwargs": map[string]any{"password": "hunter2secret"}}).CallID
	setter := d.Call(s, "n=", 1).CallID
	if out, code := recurgentd(d, "replay", masked, setter); code != cli.ExitFailed ||
		strings.Count(out, "not replayable") != 2 || !strings.Contains(out, "masked") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for range 2 {
		out, code := recurgentd(d, append([]string{"replay"}, ids...)...)
		if code != 0 || strings.Count(out, "  equal: ") != len(ids) {
			t.Errorf("exit code %d, %d of %d calls are equal:\n%s", code, strings.Count(out, "  equal: "), len(ids),
				out)
		}
		d.Restart()
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+s, nil)
	if out, code := recurgentd(d, "replay", ids[0]); code == 0 {
		t.Errorf("a call of an erased session replays:\n%s", out)
	}
}

// recurgentd runs a client command against the daemon.
func recurgentd(d *rig.Daemon, args ...string) (output string, code int) {
	d.T.Helper()
	out, errs, code := d.Client(args...)
	return out + errs, code
}

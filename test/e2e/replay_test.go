package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli"
)

// Every recorded call replays to the same bytes, by recurgentd replay, also after a restart; one that cannot be
// replayed says why.
func TestReplay(t *testing.T) {
	programs := map[string]string{
		"pure":    program("\treturn []any{call.Args, call.Kwargs, call.Role}, nil"),
		"clock":   strings.Replace(program("\treturn time.Now().Format(time.RFC3339Nano), nil"), "import (", "import (\n\t\"time\"\n", 1),
		"chance":  strings.Replace(program("\treturn []int{rand.Int(), rand.IntN(100)}, nil"), "import (", "import (\n\t\"math/rand/v2\"\n", 1),
		"context": program("\tn, _ := call.Context[\"n\"].(float64)\n\tcall.Context[\"n\"] = n + 1\n\treturn n, nil"),
		"history": program("\treturn call.History(), nil"),
		"nested":  program("\treturn call.Tool(\"keeper\").Call(\"pure\", 1).Value, nil"),
		"denied":  program("\t_, err := call.Fetch(\"https://127.0.0.1/\")\n\treturn nil, err"),
		"tools":   program("\treturn call.Tools(), nil"),
		"authors": program("\treturn nil, recurgent.Fail(\"not_today\", \"closed on Sundays\")"),
		"input":   program("\treturn call.Arg(0, \"x\"), nil"),
	}
	answers := script{}
	for name, source := range programs {
		answers["keeper."+name] = []any{source}
	}
	d := newDaemon(t, newModel(t, answers))
	s := d.session("keeper", map[string]any{"context": map[string]any{"n": 41}})
	var ids []string
	for range 3 {
		for name := range programs {
			ids = append(ids, d.invoke(s, map[string]any{"method": name, "args": []any{1, "two"}, "kwargs": map[string]any{"k": []int{1}}}).CallID)
		}
	}
	for range 40 { // a history that no journal holds in full
		ids = append(ids, d.call(s, "input", strings.Repeat("x", 200)).CallID)
	}
	ids = append(ids, d.call(s, "history").CallID)
	masked := d.invoke(s, map[string]any{"method": "pure", "kwargs": map[string]any{"password": "hunter2secret"}}).CallID
	setter := d.call(s, "n=", 1).CallID
	if out, code := d.recurgentd("replay", masked, setter); code != cli.ExitFailed || strings.Count(out, "not replayable") != 2 || !strings.Contains(out, "masked") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for range 2 {
		out, code := d.recurgentd(append([]string{"replay"}, ids...)...)
		if code != 0 || strings.Count(out, "  equal: ") != len(ids) {
			t.Errorf("exit code %d, %d of %d calls are equal:\n%s", code, strings.Count(out, "  equal: "), len(ids), out)
		}
		d.restart()
	}
	d.do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+s, nil)
	if out, code := d.recurgentd("replay", ids[0]); code == 0 {
		t.Errorf("a call of an erased session replays:\n%s", out)
	}
}

// recurgentd runs a client command against the daemon.
func (d *proc) recurgentd(args ...string) (output string, code int) {
	d.t.Helper()
	cmd := exec.Command(os.Args[0], append(args, "--url", d.url)...)
	cmd.Env, cmd.Dir = d.env, d.dir
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		d.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

//go:build ops

package daemon

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// clients is a directory with the scripts and what make test-all STEPS=ops has installed for them.
func clients(t *testing.T) string {
	t.Helper()
	installed, err := filepath.Abs("../../../.cache/npm-mcp/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(installed); err != nil {
		t.Fatalf("%v: run scripts/ops-install mcp-clients", err)
	}
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/clients/agent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.mjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(installed, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func node(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(rig.Environment(dir), "NO_COLOR=1"), 10*time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// The official TypeScript SDKs, of the newest protocol (client) and of the one before (sdk), over HTTP and stdio.
func TestOpsTypeScriptClients(t *testing.T) {
	dir := clients(t)
	for _, kit := range []string{"client", "sdk"} {
		for _, way := range []string{"http", "stdio"} {
			t.Run(kit+" over "+way, func(t *testing.T) {
				m := rig.NewModel(t, script())
				defer m.Release()
				d := rig.Start(t, m)
				args := []string{"agent.mjs", kit, d.URL + "/mcp"}
				if way == "stdio" {
					args = []string{"agent.mjs", kit, os.Args[0], "mcp", "--url", d.URL}
				}
				if out := node(t, dir, args...); !strings.HasSuffix(out, "fine\n") {
					t.Errorf("it said:\n%s", out)
				}
				// over HTTP the newest version says so by its closed request, which leaves a program to be written
				if way == "stdio" {
					rig.Until(t, "the call that was given up is canceled", func() bool {
						return len(d.List("/v1/calls?status=running")) == 0 &&
							len(d.List("/v1/calls?error_type=canceled&method=slow")) == 1
					})
				}
			})
		}
	}
}

// The inspector's command line lists and calls tools, over HTTP and stdio.
func TestOpsInspector(t *testing.T) {
	dir := clients(t)
	d := rig.Start(t, rig.NewModel(t, script()))
	d.Call(d.Session("calculator"), "add", 1, 2)
	cli := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "inspector", "cli", "build", "cli.js")
	for way, target := range map[string][]string{
		"http":  {d.URL + "/mcp", "--transport", "http"},
		"stdio": {os.Args[0], "mcp", "--url", d.URL},
	} {
		ask := func(args ...string) map[string]any {
			t.Helper()
			out := node(t, dir, append(append([]string{cli, "--cli"}, target...), args...)...)
			answer := map[string]any{}
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatalf("%s: %v\n%s", way, err, out)
			}
			return answer
		}
		if tools, _ := ask("--method", "tools/list")["tools"].([]any); len(tools) != 6 {
			t.Errorf("%s: %d tools", way, len(tools))
		}
		if templates, _ := ask("--method",
			"resources/templates/list")["resourceTemplates"].([]any); len(templates) != 1 {
			t.Errorf("%s: templates %v", way, templates)
		}
		if files, listed := ask("--method", "resources/list")["resources"].([]any); !listed || len(files) != 0 {
			t.Errorf("%s: resources %v", way, files)
		}
		called := ask("--method", "tools/call", "--tool-name", "calculator__add", "--tool-arg", "a=20", "--tool-arg",
			"b=22")
		if outcome, _ := called["structuredContent"].(map[string]any); outcome["value"] != 42.0 {
			t.Errorf("%s: %v", way, called)
		}
	}
	d.Do(http.StatusOK, http.MethodGet, "/healthz", nil)
}

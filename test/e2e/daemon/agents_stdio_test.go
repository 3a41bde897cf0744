package daemon

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// overStdio is an agent that starts recurgentd mcp, as agents do.
func overStdio(t *testing.T, version string, env []string, args ...string) *mcpClient {
	t.Helper()
	return connectMCP(t, &mcp.CommandTransport{Command: rig.Command(t, env, append([]string{"mcp"}, args...)...),
		TerminateDuration: rig.Patience}, version)
}

// The same over stdin and stdout, bridged to a daemon, in both versions.
func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	for _, version := range []string{newest, legacy} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, script())
			m.Release()
			d := rig.Start(t, m)
			story(t, d, overStdio(t, version, nil, "--url", d.URL))
		})
	}
}

// Changes of the list, cancellation and the digits of numbers pass through the bridge.
func TestMCPBridge(t *testing.T) {
	t.Parallel()
	for _, version := range []string{newest, legacy} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, script())
			defer m.Release()
			d := rig.Start(t, m)
			a := overStdio(t, version, []string{"RECURGENT_URL=" + d.URL})
			a.tools() // an answer says that what was sent before it, to hear of changes, has arrived
			d.Call(d.Session("calculator"), "add", 1, 2)
			a.hears()
			rig.Until(t, "the new tool is listed", func() bool { return a.tools()["calculator__add"] != nil })
			if r := a.call("call_method", object{"role": "shop", "method": "large"},
				nil); !strings.Contains(r.text, `"value":9007199254740995`) {
				t.Errorf("got %s", r.text)
			}

			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "call_method",
					Arguments: object{"role": "shop", "method": "slow"}})
				ended <- err
			}()
			var running []map[string]any
			rig.Until(t, "the call runs", func() bool {
				running = d.List("/v1/calls?status=running")
				return len(running) == 1
			})
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("canceled: %v", err)
			}
			rig.Until(t, "the call is canceled", func() bool {
				return d.Get("/v1/calls/" + running[0]["call_id"].(string))["outcome_error_type"] == "canceled"
			})
		})
	}
}

// Where no daemon answers, one is started, and ends with its agent; nobody else may use it. A named one must answer.
func TestMCPEmbedded(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	dir := t.TempDir()
	env := []string{"OPENAI_BASE_URL=" + m.URL, "OPENAI_API_KEY=" + rig.SecretKey, "RECURGENT_MODEL=scripted"}
	a := overStdio(t, newest, env, "--embedded", "--data-dir", filepath.Join(dir, "data"))
	a.value(a.call("call_method", object{"role": "calculator", "method": "add", "args": []any{2, 3}}, nil), 5)
	if err := a.Close(); err != nil {
		t.Errorf("it did not end cleanly: %v", err)
	}
	rig.CheckStoredFiles(t, filepath.Join(dir, "data"))
	again := overStdio(t, legacy, env, "--embedded", "--data-dir", filepath.Join(dir, "data"))
	a.value(again.call("calculator__add", object{"a": 20, "b": 22}, nil), 42)

	if out, errs, code := rig.Run(t, rig.Environment(t.TempDir()), "mcp", "--url",
		"http://127.0.0.1:1"); code != 3 || !strings.Contains(errs, "http://127.0.0.1:1") {
		t.Errorf("a daemon that is not there: exit code %d: %s%s", code, out, errs)
	}
}

// With access tokens agents need one, and their calls are its owner's.
func TestMCPTokens(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, script())
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens", "ann ann-token-0123456789abcdef\n"))
	if status := post(t, d, "POST", []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`),
		map[string]string{"Accept": "application/json, text/event-stream"}); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	a := overStdio(t, newest, []string{"RECURGENT_TOKEN=ann-token-0123456789abcdef"}, "--url", d.URL)
	r := a.call("call_method", object{"role": "calculator", "method": "add", "args": []any{2, 3}}, nil)
	a.value(r, 5)
	if s := d.As("ann-token-0123456789abcdef").Get("/v1/sessions/" +
		r.Meta["recurgent/session_id"].(string)); s["owner"] != "ann" {
		t.Errorf("the session: %v", s)
	}
}

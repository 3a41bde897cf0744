package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A newcomer's mistake on the command line or in a setting gets one line that says what to do.
func TestMistakesSayWhatToDo(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	address := strings.TrimPrefix(d.URL, "http://")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want []string // in the one line
	}{
		{"port in use", []string{"serve", "--listen", address, "--data-dir", dir}, 1,
			[]string{address, "already in use", "stop the process that uses it, or set another --listen"}},
		{"data directory in use", []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", d.State()}, 1,
			[]string{d.State(), "in use by another recurgentd", "set another --data-dir"}},
		{"data directory is a file", []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", file("plain", "")}, 1,
			[]string{"cannot open the data directory", "plain", "not a directory"}},
		{"open to the world", []string{"serve", "--listen", "0.0.0.0:0"}, 2,
			[]string{"set --auth-tokens-file or --oidc-issuer, or listen on 127.0.0.1:0", "(from --listen)"}},
		{"no port", []string{"serve", "--listen", "nonsense"}, 2, []string{"not HOST:PORT, such as 127.0.0.1:8420"}},
		{"a flag that is not", []string{"serve", "--lisen", "x"}, 2,
			[]string{"unknown flag: --lisen", "see recurgentd serve --help"}},
		{"a command that is not", []string{"srve"}, 2, []string{"did you mean serve", "recurgentd --help"}},
		{"a word of another command", []string{"list"}, 2, []string{"did you mean", " tools"}},
		{"a word for the daemon", []string{"start"}, 2, []string{"did you mean serve"}},
		{"no key", []string{"serve", "--provider", "openai"}, 2,
			[]string{"needs OPENAI_API_KEY, --openai-api-key-file or --openai-base-url"}},
		{"a setting that is not", []string{"serve", "--config", file("a.yaml", "listen: 127.0.0.1:0\nmodle: x\n")}, 2,
			[]string{"a.yaml: line 2: modle is not a setting", "recurgentd serve --help"}},
		{"broken YAML", []string{"serve", "--config", file("b.yaml", "listen: [\n")}, 2, []string{"b.yaml: line 1"}},
		{"a bad duration", []string{"serve", "--config", file("c.yaml", "call-timeout: soon\n")}, 2,
			[]string{"call-timeout", "such as 30s or 2m", "c.yaml"}},
		{"no such configuration", []string{"serve", "--config", filepath.Join(dir, "none")}, 2,
			[]string{"none", "no such file"}},
		{"a short token", []string{"serve", "--auth-tokens-file", file("tokens", "alice x\n")}, 2,
			[]string{"line 1", "shorter than 16 characters"}},
		{"a broken recording", []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "r"),
			"--provider", "replay", "--recording", file("r.jsonl", "{}\n")}, 1,
			[]string{"r.jsonl, line 1", "forge, repair or chat"}},
		{"no method", []string{"call", "calculator"}, 2, []string{"needs a role and a method",
			"recurgentd call calculator add 2 3", "recurgentd call --help"}},
		{"a slash in a name", []string{"call", "a/b", "c", "--url", d.URL}, 3,
			[]string{"/role must not contain slashes", "1 to 200 characters"}},
		{"no session", []string{"call", "a", "b", "--session", "none", "--url", d.URL}, 3,
			[]string{"there is no session none"}},
		{"no daemon", []string{"call", "a", "b", "--url", "http://127.0.0.1:1"}, 3,
			[]string{"is recurgentd serve running?", "RECURGENT_URL"}},
		{"no model", []string{"call", "calculator", "integrate", "x", "--url", d.URL}, 1,
			[]string{"start the daemon with OPENAI_API_KEY or OPENAI_BASE_URL"}},
		{"a policy that is not", []string{"policy", "set", "repare_enabled=true", "--url", d.URL}, 3,
			[]string{"/repare_enabled is not a known name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs, code := rig.Run(t, rig.Environment(t.TempDir()), c.args...)
			lines := strings.Split(strings.TrimSpace(errs), "\n")
			last := lines[len(lines)-1]
			if code != c.code || !strings.HasPrefix(last, "recurgentd: ") {
				t.Errorf("exit code %d, want %d; stderr %q", code, c.code, errs)
			}
			for _, part := range c.want {
				if !strings.Contains(last, part) {
					t.Errorf("%q does not say %q", last, part)
				}
			}
		})
	}
}

// The same for a first request by curl: each problem's hint says what to do.
func TestFirstRequestsGoneWrong(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	for _, c := range []struct {
		method, path, body, media string
		status                    int
		hint                      string
	}{
		{"POST", "/v1/sessions", `role=calculator`, "application/x-www-form-urlencoded", 415,
			"Content-Type: application/json"},
		{"POST", "/v1/sessions", `{"role": "calculator"`, "application/json", 400, "exactly one JSON value"},
		{"POST", "/v1/sessions", `{}`, "application/json", 422, `such as {"role": "calculator"}`},
		{"POST", "/v1/sessions", `{"rol": "x"}`, "application/json", 422, "known names: role"},
		{"GET", "/", "", "", 404, "/openapi.yaml"},
		{"GET", "/v1/session", "", "", 404, "/openapi.yaml"},
		{"PUT", "/v1/policy", `{}`, "application/json", 405, "GET, HEAD, PATCH"},
		{"POST", "/v1/calls", `{"role": "calculator", "method": "add"}`, "application/json", 405,
			"POST /v1/sessions/{id}/calls"},
		{"GET", "/v1/calls?limit=many", "", "", 400, "known parameters: limit"},
	} {
		var body []byte
		if c.body != "" {
			body = []byte(c.body)
		}
		r := d.Send(c.method, c.path, body, map[string]string{"Content-Type": c.media})
		if hint, _ := r.Object(t)["hint"].(string); r.Status != c.status || !strings.Contains(hint, c.hint) {
			t.Errorf("%s %s %s: status %d, hint %q; want %d with %q", c.method, c.path, c.body, r.Status, hint,
				c.status, c.hint)
		}
	}
}

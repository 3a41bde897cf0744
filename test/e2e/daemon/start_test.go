package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// After a restart stored programs answer without a model request.
func TestRestart(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "calculator.explode": {rig.ProgPanic},
		"delegator.compute": {rig.ProgDelegates}, "calculator.increment": {rig.ProgIncrement}, "x.y": {rig.ProgEcho}})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/calculator", map[string]any{"purpose": "arithmetic"})
	d.Call(s, "add", 1, 2)
	d.Call(s, "explode")
	d.Call(s, "increment")
	nested := d.Session("delegator")
	d.WantValue(d.Call(nested, "compute"), 5, "generated")
	before, tools, asked := d.History(s), d.Get("/v1/tools"), len(m.Questions())
	d.Restart()
	if after := d.History(s); !rig.Equal(before, anySlice(after)) {
		t.Errorf("history after a restart:\n%v\nbefore:\n%v", after, before)
	}
	if after := d.Get("/v1/tools"); !rig.Equal(tools, after) {
		t.Errorf("registry after a restart:\n%v\nbefore:\n%v", after, tools)
	}
	d.WantValue(d.Call(s, "add", 20, 22), 42, "persisted")
	d.WantValue(d.Call(s, "increment"), 2, "persisted")
	d.WantValue(d.Call(nested, "compute"), 5, "persisted")
	if n := len(m.Questions()); n != asked {
		t.Errorf("the model was asked %d more times after the restart", n-asked)
	}
	d.Call(d.Session("x"), "y")
	if last := m.LastQuestion(); !strings.Contains(last.User+last.System, "calculator") {
		t.Error("after a restart the prompt does not mention the known tool")
	}
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkArtifactFile(t, filepath.Join(d.State(), "tools", "calculator", "add.json"))
	for path, data := range rig.Files(t, d.Dir) {
		if strings.Contains(string(data), rig.SecretKey) {
			t.Errorf("%s holds the key", path)
		}
	}
	if strings.Contains(d.Output.String(), rig.SecretKey) {
		t.Error("the log holds the key")
	}
	for path := range rig.Files(t, d.Dir) {
		if !strings.HasPrefix(path, filepath.ToSlash(d.State())) {
			t.Errorf("a file outside the data directory: %s", path)
		}
	}
}

// checkArtifactFile looks at an artifact as seed 001's data model has it.
func checkArtifactFile(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var a map[string]any
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}
	for _, k := range strings.Fields(
		"schema_version role method_name contract_fingerprint prompt_version runtime_version model code_checksum code dependencies success_count failure_count intrinsic_failure_count adaptive_failure_count extrinsic_failure_count recent_failure_rate repair_count_since_regen created_at last_used_at history") {
		if _, ok := a[k]; !ok {
			t.Errorf("%s has no %s", path, k)
		}
	}
	code, _ := a["code"].(string)
	sum := sha256.Sum256([]byte(code))
	if a["code_checksum"] != "sha256:"+hex.EncodeToString(sum[:]) || code == "" {
		t.Errorf("checksum %v is not that of the code", a["code_checksum"])
	}
	if a["success_count"] != 4.0 { // two calls of the client, two nested ones
		t.Errorf("success_count %v, want 4", a["success_count"])
	}
	if h, _ := a["history"].([]any); len(h) != 1 || h[0].(map[string]any)["trigger"] != "initial_forge" ||
		h[0].(map[string]any)["parent_id"] != nil {
		t.Errorf("lineage: %v", a["history"])
	}
}

// A dead provider ends in a provider outcome within its budget, and warm calls go on meanwhile.
func TestDeadProvider(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on deadlines of real programs")
	}
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "calculator.hangs": {rig.Held(rig.ProgAdd)},
		"calculator.broken": {rig.Status(http.StatusInternalServerError)},
		"calculator.denied": {rig.Status(http.StatusUnauthorized)}})
	d := rig.Start(t, m, "--provider-timeout", "3s")
	s, other := d.Session("calculator"), d.Session("calculator")
	d.WantValue(d.Call(s, "add", 1, 2), 3, "generated")
	for _, method := range []string{"hangs", "broken", "denied"} {
		done := make(chan rig.Reply, 1)
		go func() { done <- d.Invoke(s, map[string]any{"method": method, "args": []any{1, 2}}) }()
		rig.Until(t, "the model to be asked for "+method, func() bool { return m.Count("calculator", method) > 0 })
		d.WantValue(d.Call(other, "add", 40, 2), 42, "persisted")
		got := <-done
		d.WantError(got, "provider")
		if want := method != "denied"; got.Outcome.Retriable != want { // a person has to set another key
			t.Errorf("%s: retriable is %v", method, got.Outcome.Retriable)
		}
	}
	m.Release()
	m.Close()
	d.WantError(d.Call(s, "unreachable", 1), "provider")
	d.WantValue(d.Call(s, "add", 2, 2), 4, "persisted")
	if n := len(d.History(s)); n != 6 {
		t.Errorf("%d records for 6 calls", n)
	}
	if a := d.Get("/v1/tools/calculator/methods/add"); a["failure_count"] != 0.0 {
		t.Errorf("the outage was held against the artifact: %v", a["failure_count"])
	}
}

// The daemon does not start when it cannot work, says why in one clear line, and ends with a code that is not 0.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil, "--provider", "replay")
	address := strings.TrimPrefix(d.URL, "http://")
	fresh := func(t *testing.T) []string { return rig.Environment(t.TempDir()) }
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"port taken", []string{"--listen", address}, cli.ExitFailed, []string{address, "in use"}},
		{"data directory in use", []string{"--listen", "127.0.0.1:0", "--data-dir", d.State()}, cli.ExitFailed,
			[]string{d.State(), "in use"}},
		{"data directory is a file", []string{"--listen", "127.0.0.1:0", "--data-dir", file}, cli.ExitFailed,
			[]string{file}},
		{"bad setting", []string{"--runners", "none"}, cli.ExitUsage, []string{"runners", "--runners"}},
		{"open to the network", []string{"--listen", "0.0.0.0:0"}, cli.ExitUsage,
			[]string{"listen", "--auth-tokens-file"}},
		{"no such flag", []string{"--lisen", "x"}, cli.ExitUsage, []string{"--lisen", "--help"}},
		{"bad recording", []string{"--listen", "127.0.0.1:0", "--recording", rig.WriteFile(t, "bad.jsonl", "{\n")},
			cli.ExitFailed, []string{"bad.jsonl"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := rig.Run(t, fresh(t), append([]string{"serve"}, c.args...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			lines := strings.Split(strings.TrimSpace(errs), "\n")
			last := lines[len(lines)-1]
			if !strings.HasPrefix(last, "recurgentd: ") || out != "" || len(lines) != 1 {
				t.Errorf("want one line on stderr and nothing on stdout, got:\n%s\n%s", errs, out)
			}
			for _, part := range c.want {
				if !strings.Contains(last, part) {
					t.Errorf("%q does not say %q", last, part)
				}
			}
		})
	}
}

// With nothing configured the daemon answers from the embedded recording and says so first.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	rig.Until(t, "the first screen to its last line",
		func() bool { return strings.Contains(d.Output.String(), "OPENAI_BASE_URL") })
	screen := d.Output.String()
	for _, part := range []string{d.URL, "demo recording", " call --url " + d.URL + " calculator add 2 3",
		"OPENAI_API_KEY"} {
		if !strings.Contains(screen, part) {
			t.Errorf("the first screen does not say %q:\n%s", part, screen)
		}
	}
	s := d.Session("calculator")
	d.WantValue(d.Call(s, "add", 2, 3), 5, "generated")
	d.WantValue(d.Call(s, "solve", "2x + 5 = 17"), map[string]any{"x": 6}, "generated")
	d.WantError(d.Call(s, "unheard_of"), "provider")
}

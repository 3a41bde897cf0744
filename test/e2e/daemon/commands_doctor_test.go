package daemon

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// doctor reports what serve would find: the same confinement that a daemon reports, a model that answers a real
// request, and each fault by its check, with an exit code for scripts.
func TestDoctor(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	level, _ := d.Get("/v1/version")["sandbox"].(map[string]any)["level"].(string)
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		code int
		want map[string]string
	}{ // but for the last, each has a port that no other test looks at
		{"offline", nil, nil, 0, map[string]string{"settings": "ok", "data": "ok", "model": "warn", "clock": "ok"}},
		{"dead model", []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, []string{"--provider-timeout", "5s"}, 1,
			map[string]string{"model": "fail", "data": "ok"}},
		{"no data directory", nil, []string{"--data-dir", "/dev/null/state"}, 1, map[string]string{"data": "fail"}},
		{"bad setting", nil, []string{"--runners", "0"}, 1, map[string]string{"settings": "fail"}},
		{"port taken", nil, []string{"--listen", strings.TrimPrefix(d.URL, "http://")}, 0,
			map[string]string{"port": "warn"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, code := rig.Run(t, append(rig.Environment(t.TempDir()), tt.env...),
				append([]string{"doctor", "--json", "--listen", "127.0.0.1:0"}, tt.args...)...)
			var findings []finding
			if err := json.Unmarshal([]byte(out), &findings); err != nil {
				t.Fatalf("%v: %s%s", err, out, errs)
			}
			got := map[string]finding{}
			for _, f := range findings {
				got[f.Check] = f
			}
			for check, want := range tt.want {
				if got[check].Result != want {
					t.Errorf("%s: %+v, want %s", check, got[check], want)
				}
			}
			if code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, errs)
			}
			if s := got["sandbox"].Status; tt.want["settings"] != "fail" && (s == nil || string(s.Level) != level) {
				t.Errorf("doctor observes %+v, the daemon level %s", s, level)
			}
		})
	}
}

// Settings that differ from their defaults are listed with their source, and without secrets; a damaged file is
// reported; a port that something else holds fails; the clock is compared with the data.
func TestDoctorSaysWhy(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Default(func(openaitest.Request) openaitest.Reply { return openaitest.Code(rig.ProgAdd) })
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	home := t.TempDir()
	state := filepath.Join(home, "xdg", "recurgent")
	if err := os.MkdirAll(filepath.Join(state, "tools", "r"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "tools", "r", "m.json.corrupt-20261121"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config, past := rig.WriteFile(t, "config.yaml", "isolation: call\n"), rig.WriteFile(t, "clock", "-100000h")
	yesterday := rig.WriteFile(t, "clock", "-24h")
	env := append(rig.Environment(home), "OPENAI_BASE_URL="+m.URL, "OPENAI_API_KEY="+rig.SecretKey,
		"RECURGENT_CONFIG="+config)
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
		want map[string]string // check → "result: part of the detail or the fix"
	}{
		{"all", nil, []string{"--model", "tiny"}, 0, map[string]string{"settings": "ok: isolation from " + config,
			"data": "warn: damaged and moved aside: 1 file", "port": "ok: is free",
			"model":   "ok: tiny wrote a program in ",
			"sandbox": ": level ", "clock": "ok: 20"}},
		{"flags and environment", []string{"RECURGENT_RUNNERS=2"}, []string{"--model", "tiny"}, 0,
			map[string]string{"settings": "ok: model from --model, openai-api-key from OPENAI_API_KEY"}},
		{"somebody else's port", nil, []string{"--listen", strings.TrimPrefix(other.URL, "http://")}, 1,
			map[string]string{"port": "fail: address already in use", "model": "ok: "}},
		{"the clock of 2015", []string{rig.ClockFile + "=" + past}, nil, 1,
			map[string]string{"clock": "fail: set the clock"}},
		{"yesterday's clock", []string{rig.ClockFile + "=" + yesterday}, nil, 0,
			map[string]string{"clock": "warn: the data directory was written at"}},
		{"wrong file", []string{"RECURGENT_CONFIG=/nowhere.yaml"}, nil, 1,
			map[string]string{"settings": "fail: /nowhere.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.args == nil {
				c.args = []string{"--listen", "127.0.0.1:0"}
			} else if c.args[0] != "--listen" {
				c.args = append(c.args, "--listen", "127.0.0.1:0")
			}
			out, errs, code := rig.Run(t, append(append([]string{}, env...), c.env...),
				append([]string{"doctor", "--output", "json"}, c.args...)...)
			var findings []finding
			if err := json.Unmarshal([]byte(out), &findings); err != nil || code != c.code {
				t.Fatalf("%d, %v: %s%s", code, err, out, errs)
			}
			for _, f := range findings {
				result, part, _ := strings.Cut(c.want[f.Check], ": ")
				if whole := f.Detail + " " + f.Fix; result != "" && f.Result != result ||
					!strings.Contains(whole, part) {
					t.Errorf("%s: %+v, want %s", f.Check, f, c.want[f.Check])
				}
				if f.Result != "ok" && f.Fix == "" {
					t.Errorf("%s does not say what to do: %+v", f.Check, f)
				}
			}
			if strings.Contains(out+errs, rig.SecretKey) {
				t.Errorf("the key is printed:\n%s%s", out, errs)
			}
		})
	}
	if r := m.Requests(); len(r) == 0 || r[0].Body["tools"] == nil || r[0].Role != "calculator" {
		t.Errorf("the model was not asked for a program as calls ask: %d requests", len(r))
	}
	left, err := filepath.Glob(filepath.Join(state, ".doctor-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("doctor left %v behind", left)
	}
}

// What a first user has wrong is named by its step, with what to set.
func TestDoctorNamesTheStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply openaitest.Reply
		base  string // the end of the address
		step  string
		parts []string
	}{
		"key": {openaitest.Reply{Status: 401, Body: `{"error":{"message":"Incorrect API key"}}`}, "/v1",
			"key", []string{"Incorrect API key", "OPENAI_API_KEY"}},
		"model": {openaitest.Reply{Status: 404,
			Body: `{"error":{"message":"model \"tiny\" not found, try pulling it first"}}`}, "/v1", "model",
			[]string{"try pulling", "--model", "the server has qwen3"}},
		"no version": {openaitest.Reply{Status: 404, Body: "404 page not found"}, "", "reached",
			[]string{"/v1", "OPENAI_BASE_URL"}},
		"context": {openaitest.Reply{Status: 400,
			Body: `{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":3000,"n_ctx":2048}}`}, "/v1", "context", []string{"OLLAMA_CONTEXT_LENGTH"}},
		"no program": {rig.Text("I would rather not."), "/v1", "program", []string{"holds no program"}},
		"does not check": {openaitest.Code("package tool\n\nimport \"os/exec\"\n\nfunc Run() {}\n"), "/v1", "compiles",
			[]string{"os/exec"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{})
			m.List("qwen3")
			m.Default(func(openaitest.Request) openaitest.Reply { return c.reply })
			env := append(rig.Environment(t.TempDir()), "OPENAI_BASE_URL="+strings.TrimSuffix(m.URL, "/v1")+c.base,
				"OPENAI_API_KEY="+rig.SecretKey)
			out, errs, code := rig.Run(t, env, "doctor", "--json", "--listen", "127.0.0.1:0", "--model", "tiny")
			var findings []finding
			if err := json.Unmarshal([]byte(out), &findings); err != nil || code != 1 {
				t.Fatalf("%d, %v: %s%s", code, err, out, errs)
			}
			for _, f := range findings {
				if f.Check != "model" {
					continue
				}
				if f.Result != "fail" || !strings.HasPrefix(f.Detail, c.step+": ") || f.Fix == "" || len(f.Steps) != 8 {
					t.Errorf("got %+v", f)
				}
				if c.step == "compiles" && strings.Contains(f.Fix, "OPENAI_BASE_URL") {
					t.Errorf("the server answers, and the remedy is %q", f.Fix)
				}
				for _, part := range c.parts {
					if !strings.Contains(f.Detail, part) {
						t.Errorf("%q lacks %q", f.Detail, part)
					}
				}
			}
		})
	}
}

// A program that has to be compiled passes, as it does in a daemon, and nothing is left behind.
func TestDoctorCompiles(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	m.Default(func(openaitest.Request) openaitest.Reply {
		return openaitest.Code(rig.Program(`	sum := 0.0
	for _, a := range call.Args {
		if n, ok := a.(float64); ok {
			sum += n
		}
	}
	return sum, nil`))
	})
	home := t.TempDir()
	env := append(rig.Environment(home), "OPENAI_BASE_URL="+m.URL)
	out, errs, code := rig.Run(t, env, "doctor", "--json", "--listen", "127.0.0.1:0", "--model", "tiny")
	var findings []finding
	if err := json.Unmarshal([]byte(out), &findings); err != nil || code != 0 {
		t.Fatalf("%d, %v: %s%s", code, err, out, errs)
	}
	for _, f := range findings {
		if f.Check == "model" && (f.Result != "ok" || !strings.Contains(f.Steps[7].Detail, "engine go ")) {
			t.Errorf("got %+v", f)
		}
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("doctor left %v behind, %v", left, err)
	}
}

func TestDoctorOnATerminal(t *testing.T) {
	t.Parallel()
	w := rig.OnTerminal(t, 200, 40, rig.Environment(t.TempDir()), "doctor", "--listen", "127.0.0.1:0")
	w.Shows("ok    settings", "data", "port", "model", "sandbox", "level", "on   seccomp", "clock", "→")
	w.Ends(0)
	if !rig.Coloured(w.Bytes()) {
		t.Error("no colours on a terminal")
	}
}

// A finding is what doctor --json prints of one check.
type finding struct {
	Check, Result, Detail, Fix string
	Steps                      []struct{ Name, Result, Detail string }
	Status                     *sandbox.Status
}

//go:build ops

package daemon

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const token = "alices-secret-token-1"

// sixSteps is what each example prints. A stream that is opened after the end of its call has that event alone.
var sixSteps = regexp.MustCompile(`^session: sess_\w+
call: 5
stream:( call\.(selected|forging|gate|running))* call\.finished 1\.4142135623730951
verdict: right active
history: add=ok sqrt=ok
tools: calculator
$`)

// try runs a command in a directory, of the repository where it is relative, with the daemon in its environment.
func try(t *testing.T, url, dir string, command ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = rig.Root()+"/"+dir, 10*time.Second
	if filepath.IsAbs(dir) {
		cmd.Dir = dir
	}
	cmd.Env = append(cmd.Environ(), "RECURGENT_URL="+url, "RECURGENT_TOKEN="+token,
		"PYTHONPATH="+rig.Root()+"/clients/python", "PYTHONDONTWRITEBYTECODE=1", "NO_COLOR=1")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s\n%s", strings.Join(command, " "), err, out, said.String())
	}
	return string(out), err
}

func run(t *testing.T, url, dir string, command ...string) string {
	t.Helper()
	out, err := try(t, url, dir, command...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func withToken(t *testing.T) *rig.Daemon {
	t.Helper()
	return rig.Start(t, nil, tokens(t)...)
}

// Every example takes the same six steps, on a daemon of its own with the embedded recording.
func TestOpsExamples(t *testing.T) {
	for name, command := range map[string][]string{
		"curl":   {"sh", "six_steps.sh"},
		"go":     {"go", "run", "."},
		"python": {"python3", "six_steps.py"},
	} {
		t.Run(name, func(t *testing.T) {
			if out := run(t, withToken(t).URL, "examples/"+name, command...); !sixSteps.MatchString(out) {
				t.Errorf("it printed\n%swant\n%s", out, sixSteps)
			}
		})
	}
}

// generateTypes writes the types that openapi-typescript generates from the document to a directory, and links the
// packages of the TypeScript example there.
func generateTypes(t *testing.T, dir string) {
	t.Helper()
	packages := rig.Root() + "/.cache/npm-typescript/node_modules"
	if _, err := os.Stat(packages); err != nil {
		t.Fatalf("%v: run scripts/ops-install typescript", err)
	}
	if err := os.Symlink(packages, dir+"/node_modules"); err != nil {
		t.Fatal(err)
	}
	run(t, "", dir, packages+"/.bin/openapi-typescript", rig.Root()+"/api/openapi.yaml", "--output", "api.d.ts")
}

// The example in TypeScript takes them, too, with types generated from the document, and they hold.
func TestOpsTypeScriptExample(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(rig.Root()+"/examples/typescript")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir + "/node_modules"); err != nil { // of somebody who tried it
		t.Fatal(err)
	}
	generateTypes(t, dir)
	run(t, "", dir, tsc(), "--noEmit", "false", "--outDir", "build")
	if out := run(t, withToken(t).URL, dir, "node", "build/six_steps.js"); !sixSteps.MatchString(out) {
		t.Errorf("it printed\n%swant\n%s", out, sixSteps)
	}
}

// The tests of the clients.
func TestOpsClientTests(t *testing.T) {
	for name, command := range map[string][]string{
		"go":            {"go", "test", "./..."},
		"go, vet":       {"go", "vet", "./..."},
		"python":        {"python3", "-W", "error", "-m", "unittest"},
		"python, types": {"mypy", "--strict", "--cache-dir", os.DevNull, "recurgent", "tests", "../../examples/python"},
	} {
		dir, _, _ := strings.Cut(name, ",")
		t.Run(name, func(t *testing.T) {
			run(t, "http://127.0.0.1:9", "clients/"+dir, command...)
		})
	}
}

// The blocks of a client's README run as they stand there, one after the other. TypeScript compiles them with the
// settings of a new project.
func TestOpsReadmes(t *testing.T) {
	for name, c := range map[string]struct {
		fence    string
		run      func(t *testing.T, url, program string) string
		has, end string
	}{
		"python": {"```python\n", func(t *testing.T, url, program string) string {
			return run(t, url, "clients/python", "python3", "-c", program)
		}, "\nbecause\n", "counter\ntext tools\n"},
		"typescript": {"```ts\n", func(t *testing.T, url, program string) string {
			return runTypeScript(t, url, map[string]string{"main.ts": program})
		}, "", "calculator\ncounter\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(rig.Root() + "/clients/" + name + "/README.md")
			if err != nil {
				t.Fatal(err)
			}
			program := ""
			for _, part := range strings.Split(string(text), c.fence)[1:] {
				block, _, _ := strings.Cut(part, "```")
				program += block
			}
			title := rig.Program("\treturn strings.ToTitle(call.Args[0].(string)), nil", "strings")
			m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "counter.increment": {rig.ProgIncrement},
				"text tools.to title case": {title}})
			m.Answer("", "", rig.Text("Answer: because")) // a prediction
			d := rig.Start(t, m)
			if out := c.run(t, d.URL, program); !strings.Contains(out, "call.finished") ||
				!strings.Contains(out, c.has) || !strings.HasSuffix(out, c.end) {
				t.Errorf("it printed\n%s", out)
			}
		})
	}
}

// The generated types are those of the document.
func TestOpsGoClientIsCurrent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "api.gen.go")
	run(t, "", "clients/go", "go", "tool", "-modfile=tools/go.mod", "oapi-codegen", "-config", "api/config.yaml", "-o",
		file, "../../api/openapi.yaml")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(rig.Root() + "/clients/go/api/api.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("clients/go is not that of api/openapi.yaml: run make clients")
	}
}

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// jobLimit bounds the time of a job. The runner is killed after it.
const jobLimit = 2 * time.Minute

// A runner is a process that runs kernels in one of the compared ways. It speaks the protocol of serve.
type runner struct {
	name    string
	cmd     *exec.Cmd
	jobs    io.WriteCloser
	answers *json.Decoder
	stderr  bytes.Buffer
}

// These are the columns of the table. The others are compared with the first.
const (
	native  = "native"
	ours    = "compiled"
	onYaegi = "yaegi"
	python  = "CPython"
)

// servers are the runners that this binary can be. It starts itself with the variable serveAs set to one of their
// names.
var servers = map[string]func(job) (func() (any, error), error){
	onYaegi: prepareYaegi(),
}

const serveAs = "KERNELS_SERVE_AS"

// startAll starts every runner that this machine has, native first, because the others are compared with it. dir
// receives their files.
func startAll(dir string) ([]*runner, error) {
	binary, err := buildNative(dir)
	if err != nil {
		return nil, err
	}
	compiled, err := buildCompiled(dir)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	commands := []struct {
		name string
		cmd  *exec.Cmd
	}{{native, exec.Command(binary)}, {ours, exec.Command(compiled)}, {onYaegi, exec.Command(self)}}
	if path, err := exec.LookPath("python3"); err == nil {
		script, err := writePython(dir)
		if err != nil {
			return nil, err
		}
		commands = append(commands, struct {
			name string
			cmd  *exec.Cmd
		}{python, exec.Command(path, script, filepath.Join(filepath.Dir(script), "programs"))})
	}
	var out []*runner
	for _, c := range commands {
		c.cmd.Env = append(os.Environ(), serveAs+"="+c.name)
		r, err := start(c.name, c.cmd)
		if err != nil {
			stopAll(out)
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// start starts a runner. Its stderr is kept for error messages.
func start(name string, cmd *exec.Cmd) (*runner, error) {
	r := &runner{name: name, cmd: cmd}
	cmd.Stderr = &r.stderr
	var err error
	if r.jobs, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.answers = json.NewDecoder(out)
	return r, cmd.Start()
}

// do runs one job. It returns an error if the runner has ended or cannot run the kernel.
func (r *runner) do(j job) (answer, error) {
	late := time.AfterFunc(jobLimit, func() { _ = r.cmd.Process.Kill() })
	defer late.Stop()
	var a answer
	if err := json.NewEncoder(r.jobs).Encode(j); err != nil {
		return a, fmt.Errorf("%s: %w", r.name, err)
	}
	if err := r.answers.Decode(&a); err != nil {
		return a, fmt.Errorf("%s: %w: %.2000s", r.name, err, r.stderr.String())
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// stopAll ends the runners by closing their input, and waits for them.
func stopAll(runners []*runner) {
	for _, r := range runners {
		_ = r.jobs.Close()
		_ = r.cmd.Wait()
	}
}

//go:embed serve.go
var serveText string

//go:embed native.go.txt
var nativeText string

//go:embed serve.py
var pythonText string

// buildNative compiles all kernels into one binary, each as its own package, together with a copy of package recurgent,
// which they import.
func buildNative(dir string) (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	files := map[string]string{
		"go.mod": "module recurgent\n\ngo " + strings.TrimPrefix(strings.Fields(runtime.Version())[0], "go") +
			"\n",
		"main/main.go": nativeText, "main/serve.go": serveText,
	}
	sources, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "internal/runtime/recurgent", "*.go"))
	if err != nil {
		return "", err
	}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		files[filepath.Base(path)] = string(text)
	}
	var imports, table strings.Builder
	for _, k := range kernels {
		files[k.name+"/program.go"] = k.source()
		fmt.Fprintf(&imports, "\t%s_ \"recurgent/%s\"\n", k.name, k.name)
		fmt.Fprintf(&table, "\t\t%q: %s_.Run,\n", k.name, k.name)
	}
	files["main/table.go"] = "package main\n\nimport (\n\t\"recurgent\"\n" + imports.String() +
		")\n\nfunc table() map[string]func(*recurgent.Call) (any, error) {\n\treturn map[string]func(*recurgent.Call) (any, error){\n" + table.String() + "\t}\n}\n"
	dir = filepath.Join(dir, "native")
	if err := writeAll(dir, files); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-o", "kernels", "./main")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return filepath.Join(dir, "kernels"), nil
}

// writePython writes the Python programs and the script that runs them, and returns the script's path.
func writePython(dir string) (string, error) {
	dir = filepath.Join(dir, "python")
	files := map[string]string{"serve.py": pythonText}
	for _, k := range kernels { // in a subdirectory, so that json.py does not hide Python's json from serve.py
		files["programs/"+k.name+".py"] = k.python()
	}
	return filepath.Join(dir, "serve.py"), writeAll(dir, files)
}

// writeAll writes files, by slashed path, below dir.
func writeAll(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

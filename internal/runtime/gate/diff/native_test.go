package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/generate"
)

// exportData names the compiled form of every package that a program may import, and of what these import, as the linker reads it.
var exportData = sync.OnceValues(func() (string, error) {
	list := []string{"list", "-export", "-deps", "-f", "packagefile {{.ImportPath}}={{.Export}}"}
	for _, p := range allow.Packages() {
		if p.Path != allow.Host {
			list = append(list, p.Path)
		}
	}
	cmd := exec.Command("go", list...)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	out, err := cmd.Output()
	return strings.ReplaceAll(string(out), "packagefile unsafe=\n", ""), err
})

// nativePrograms compiles generated programs as one package by the Go toolchain and returns their results in order. The compiler is
// called directly: import path "tool", which programs have here, means something else to the go command. So names of types are the
// same byte by byte.
func nativePrograms(t testing.TB, programs []generate.Program) ([]result, error) {
	t.Helper()
	dir := t.TempDir()
	config, err := exportData()
	if err != nil {
		return nil, err
	}
	var host, files []string
	for _, name := range []string{"recurgent.go", "host.go"} {
		path, err := filepath.Abs("../../recurgent/" + name)
		if err != nil {
			return nil, err
		}
		host = append(host, path)
	}
	var table strings.Builder
	for i, p := range programs {
		name := filepath.Join(dir, fmt.Sprintf("program%d.go", i))
		if err := os.WriteFile(name, []byte(p.Text), 0o644); err != nil {
			return nil, err
		}
		files = append(files, name)
		fmt.Fprintf(&table, "\t\t{\"%d\", tool.%s, \"[]\"},\n", i, p.Main)
	}
	tableFile := filepath.Join(dir, "table.go")
	text := "package main\n\nimport \"tool\"\n\nfunc table() []job {\n\treturn []job{\n" + table.String() + "\t}\n}\n"
	if err := os.WriteFile(tableFile, []byte(text), 0o644); err != nil {
		return nil, err
	}
	driver, err := os.ReadFile("testdata/driver.go.txt")
	if err != nil {
		return nil, err
	}
	driverFile := filepath.Join(dir, "driver.go")
	if err := os.WriteFile(driverFile, driver, 0o644); err != nil {
		return nil, err
	}
	b := &native{dir: dir, config: config}
	b.compile("recurgent", host...)
	b.compile("tool", files...)
	b.compile("main", driverFile, tableFile)
	b.run("go", "tool", "link", "-importcfg", b.importConfig(), "-o", filepath.Join(dir, "native"), filepath.Join(dir, "main.a"))
	if b.err != nil {
		return nil, b.err
	}
	return runJobs(filepath.Join(dir, "native"), len(programs))
}

// runJobs runs all jobs of a native binary, which is started again behind a job of which it dies.
func runJobs(binary string, count int) ([]result, error) {
	var out []result
	for len(out) < count {
		var stderr bytes.Buffer
		cmd := exec.Command(binary, strconv.Itoa(len(out)))
		cmd.Stderr = &stderr
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		late := time.AfterFunc(jobLimit, func() { _ = cmd.Process.Kill() })
		d := json.NewDecoder(pipe)
		for {
			var r result
			if d.Decode(&r) != nil {
				break
			}
			out = append(out, r)
			late.Reset(jobLimit)
		}
		late.Stop()
		if err := cmd.Wait(); err != nil && len(out) < count {
			out = append(out, result{Name: dies, Panic: fmt.Sprintf("%v: %.1000s", err, stderr.String())})
		}
	}
	return out, nil
}

// jobLimit is how long one program may run, and dies the name of the result of one that natively ends the process.
const (
	jobLimit = 20 * time.Second
	dies     = "dies"
)

// native builds one binary; the first failure stays.
type native struct {
	dir, config string
	err         error
}

func (b *native) importConfig() string {
	name := filepath.Join(b.dir, "importcfg")
	if err := os.WriteFile(name, []byte(b.config), 0o644); err != nil && b.err == nil {
		b.err = err
	}
	return name
}

func (b *native) compile(path string, files ...string) {
	object := filepath.Join(b.dir, path+".a")
	b.run("go", append([]string{"tool", "compile", "-p", path, "-complete", "-pack", "-c", "2", "-importcfg", b.importConfig(), "-o", object}, files...)...)
	b.config += "packagefile " + path + "=" + object + "\n"
}

func (b *native) run(name string, args ...string) []byte {
	if b.err != nil {
		return nil
	}
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.err = fmt.Errorf("%s %s: %w: %.4000s%.4000s", filepath.Base(name), strings.Join(args[:min(2, len(args))], " "), err, stderr.String(), out)
	}
	return out
}

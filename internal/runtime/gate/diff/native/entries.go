package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/corpus"
)

// RunEntries compiles programs, each as its own package, into one binary with the go command, and runs their calls. The
// result of call i of an entry is under "name#i". host is the directory of package recurgent.
func RunEntries(dir, host string, entries []corpus.Entry) (map[string]Result, error) {
	binary, err := buildEntries(dir, host, entries)
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	run := exec.Command(binary)
	run.Stderr = &stderr
	data, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("native run: %w\n%s", err, stderr.String())
	}
	out := map[string]Result{}
	for line := range bytes.Lines(data) {
		var r Result
		if json.Unmarshal(line, &r) == nil { // a program may have printed other lines
			out[r.Name] = asTool(r)
		}
	}
	return out, nil
}

var ownPath = regexp.MustCompile(`recurgent/p\d+`) // the path of a program's package

// asTool gives the program's package the path that it has in the daemon.
func asTool(r Result) Result {
	r.Value = ownPath.ReplaceAll(r.Value, []byte("tool"))
	for _, s := range []*string{&r.Error, &r.Type, &r.Encode, &r.Panic} {
		*s = ownPath.ReplaceAllString(*s, "tool")
	}
	return r
}

// buildEntries writes a module with a copy of package recurgent, the programs and the driver, and builds it.
func buildEntries(dir, host string, entries []corpus.Entry) (binary string, err error) {
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
	}
	version := strings.TrimPrefix(strings.Fields(runtime.Version())[0], "go")
	write("go.mod", "module recurgent\n\ngo "+version+"\n")
	for _, pattern := range []string{"*.go", "html/*.go", "html/internal/*/*.go", "html/internal/*/*/*.go"} {
		names, _ := filepath.Glob(filepath.Join(host, pattern))
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return "", err
			}
			if !strings.HasSuffix(name, "_test.go") {
				write(strings.TrimPrefix(name, host+"/"), strings.ReplaceAll(string(text), `"`+allow.HostPath,
					`"`+allow.Host))
			}
		}
	}
	write("driver/main.go", driver)
	var imports, table strings.Builder
	for i, e := range entries {
		write(fmt.Sprintf("p%d/program.go", i), e.Source)
		fmt.Fprintf(&imports, "\tp%d \"recurgent/p%d\"\n", i, i)
		for j, args := range e.Calls {
			fmt.Fprintf(&table, "\t\t{%q, p%d.Run, %q},\n", fmt.Sprintf("%s#%d", e.Name, j), i, args)
		}
	}
	write("driver/table.go", "package main\n\nimport (\n"+imports.String()+
		")\n\nfunc table() []job {\n\treturn []job{\n"+table.String()+"\t}\n}\n")
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "native")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "./driver")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOGC=", "GODEBUG=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

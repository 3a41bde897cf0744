// Package native builds programs with the installed Go toolchain and runs them, as the reference for the differential
// tests. Only tests import it.
package native

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/generate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/std"
)

// A Result is the outcome of a call.
type Result struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value,omitempty"`
	Error   string          `json:"error,omitempty"`
	Type    string          `json:"type,omitempty"`
	Encode  string          `json:"encode,omitempty"` // why the value has no JSON
	Panic   string          `json:"panic,omitempty"`
	Line    int             `json:"line,omitempty"` // of the program, where the panic started
	Context json.RawMessage `json:"context,omitempty"`
}

// These are names of results for programs that have no outcome.
const (
	Refused = "refused" // the Go compiler itself fails on the program
	Dies    = "dies"    // the program ends the process, or runs longer than jobLimit; Panic has the details
)

const jobLimit = 20 * time.Second

// driver is package main of a native binary without func table() []job, which lists the calls. The binary writes one
// Result per line. Its argument is the number of calls to skip.
//
//go:embed driver.go.txt
var driver string

const internalError = "internal compiler error"

var compilerError = regexp.MustCompile(`program(\d+)\.go:\d+:\d+: ` + internalError)

// Run compiles generated programs into one binary, runs them, and returns their results in order. If the compiler fails
// in a package that they import, the error says so (CompilerFails), and each can be run by itself. It is safe for
// concurrent use.
func Run(programs []generate.Program) ([]Result, error) {
	dir, err := os.MkdirTemp("", "native")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	kept := slices.Clone(programs)
	for {
		if len(kept) == 0 {
			return slices.Repeat([]Result{{Name: Refused}}, len(programs)), nil
		}
		binary, err := build(dir, kept)
		if err != nil {
			// Only internal compiler errors are expected. The program that causes one is left out, and the rest is
			// built again.
			i, is := causes(err, len(kept))
			if !is {
				return nil, err
			}
			kept = slices.Delete(kept, i, i+1)
			continue
		}
		results, err := runJobs(binary, len(kept))
		if err != nil {
			return nil, err
		}
		out := make([]Result, len(programs))
		for i, p := range programs {
			if len(kept) > 0 && kept[0].Main == p.Main {
				out[i] = results[0]
				results, kept = results[1:], kept[1:]
			} else {
				out[i].Name = Refused
			}
		}
		return out, nil
	}
}

// CompilerFails reports whether the compiler itself failed.
func CompilerFails(err error) bool { return err != nil && strings.Contains(err.Error(), internalError) }

// causes returns the place of the program on which the compiler itself failed, out of count. An error in a package that
// the programs import has no place unless there is only one program.
func causes(err error, count int) (place int, is bool) {
	if m := compilerError.FindStringSubmatch(err.Error()); m != nil {
		place, _ = strconv.Atoi(m[1])
		return place, true
	}
	return 0, count == 1 && CompilerFails(err)
}

// build compiles programs as one package. It calls the compiler directly, because the import path "tool" of programs
// means something else to the go command. Names of types are then identical byte by byte.
func build(dir string, programs []generate.Program) (string, error) {
	config, err := std.ExportData()
	if err != nil {
		return "", err
	}
	b := &builder{dir: dir, config: config}
	var files []string
	var table strings.Builder
	for i, p := range programs {
		files = append(files, b.write(fmt.Sprintf("program%d.go", i), p.Text))
		fmt.Fprintf(&table, "\t\t{\"%d\", tool.%s, \"[]\"},\n", i, p.Main)
	}
	b.compile("tool", files...)
	b.compile("main", b.write("driver.go", driver),
		b.write("table.go", "package main\n\nimport \"tool\"\n\nfunc table() []job {\n\treturn []job{\n"+table.String()+
			"\t}\n}\n"))
	binary := filepath.Join(dir, "native")
	b.run("link", "-s", "-w", "-importcfg", b.write("linkcfg", b.config), "-o", binary, filepath.Join(dir, "main.a"))
	return binary, b.err
}

// A builder builds one binary. It keeps the first error and does nothing after it.
type builder struct {
	dir, config string
	err         error
}

// write writes a file into the directory and returns its path.
func (b *builder) write(name, text string) string {
	name = filepath.Join(b.dir, name)
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil && b.err == nil {
		b.err = err
	}
	return name
}

// compile compiles a package and adds it to the import configuration of later ones.
func (b *builder) compile(path string, files ...string) {
	object := filepath.Join(b.dir, path+".a")
	b.run("compile", append([]string{"-p", path, "-complete", "-pack", "-dwarf=false", "-c", "2", "-importcfg",
		b.write("importcfg", allow.ImportMap()+b.config), "-o", object}, files...)...)
	b.config += "packagefile " + path + "=" + object + "\n"
}

// run runs a tool of the Go toolchain.
func (b *builder) run(tool string, args ...string) {
	if b.err != nil {
		return
	}
	cmd := exec.Command("go", append([]string{"tool", tool}, args...)...)
	cmd.Env = append(os.Environ(), "GODEBUG=", "GOGC=400") // takes a quarter less time than 100
	if out, err := cmd.CombinedOutput(); err != nil {
		b.err = fmt.Errorf("go tool %s: %w: %.4000s", tool, err, out)
	}
}

// runJobs runs all jobs of a native binary. If a job ends the process, it restarts the binary after that job.
func runJobs(binary string, count int) ([]Result, error) {
	var out []Result
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
		// SIGQUIT makes the process print its stacks.
		late := time.AfterFunc(jobLimit, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
		d := json.NewDecoder(pipe)
		for {
			var r Result
			if d.Decode(&r) != nil {
				break
			}
			out = append(out, r)
			late.Reset(jobLimit)
		}
		late.Stop()
		if err := cmd.Wait(); err != nil && len(out) < count {
			out = append(out, Result{Name: Dies, Panic: fmt.Sprintf("%v: %.1000s", err, stderr.String())})
		}
	}
	return out, nil
}

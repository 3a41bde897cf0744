// Package diff holds the differential test: every program of the corpus is compiled natively by the Go toolchain and run through gate
// and interpreter; values, errors with their text, and panics must be the same. The corpus is data: a difference that
// somebody finds becomes one more entry in testdata/corpus.
package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/corpus"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/native"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// An entry is one program of the corpus with the calls to compare. A line "//args [...]" is one call.
type entry struct {
	name, source string
	calls        []string // JSON arrays
}

type result = native.Result

func readCorpus(t testing.TB) []entry {
	t.Helper()
	all, err := corpus.Read("testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	for _, e := range all {
		out = append(out, entry{e.Name, e.Source, e.Calls})
	}
	return out
}

// TestDifferential compares every call of every program of the corpus with its native run. DIFF_ONLY lists, with commas, what names of
// the programs to run contain.
func TestDifferential(t *testing.T) {
	if testing.Short() {
		t.Skip("long: generated and recorded programs, and the Go project's tests, against the toolchain")
	}
	programs := readCorpus(t)
	if only := os.Getenv("DIFF_ONLY"); only != "" {
		programs = slices.DeleteFunc(programs, func(e entry) bool {
			return !slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return strings.Contains(e.name, part) })
		})
	}
	want := runNatively(t, programs)
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range programs {
		t.Run(e.name, func(t *testing.T) {
			for i, got := range runHere(t, g, e) {
				w, ok := want[got.Name]
				if !ok {
					t.Fatalf("call %d has no native result", i)
				}
				compare(t, got, w)
			}
		})
	}
}

func compare(t *testing.T, got, want result) {
	t.Helper()
	if got.Error != want.Error || got.Type != want.Type {
		t.Errorf("%s: got error %q (%s), natively %q (%s)", got.Name, got.Error, got.Type, want.Error, want.Type)
	}
	if got.Panic != want.Panic {
		t.Errorf("%s: got panic %q, natively %q", got.Name, got.Panic, want.Panic)
	}
	if got.Encode != want.Encode {
		t.Errorf("%s: got encoding error %q, natively %q", got.Name, got.Encode, want.Encode)
	}
	if !sameJSON(got.Value, want.Value) {
		t.Errorf("%s: got value\n%s\nnatively\n%s%s", got.Name, got.Value, want.Value, firstDifference(got.Value, want.Value))
	}
	if !sameJSON(got.Context, want.Context) {
		t.Errorf("%s: got context %s, natively %s", got.Name, got.Context, want.Context)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// firstDifference names the key or index at which two objects or arrays differ.
func firstDifference(a, b json.RawMessage) string {
	var x, y map[string]any
	if json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil {
		out := ""
		for k := range y {
			if !reflect.DeepEqual(x[k], y[k]) {
				out += fmt.Sprintf("\n  key %q: got %v, natively %v", k, x[k], y[k])
			}
		}
		return out
	}
	var s, u []any
	if json.Unmarshal(a, &s) == nil && json.Unmarshal(b, &u) == nil {
		for i := range min(len(s), len(u)) {
			if !reflect.DeepEqual(s[i], u[i]) {
				return fmt.Sprintf("\n  index %d: got %v, natively %v", i, s[i], u[i])
			}
		}
	}
	return ""
}

// runHere runs an entry's calls through gate and interpreter.
func runHere(t *testing.T, g *gate.Gate, e entry) []result {
	t.Helper()
	p, refusal := g.Check(e.source)
	if refusal != nil {
		t.Fatalf("refused: %s (%s) %q", refusal.Message, refusal.Hint, refusal.Errors)
	}
	c, err := interp.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out []result
	for i, args := range e.calls {
		call, err := newCall(args)
		if err != nil {
			t.Fatal(err)
		}
		c.Begin(time.Unix(1790000000, 0), 1)
		r := result{Name: fmt.Sprintf("%s#%d", e.name, i)}
		value, err, panicked := c.Run(call)
		switch {
		case panicked != nil:
			r.Panic = panicked.Message
		case err != nil:
			f := recurgent.AsFailure(err)
			r.Error, r.Type = f.Message, f.Type
		default:
			raw, err := interp.Encode(value)
			if err != nil {
				r.Encode = err.Error()
			}
			r.Value = raw
		}
		r.Context, _ = json.Marshal(call.Context)
		out = append(out, r)
	}
	if err := c.CheckTypes(); err != nil {
		t.Errorf("after the runs: %v", err)
	}
	return out
}

func newCall(args string) (*recurgent.Call, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(args), &raw); err != nil {
		return nil, fmt.Errorf("%s: %w", args, err)
	}
	return recurgent.New(recurgent.Input{Role: "tester", Method: "run", Args: raw}, host{})
}

// runNatively compiles all programs into one binary of the Go toolchain and returns the results by call.
func runNatively(t *testing.T, corpus []entry) map[string]result {
	t.Helper()
	binary, err := buildNatively(t.TempDir(), corpus)
	if err != nil {
		t.Fatalf("the corpus does not compile natively: %v", err)
	}
	return runBinary(t, binary)
}

// runBinary runs what buildNatively has built and returns the results by call.
func runBinary(t *testing.T, binary string) map[string]result {
	t.Helper()
	var stderr bytes.Buffer
	run := exec.Command(binary)
	run.Stderr = &stderr
	data, err := run.Output()
	if err != nil {
		t.Fatalf("native run: %v\n%s", err, stderr.String())
	}
	out := map[string]result{}
	for line := range bytes.Lines(data) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			continue // printed by a program
		}
		out[r.Name] = asTool(r)
	}
	return out
}

var ownPath = regexp.MustCompile(`recurgent/p\d+`) // of a program's package, natively

// asTool gives the program's package the path that it has here.
func asTool(r result) result {
	r.Value = ownPath.ReplaceAll(r.Value, []byte("tool"))
	for _, s := range []*string{&r.Error, &r.Type, &r.Encode, &r.Panic} {
		*s = ownPath.ReplaceAllString(*s, "tool")
	}
	return r
}

// buildNatively compiles all programs into one binary in dir, each a package of its own.
func buildNatively(dir string, corpus []entry) (binary string, err error) {
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
		names, _ := filepath.Glob(filepath.Join("../../recurgent", pattern))
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return "", err
			}
			if !strings.HasSuffix(name, "_test.go") {
				write(strings.TrimPrefix(name, "../../recurgent/"), strings.ReplaceAll(string(text), `"`+allow.HostPath, `"`+allow.Host))
			}
		}
	}
	write("driver/main.go", native.Driver)
	var imports, table strings.Builder
	for i, e := range corpus {
		write(fmt.Sprintf("p%d/program.go", i), e.source)
		fmt.Fprintf(&imports, "\tp%d \"recurgent/p%d\"\n", i, i)
		for j, args := range e.calls {
			fmt.Fprintf(&table, "\t\t{%q, p%d.Run, %q},\n", fmt.Sprintf("%s#%d", e.name, j), i, args)
		}
	}
	write("driver/table.go", "package main\n\nimport (\n"+imports.String()+")\n\nfunc table() []job {\n\treturn []job{\n"+table.String()+"\t}\n}\n")
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

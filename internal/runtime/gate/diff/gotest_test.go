package diff

//lint:file-ignore SA1019 it reads the toolchain's own archives and tree

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/gotest"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	gatereport "github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/yaegi"
)

const (
	goTests     = "testdata/gotest"
	goTestsPage = "../../../../docs/go-tests.md"
)

func readGoTests(t testing.TB) *gotest.Bundle {
	t.Helper()
	b, err := gotest.Read(goTests)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGoProject runs the tests of the Go project that keep to the policy, natively and by the engines, and compares what they print and how
// they end. All of them end well: a test that fails panics.
func TestGoProject(t *testing.T) {
	if testing.Short() {
		t.Skip("long: generated and recorded programs, and the Go project's tests, against the toolchain")
	}
	b := readGoTests(t)
	names := b.Runs()
	corpus := make([]entry, len(names))
	sources := make([]string, len(names))
	for i, name := range names {
		sources[i] = b.Programs[name]
		corpus[i] = entry{name: name, source: sources[i], calls: []string{"[]"}}
	}
	dir, binary, built := t.TempDir(), "", make(chan error)
	go func() {
		var err error
		binary, err = buildNatively(dir, corpus)
		built <- err
	}()
	got := runHereUnder(t, pressures()[0], sources)
	if err := <-built; err != nil {
		t.Fatalf("the tests do not compile natively: %v", err)
	}
	natively := runBinary(t, binary)
	onYaegi := goProjectOnYaegi(t, names, sources)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			want, ok := natively[name+"#0"]
			if !ok || want.Panic != "" {
				t.Fatalf("it ends natively with %q", want.Panic)
			}
			sameEnd(t, "ssa", got[i], want)
			if r, ok := onYaegi[name]; ok {
				sameEnd(t, "yaegi", r, want)
			}
		})
	}
	t.Logf("%d programs ran, %d of them on yaegi as well", len(names), len(onYaegi))
}

func sameEnd(t *testing.T, engine string, got, want result) {
	t.Helper()
	if got.Panic != want.Panic || got.Error != want.Error || got.Encode != want.Encode || !sameJSON(got.Value, want.Value) {
		t.Errorf("%s: got value %s, error %q, panic %q\nnatively %s, error %q, panic %q", engine, got.Value, got.Error, got.Panic, want.Value, want.Error, want.Panic)
	}
}

// goProjectOnYaegi runs the programs that yaegi gets, with loops or without.
func goProjectOnYaegi(t *testing.T, names, sources []string) map[string]result {
	t.Helper()
	g, err := gate.New(gate.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]result{}
	for i, source := range sources {
		p, refusal := g.Check(source)
		if refusal != nil || gate.Choose(p, gatereport.EngineYaegi) != gatereport.EngineYaegi {
			continue
		}
		c, err := yaegi.Compile(p)
		if err != nil {
			continue // the runner gives what yaegi refuses to the other engine
		}
		out[names[i]] = runOnce(c)
		c.Close()
	}
	return out
}

// TestGoProjectIsWhole holds that each test of the Go project either runs or is left out with a reason, and that the gate and the engine
// refuse what they are said to refuse, with these words.
func TestGoProjectIsWhole(t *testing.T) {
	b := readGoTests(t)
	g, err := gate.New(gate.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range b.Left {
		source, there := b.Programs[name]
		refused := strings.HasPrefix(why, gotest.GateRefuses) || strings.HasPrefix(why, gotest.EngineRefuses)
		if there != refused {
			t.Errorf("%s: in the archives %v, left out because: %s", name, there, why)
		}
		if there && refused && refusalOf(g, source) != why {
			t.Errorf("%s: %q\nthe list says %q", name, refusalOf(g, source), why)
		}
	}
	page, err := os.ReadFile(goTestsPage)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), b.Table()) {
		t.Errorf("docs/go-tests.md has other figures; run go test -run TestMakeGoProject -update here. They are\n%s", b.Table())
	}
	if names, version := goProjectTests(t); version == b.Go {
		all := slices.Sorted(maps.Keys(b.Left))
		all = append(all, b.Runs()...)
		slices.Sort(all)
		if !slices.Equal(all, names) {
			t.Errorf("the bundle has %d tests, %s has %d", len(all), version, len(names))
		}
	}
}

// refusalOf says who refuses a program and why; "" when it may run.
func refusalOf(g *gate.Gate, source string) string {
	p, refusal := g.Check(source)
	if refusal != nil {
		first, _, _ := strings.Cut(refusal.Message, " (also in line") // and without what to write instead
		first, _, _ = strings.Cut(first, ". ")
		return gotest.GateRefuses + first
	}
	c, err := interp.Compile(p)
	if err != nil {
		return gotest.EngineRefuses + err.Error()
	}
	c.Close()
	return ""
}

// goProjectTests returns the paths of the tests of the Go toolchain at hand, and its version. Toolchains that come as modules have none.
func goProjectTests(t testing.TB) (names []string, version string) {
	t.Helper()
	root := filepath.Join(runtime.GOROOT(), "test")
	if _, err := os.Stat(filepath.Join(root, "fixedbugs")); err != nil {
		return nil, ""
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") {
			name, _ := filepath.Rel(root, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names, strings.Fields(runtime.Version())[0]
}

func quote(s string) json.RawMessage {
	data, _ := json.Marshal(s)
	return data
}

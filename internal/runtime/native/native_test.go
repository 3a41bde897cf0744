package native_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rewrite"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// The test binary is its own runner, and the process that runs the tools.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == wire.RunnerArg {
		os.Exit(worker.Main())
	}
	code := m.Run()
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// shared is used by all tests, so the packages are compiled once.
var shared struct {
	once    sync.Once
	dir     string
	pool    *sandbox.Pool
	made    runtimetest.Executables // executables that the pool runs; tests add programs
	builder *native.Builder
	err     error
}

// keyIn returns the installation key kept in the directory.
func keyIn(dir string) (*seal.Key, error) {
	at, err := beneath.Open(dir)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	return seal.Open(at)
}

func builder(t testing.TB) (*native.Builder, *sandbox.Pool) {
	t.Helper()
	shared.once.Do(func() {
		o := sandbox.DefaultOptions()
		o.Blank, o.Native = 0, true
		if shared.pool, shared.err = sandbox.New(o); shared.err != nil {
			return
		}
		shared.pool.UseCompiler(&shared.made)
		if shared.dir, shared.err = os.MkdirTemp("", "native"); shared.err != nil {
			return
		}
		bo := native.DefaultOptions()
		bo.Timeout = time.Hour // builds yield to everything else that runs
		if bo.Toolchain, shared.err = native.Find(""); shared.err != nil {
			return
		}
		if bo.Key, shared.err = keyIn(shared.dir); shared.err != nil {
			return
		}
		bo.Dir, bo.Sources, bo.Run = shared.dir, runtime.NativeSources, shared.pool.RunTools
		if shared.builder, shared.err = native.New(bo); shared.err != nil {
			return
		}
		native.ShareGoCache(shared.builder, goCache(t))
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.builder, shared.pool
}

// textOf returns the text that is compiled for a program.
func textOf(t testing.TB, source string) string {
	t.Helper()
	g, err := gate.New(gate.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	p, refusal := g.Check(source)
	if refusal != nil {
		t.Fatalf("%+v of\n%s", refusal, source)
	}
	text, err := rewrite.Text(p, source)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// built is an executable with its path and its name.
type built struct {
	path  string
	bytes []byte
}

// build compiles a program.
func build(t testing.TB, b *native.Builder, source string) (built, error) {
	t.Helper()
	x, err := b.Compile(t.Context(), agent.Checksum(source), textOf(t, source), nil)
	if err != nil {
		return built{}, err
	}
	defer x.File.Close()
	data, err := io.ReadAll(x.File)
	if err != nil {
		t.Fatal(err)
	}
	return built{x.File.Name(), data}, nil
}

// goCache returns the go command's cache directory.
func goCache(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// A program is built once, until its executable is pruned.
func TestBuild(t *testing.T) {
	b, _ := builder(t)
	first, err := build(t, b, program)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(first.path)
	if err != nil || info.Mode() != 0o555 || info.Size() > 4<<20 {
		t.Fatalf("got %v %v", info, err)
	}
	again, err := build(t, b, program)
	if err != nil || !bytes.Equal(again.bytes, first.bytes) {
		t.Errorf("it has other bytes: %v", err)
	}
	if same, err := os.Stat(again.path); err != nil || !os.SameFile(info, same) ||
		!same.ModTime().After(info.ModTime()) {
		t.Errorf("it was built again, or does not count as used: %v", err)
	}
	other, err := build(t, b, strings.Replace(program, `"a": 1`, `"z": 1`, 1))
	if err != nil || other.path == first.path {
		t.Errorf("another program: got %v %v", other.path, err)
	}
}

// Compiled packages and executables that were replaced while no builder used the cache are built again. None of the
// replacements is linked or returned.
func TestPlanted(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	first, p := builder(t)
	was, err := build(t, first, program)
	if err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(shared.dir, "packages-*", "*support.a"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("compiled packages: %v, %v", archives, err)
	}
	sound, err := os.ReadFile(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	planted := bytes.ReplaceAll(sound, []byte("RecurgentNative"), []byte("PlantedByOthers"))
	if bytes.Equal(planted, sound) {
		planted = append(bytes.Clone(sound), "planted"...)
	}
	if err := errors.Join(os.WriteFile(archives[0], planted, 0o644), os.Chmod(was.path, 0o755),
		os.WriteFile(was.path, []byte("\x7fELF planted"), 0o755)); err != nil {
		t.Fatal(err)
	}
	bo := native.DefaultOptions()
	bo.Timeout = time.Hour
	if bo.Toolchain, err = native.Find(""); err == nil {
		bo.Key, err = keyIn(shared.dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	bo.Dir, bo.Sources, bo.Run = shared.dir, runtime.NativeSources, p.RunTools
	b, err := native.New(bo)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	native.ShareGoCache(b, strings.TrimSpace(string(out)))
	again, err := build(t, b, program)
	if err != nil || !bytes.Equal(again.bytes, was.bytes) {
		t.Errorf("it has other bytes than it had: %v", err)
	}
	if now, err := os.ReadFile(archives[0]); err != nil || !bytes.Equal(now, sound) {
		t.Errorf("the package is not what it was: %v", err)
	}
}

// Failed builds leave nothing behind except refusals of programs, and the error names the step.
func TestBuildFails(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	b, _ := builder(t)
	_, err := b.Compile(t.Context(), "a text that does not compile", "package tool\n\nfunc f() {}\n", nil)
	if fault, ok := errors.AsType[*native.BuildError](err); !ok ||
		!strings.Contains(fault.Text, "RecurgentNativeProgram") {
		t.Errorf("a text that does not compile: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Compile(ctx, "key", "text", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled build: got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(shared.dir, "tmp", "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

// If the toolchain disappears or is replaced, builds fail with that reason, existing executables remain, and builds
// work again once it is back.
func TestToolchainChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	shared, p := builder(t)
	found, err := native.Find("")
	if err != nil {
		t.Fatal(err)
	}
	top, err := os.MkdirTemp("", "toolchain") // accessible to every user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	root, version := filepath.Join(top, "go"), filepath.Join(top, "go", "VERSION")
	if err := errors.Join(os.Chmod(top, 0o755), exec.Command("mkdir", "-p", root+"/pkg").Run(),
		exec.Command("cp", "-r", found.Root+"/pkg/tool", root+"/pkg/").Run(),
		exec.Command("cp", found.Root+"/VERSION", root).Run()); err != nil {
		t.Fatal(err)
	}
	bo := native.DefaultOptions()
	if bo.Toolchain, err = native.ToolchainAt(root); err != nil {
		t.Fatal(err)
	}
	bo.Dir, bo.Sources, bo.Run = t.TempDir(), runtime.NativeSources, p.RunTools
	if bo.Key, err = keyIn(bo.Dir); err != nil {
		t.Fatal(err)
	}
	b, err := native.New(bo)
	if err == nil {
		err = native.SharePackages(t.Context(), b, shared)
	}
	if err != nil {
		t.Fatal(err)
	}
	first, err := build(t, b, program)
	if err != nil {
		t.Fatal(err)
	}
	another := strings.Replace(program, `"a": 1`, `"y": 1`, 1)
	fails := func(want string) {
		t.Helper()
		_, err := build(t, b, another)
		if fault, ok := errors.AsType[*native.BuildError](
			err); !ok || fault.Step != "toolchain" || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if again, err := build(t, b, program); err != nil || !bytes.Equal(again.bytes, first.bytes) {
			t.Errorf("what was built: %v", err)
		}
	}
	was, err := os.ReadFile(version)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(version, []byte(found.Version+"9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	fails("holds \"" + found.Version + "9\" now")
	if err := os.Rename(root, root+".gone"); err != nil {
		t.Fatal(err)
	}
	fails("no such file")
	if err := errors.Join(os.Rename(root+".gone", root), os.WriteFile(version, was, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := build(t, b, another); err != nil {
		t.Errorf("with the toolchain back: %v", err)
	}
}

const program = `package whatever

import ("fmt"; "strings"; "time"; "recurgent"; "math/rand"; "maps"; "slices"; "net/url")

var table = map[string]int{"a": 1, "b": 2}
var u, uerr = url.Parse("http://x/y")
var order = other + 1
var other = len(table)

type T struct { A int; b string }

func (t *T) M() string { return fmt.Sprintf("%T %v", t, t.A) }

func Run(call *recurgent.Call) (any, error) {
	unused := 1
	for _, x := range []int{1} {
		println("x", 1)
		if v := x; v > 0 {
		}
	}
	out := []string{}
loop:
	for k, v := range table {
		for k := range map[int]bool{3: true, 1: true} {
			out = append(out, fmt.Sprint(k))
			if k > 100 { continue loop }
		}
		k := k + "!"
		out = append(out, fmt.Sprint(k, v))
	}
	table["c"]++
	fmt.Println("no")
	t := &T{A: rand.Intn(100)}
	ks := slices.Collect(maps.Keys(table))
	return []any{out, time.Now(), t.M(), strings.ToUpper("x"), ks, u.String(), order}, nil
}
`

package native_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// The test binary is its own runner, and what runs the tools.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == wire.RunnerArg {
		worker.EngineTested = "yes"
		os.Exit(worker.Main())
	}
	code := m.Run()
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// shared has what all tests build with: the packages are compiled once.
var shared struct {
	once    sync.Once
	dir     string
	pool    *sandbox.Pool
	made    runtimetest.Executables // what the pool runs: programs are added
	builder *native.Builder
	err     error
}

// keyIn is the key of an installation in the directory.
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
		bo.Timeout = time.Hour // builds give way to all else that runs
		if bo.Toolchain, shared.err = native.Find(""); shared.err != nil {
			return
		}
		if bo.Key, shared.err = keyIn(shared.dir); shared.err != nil {
			return
		}
		bo.Dir, bo.Sources, bo.Text, bo.Run = shared.dir, runtime.NativeSources, shared.pool.NativeText, shared.pool.RunTools
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

// goCache returns the go command's.
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
	first, err := b.Build(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(first.Path)
	if err != nil || info.Mode() != 0o555 || info.Size() > 4<<20 {
		t.Fatalf("got %v %v", info, err)
	}
	again, err := b.Build(t.Context(), program)
	if err != nil || again.Sum != first.Sum {
		t.Errorf("got %v %v, want %v", again, err, first)
	}
	if same, err := os.Stat(again.Path); err != nil || !os.SameFile(info, same) || !same.ModTime().After(info.ModTime()) {
		t.Errorf("it was built again, or does not count as used: %v", err)
	}
	other, err := b.Build(t.Context(), strings.Replace(program, `"a": 1`, `"z": 1`, 1))
	if err != nil || other.Digest == first.Digest {
		t.Errorf("another program: got %v %v", other, err)
	}
}

// What was put in the place of compiled packages and executables while no builder had the cache is built anew, and none of it is linked or returned.
func TestPlanted(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	first, p := builder(t)
	was, err := first.Build(t.Context(), program)
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
	if err := errors.Join(os.WriteFile(archives[0], planted, 0o644), os.Chmod(was.Path, 0o755), os.WriteFile(was.Path, []byte("\x7fELF planted"), 0o755)); err != nil {
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
	bo.Dir, bo.Sources, bo.Text, bo.Run = shared.dir, runtime.NativeSources, p.NativeText, p.RunTools
	b, err := native.New(bo)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	native.ShareGoCache(b, strings.TrimSpace(string(out)))
	again, err := b.Build(t.Context(), program)
	if err != nil || again.Sum != was.Sum {
		t.Errorf("got %+v, %v, want what it was, %+v", again, err, was)
	}
	data, err := os.ReadFile(again.Path)
	if sum, _ := sandbox.Sum(bytes.NewReader(data)); err != nil || sum != was.Sum {
		t.Errorf("the executable has other bytes than it was said to have: %v", err)
	}
	if now, err := os.ReadFile(archives[0]); err != nil || !bytes.Equal(now, sound) {
		t.Errorf("the package is not what it was: %v", err)
	}
}

// Builds that end in an error leave nothing behind, and say at which step.
func TestBuildFails(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	b, _ := builder(t)
	text := native.SetText(b, "package tool\n\nfunc f() {}\n")
	_, err := b.Build(t.Context(), program)
	if fault, ok := errors.AsType[*native.BuildError](err); !ok || !strings.Contains(fault.Text, "RecurgentNativeProgram") {
		t.Errorf("a text that does not compile: got %v", err)
	}
	text()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Build(ctx, program); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled build: got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(shared.dir, "tmp", "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

// Where the toolchain goes or another takes its place, builds fail and say so, what was built stays, and builds go on when it is back.
func TestToolchainChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	shared, p := builder(t)
	found, err := native.Find("")
	if err != nil {
		t.Fatal(err)
	}
	top, err := os.MkdirTemp("", "toolchain") // which every user reaches
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	root, version := filepath.Join(top, "go"), filepath.Join(top, "go", "VERSION")
	if err := errors.Join(os.Chmod(top, 0o755), exec.Command("mkdir", "-p", root+"/pkg").Run(), exec.Command("cp", "-r", found.Root+"/pkg/tool", root+"/pkg/").Run(),
		exec.Command("cp", found.Root+"/VERSION", root).Run()); err != nil {
		t.Fatal(err)
	}
	bo := native.DefaultOptions()
	if bo.Toolchain, err = native.ToolchainAt(root); err != nil {
		t.Fatal(err)
	}
	bo.Dir, bo.Sources, bo.Text, bo.Run = t.TempDir(), runtime.NativeSources, p.NativeText, p.RunTools
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
	first, err := b.Build(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	another := strings.Replace(program, `"a": 1`, `"y": 1`, 1)
	fails := func(want string) {
		t.Helper()
		_, err := b.Build(t.Context(), another)
		if fault, ok := errors.AsType[*native.BuildError](err); !ok || fault.Step != "toolchain" || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if again, err := b.Build(t.Context(), program); err != nil || again.Sum != first.Sum {
			t.Errorf("what was built: got %v %v", again, err)
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
	if _, err := b.Build(t.Context(), another); err != nil {
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

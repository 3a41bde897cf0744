package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// forNative makes a pool run executables and tools.
func forNative(o *Options) { o.Blank, o.Native = 0, true }

// testPrograms holds the static programs of testdata, which are built once.
var testPrograms struct {
	sync.Mutex
	dir   string
	built map[string]string
}

// programsDir is the environment variable with the directory of programs that are already built.
const programsDir = "SANDBOX_PROGRAMS"

// testProgram returns the path of a program of testdata, which every user may execute.
func testProgram(t testing.TB, name string) string {
	t.Helper()
	if dir := os.Getenv(programsDir); dir != "" {
		return filepath.Join(dir, name)
	}
	testPrograms.Lock()
	defer testPrograms.Unlock()
	if path, ok := testPrograms.built[name]; ok {
		return path
	}
	if testPrograms.dir == "" {
		dir, err := os.MkdirTemp("", "sandbox") // accessible to every user
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		testPrograms.dir, testPrograms.built = dir, map[string]string{}
	}
	path := filepath.Join(testPrograms.dir, name)
	build := exec.Command("go", "build", "-o", path, "./testdata/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	testPrograms.built[name] = path
	return path
}

// A launched executable is a program of testdata, or a copy of one, in the form in which the daemon finds it.
type launched struct {
	path string
	args []string
}

// compiled returns an executable with the behavior mode.
func compiled(t *testing.T, mode string) launched {
	t.Helper()
	return launched{testProgram(t, "compiled"), []string{mode}}
}

func (l launched) open() (*Executable, error) {
	return named{l.path, &report.Facts{Imports: []string{"of the gate"}}}.open(l.args...)
}

// found is a compiler that has built one executable for all programs.
type found struct{ launched }

func (f found) Engine() string { return report.EngineGo + " test" }

func (f found) Find(string) (*Executable, error) { return f.open() }

func (f found) Compile(context.Context, Compilation) (*Executable, error) {
	return nil, errors.New("there is no other")
}

// executablePool returns a pool in which all programs are the executable.
func executablePool(t *testing.T, h hooks, x launched) *Pool {
	t.Helper()
	p := testPool(t, forNative, h)
	if why := p.Status().NativeOff(); why != "" {
		t.Fatalf("nothing is launched: %s", why)
	}
	p.UseCompiler(found{x})
	return p
}

var nativeRunner = hooks{args: []string{wire.RunnerArg, "native"}}

// copied returns a copy of an executable with an additional byte, which ELF ignores.
func copied(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(to, append(data, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

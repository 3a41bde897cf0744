package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// forNative has a pool run executables and tools.
func forNative(o *Options) { o.Blank, o.Native = 0, true }

// testPrograms has the static programs of testdata, which are built once.
var testPrograms struct {
	sync.Mutex
	dir   string
	built map[string]string
}

// programsDir is the variable that names the directory of programs that are built already.
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
		dir, err := os.MkdirTemp("", "sandbox") // which every user reaches
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

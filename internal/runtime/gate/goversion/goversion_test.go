package goversion

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The name is that of the toolchain, whatever its patch release.
func TestName(t *testing.T) {
	t.Parallel()
	if v := runtime.Version() + "."; !strings.HasPrefix(v, Name+".") && !strings.HasPrefix(v, Name+"rc") {
		t.Errorf("got %s with %s", Name, runtime.Version())
	}
}

// A build with a later Go version, which the tags of its releases stand for here, fails with one message that says what to read.
func TestUnknownVersion(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"../interp", "../symbols", "../exports"} {
		out, err := exec.Command("go", "build", "-tags", "go1.27,go1.28", path).CombinedOutput()
		if err == nil {
			t.Errorf("%s compiles with an unknown Go version", path)
		}
		if text := string(out); !strings.Contains(text, "not known to the engine: see docs/upgrading-go.md") || strings.Count(text, ".go:") != 1 {
			t.Errorf("%s: got\n%s", path, text)
		}
	}
}

// toolchains returns what the Makefile knows.
func toolchains(t *testing.T) []string {
	makefile, err := os.ReadFile("../../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(regexp.MustCompile(`(?m)^KNOWN := (.*)$`).FindSubmatch(makefile)[1]))
}

// The Makefile lists the known versions: those that have a file here, the newest last.
func TestKnownVersions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("go1*.go")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range files {
		have = append(have, "go1."+strings.TrimSuffix(strings.TrimPrefix(f, "go1"), ".go"))
	}
	var known []string
	for _, v := range toolchains(t) {
		known = append(known, v[:strings.LastIndexByte(v, '.')])
	}
	if !slices.Equal(have, known) {
		t.Errorf("files for %q, the Makefile knows %q", have, known)
	}
}

// fakeGo stands for a go command of a version. It builds programs that do nothing.
const fakeGo = `#!/bin/sh
case $1 in
env) echo '%s' ;;
build)
	echo "built with $GOTOOLCHAIN" | sed 's/ *$//'
	while [ $# -gt 0 ]; do
		[ "$1" = -o ] && out=$2
		shift
	done
	case $out in */pack) echo '#!/bin/sh' >"$out" && chmod +x "$out" ;; esac
	;;
esac
`

// make takes the newest known toolchain where Go is newer, and leaves the choice to Go and to people elsewhere.
func TestMakeTakesKnownToolchain(t *testing.T) {
	t.Parallel()
	known := toolchains(t)
	newest := known[len(known)-1]
	for _, c := range []struct{ here, set, want string }{
		{"go1.90.1", "", newest},
		{"go1.90.1", "local", newest}, // as in the images of Go
		{"go1.90rc1", "auto", newest},
		{"devel go1.90-0123456", "", newest},
		{"go1.90.1", "go1.26.9", "go1.26.9"},
		{"go1.27.9", "", ""},
		{"go1.26.8", "local", "local"},
		{"go1.21.0", "", ""},
	} {
		dir := t.TempDir()
		fake := filepath.Join(dir, "go")
		script := fmt.Sprintf(fakeGo, c.here)
		if err := os.WriteFile(fake, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("make", "-s", "-C", "../../../..", "build", "GO="+fake, "BIN="+filepath.Join(dir, "bin"))
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOTOOLCHAIN=") }), "GOTOOLCHAIN="+c.set)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("make: %v\n%s", err, out)
		}
		if got := strings.Join(slices.Compact(strings.Split(strings.TrimSpace(string(out)), "\n")), ", "); got != strings.TrimSpace("built with "+c.want) { // each of several builds says so
			t.Errorf("with %s and GOTOOLCHAIN=%s: got %q, want %q", c.here, c.set, got, c.want)
		}
	}
}

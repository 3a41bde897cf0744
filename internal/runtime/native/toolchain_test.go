package native

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	found, err := Find("")
	if err != nil {
		t.Fatalf("tests run with a toolchain: %v", err)
	}
	if again, err := toolchainAt(found.Root); err != nil || again != found {
		t.Errorf("the toolchain by its directory: got %v %v, want %v", again, err, found)
	}
	if _, err := toolchainAt(t.TempDir()); err == nil {
		t.Errorf("a directory without a toolchain: got %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Find(""); err == nil || err.Error() != "no go command on PATH" {
		t.Errorf("without a go command: got %v", err)
	}
}

// A toolchain of another release is rejected: its packages differ from the engine's, which a program could notice.
func TestFindOtherRelease(t *testing.T) {
	t.Parallel()
	for version, fits := range map[string]bool{runtime.Version(): true, release(runtime.Version()) + ".99": true,
		"go1.2": false, "go1.200.1": false, "": false} {
		root := t.TempDir()
		tools := filepath.Join(root, "pkg", "tool", runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(tools, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{filepath.Join(root, "VERSION"): version + "\ntime 2026-01-01\n",
			filepath.Join(tools, "compile"): "", filepath.Join(tools, "link"): "", filepath.Join(tools, "asm"): ""} {
			if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		_, err := toolchainAt(root)
		if (err == nil) != fits {
			t.Errorf("version %q: got %v", version, err)
		}
		if !fits && !strings.Contains(err.Error(), "must be") {
			t.Errorf("version %q: got %v", version, err)
		}
	}
}

// On other systems and processors nothing is compiled, and the error explains that.
func TestPlatform(t *testing.T) {
	for p, want := range map[string]string{"linux/amd64": "<nil>", "linux/arm64": "<nil>", "darwin/amd64": "<nil>",
		"darwin/arm64":  "<nil>",
		"linux/386":     "programs are compiled for linux and darwin on amd64 and arm64, not for linux on 386",
		"freebsd/amd64": "programs are compiled for linux and darwin on amd64 and arm64, not for freebsd on amd64"} {
		system, processor, _ := strings.Cut(p, "/")
		if got := fmt.Sprint(platform(system, processor)); got != want {
			t.Errorf("%s: got %s, want %s", p, got, want)
		}
	}
}

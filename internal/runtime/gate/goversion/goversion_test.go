package goversion

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// The name is that of the toolchain, whatever its patch release.
func TestName(t *testing.T) {
	if v := runtime.Version() + "."; !strings.HasPrefix(v, Name+".") && !strings.HasPrefix(v, Name+"rc") {
		t.Errorf("got %s with %s", Name, runtime.Version())
	}
}

// A build with a later Go version, which the tags of its releases stand for here, fails with one message that says what to read.
func TestUnknownVersion(t *testing.T) {
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

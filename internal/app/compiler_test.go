package app

import (
	"testing"
)

// Most machines that run the daemon have no Go toolchain: it reports that, and starts.
func TestFindCompilerWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, why := FindCompiler(nil); why != "no go command on PATH" {
		t.Errorf("why %q", why)
	}
}

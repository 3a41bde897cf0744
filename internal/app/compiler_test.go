package app

import (
	"testing"
)

// Most machines that run the daemon have no Go: it says so, and starts.
func TestFindCompilerWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, why := FindCompiler(nil); why != "no go command on PATH" {
		t.Errorf("why %q", why)
	}
}

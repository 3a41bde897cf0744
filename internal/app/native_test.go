package app

import (
	"testing"
)

// Most machines that run the daemon have no Go: it says so, and starts.
func TestFindNativeWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, why, err := FindNative("auto", nil); why != "no go command on PATH" || err != nil {
		t.Errorf("why %q, error %v", why, err)
	}
}

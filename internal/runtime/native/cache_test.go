package native

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The least recently used executables go first, and never the one that was just built.
func TestPrune(t *testing.T) {
	t.Parallel()
	b := &Builder{opts: Options{Dir: t.TempDir(), MaxBytes: 25}}
	if err := os.Mkdir(b.dir("exe"), 0o700); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := range 5 {
		name := filepath.Join(b.dir("exe"), fmt.Sprint(i))
		if err := os.WriteFile(name, make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
		used := start.Add(time.Duration(-i) * time.Hour)
		if err := os.Chtimes(name, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.prune(filepath.Join(b.dir("exe"), "4")); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(b.dir("exe"), "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != "0" || filepath.Base(left[1]) != "4" {
		t.Errorf("left are %v %v, want 0 and 4", left, err)
	}
}

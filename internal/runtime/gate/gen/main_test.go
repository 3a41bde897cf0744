package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Generating again with this toolchain reproduces the committed files.
func TestGeneratedIsCurrent(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"exports", "symbols"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	readHostPackages(t)
	if err := generate(dir); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"exports/" + tag() + ".*", "exports/z_" + tag() + ".go",
		"symbols/z_" + tag() + ".go"} {
		made, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(made) == 0 || len(made) != len(kept) {
			t.Errorf("%s: %d files are committed, %d are generated", pattern, len(kept), len(made))
		}
		for _, name := range made {
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join("..", rel)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what gen makes with this Go version (%v): run make generate", rel, err)
			}
		}
	}
}

// readHostPackages reads the files of this repository that generate has the go command read. go test then does not use
// a cached result after they change, because it only notices files that the test itself reads.
func readHostPackages(t *testing.T) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../../recurgent"), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" {
			_, err = os.ReadFile(filepath.Join("../../recurgent", path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

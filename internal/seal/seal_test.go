package seal

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/beneath"
)

func dirOf(t *testing.T, path string) *beneath.Dir {
	t.Helper()
	d, err := beneath.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func sealIn(t *testing.T, path string) string {
	t.Helper()
	k, err := Open(dirOf(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return k.SealText("kind", "name", []byte("text"))
}

// The key stays the same while its file stays in place. It changes if the file is moved, copied or modified, even with
// the same bytes.
func TestKeyIsOfItsPlace(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	file := filepath.Join(top, File)
	first := sealIn(t, top)
	if again := sealIn(t, top); again != first {
		t.Error("the key does not stay")
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 || info.Size() != 32 {
		t.Errorf("the file: %v, %v", info, err)
	}
	random, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(dir string) error{
		"a copy": func(dir string) error { return os.WriteFile(filepath.Join(dir, File), random, 0o600) },
		"a faithful copy": func(dir string) error {
			return exec.Command("cp", "-a", file,
				filepath.Join(dir, File)).Run()
		},
		"a link to it":    func(dir string) error { return os.Symlink(file, filepath.Join(dir, File)) },
		"a pipe":          func(dir string) error { return unix.Mkfifo(filepath.Join(dir, File), 0o600) },
		"a directory":     func(dir string) error { return os.MkdirAll(filepath.Join(dir, File, "x"), 0o700) },
		"an empty file":   func(dir string) error { return os.WriteFile(filepath.Join(dir, File), nil, 0o600) },
		"readable by all": func(dir string) error { return os.WriteFile(filepath.Join(dir, File), random, 0o644) },
		"longer": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, File), append(random, 0),
				0o600)
		},
	} {
		dir := t.TempDir()
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		got := sealIn(t, dir)
		if got == first {
			t.Errorf("%s: it is the same key", name)
		}
		if again := sealIn(t, dir); again != got {
			t.Errorf("%s: the new key does not stay", name)
		}
	}
	if err := os.WriteFile(file, random, 0o600); err != nil { // in its place
		t.Fatal(err)
	}
	if sealIn(t, top) == first {
		t.Error("written anew with the same bytes it is the same key")
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != string(random) {
		t.Errorf("what was linked to was changed: %v", err)
	}
}

// read does not create a key.
func TestReadMakesNone(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if _, err := read(dirOf(t, top)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if all, err := os.ReadDir(top); err != nil || len(all) > 0 {
		t.Errorf("made %v, %v", all, err)
	}
}

// A seal depends on kind, name, size and content, and their encodings cannot be confused with each other.
func TestSeals(t *testing.T) {
	t.Parallel()
	k, err := Open(dirOf(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range []string{k.SealText("kind", "name", []byte("text")), k.SealText("kin", "dname", []byte("text")),
		k.SealText("kind", "nam", []byte("text")), k.SealText("kind", "name", []byte("Text")),
		k.SealText("kind", "name", nil)} {
		if seen[s] || len(s) != 64 || Fits(s, "") || !Fits(s, s) {
			t.Errorf("the seal %q", s)
		}
		seen[s] = true
	}
}

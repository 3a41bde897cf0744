package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hostile returns a directory with something of each wrong kind, and a directory elsewhere that its links point to.
func hostile(t *testing.T) (d *Dir, elsewhere string) {
	t.Helper()
	top, elsewhere := t.TempDir(), t.TempDir()
	d, err := Open(top)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	in := func(name string) string { return filepath.Join(top, name) }
	if err := errors.Join(
		os.WriteFile(filepath.Join(elsewhere, "file"), []byte("kept"), 0o600),
		os.Mkdir(in("dir"), 0o700), os.WriteFile(in("dir/file"), []byte("content"), 0o600),
		os.Symlink(elsewhere, in("away")), os.Symlink("dir", in("inside")),
		os.Symlink(filepath.Join(elsewhere, "file"), in("link")),
		os.Symlink(filepath.Join(elsewhere, "new"), in("dangling")), unix.Mkfifo(in("pipe"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return d, elsewhere
}

// Links are never followed to read, write, create or remove something, no matter whether they lead out of the
// directory. Pipes do not block.
func TestWrongKinds(t *testing.T) {
	t.Parallel()
	d, elsewhere := hostile(t)
	type operation func(name string) error
	read := func(name string) error { _, err := d.ReadFile(name); return err }
	write := func(name string) error {
		f, err := d.Open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	list := func(name string) error { _, err := d.List(name); return err }
	stat := func(name string) error { _, err := d.Stat(name); return err }
	mkdir := func(name string) error { return d.Mkdir(name, 0o700) }
	rename := func(name string) error { return d.Rename("dir/file", name) }
	for _, c := range []struct {
		name string
		is   string
		do   []operation
	}{
		{"link", "a symbolic link", []operation{read, write, stat, list, mkdir}},
		{"dangling", "a symbolic link", []operation{read, write, stat, list, mkdir}},
		{"away/file", "a symbolic link", []operation{read, write, stat, list, mkdir, rename, d.Remove, d.RemoveAll,
			d.SyncDir}},
		{"inside/file", "a symbolic link", []operation{read, write, stat, list, mkdir, rename, d.Remove, d.RemoveAll,
			d.SyncDir}},
		{"inside", "a symbolic link", []operation{list, d.SyncDir, stat, mkdir}},
		{"pipe", "a named pipe", []operation{read, write, stat, list}},
		{"dir/file/x", "a file", []operation{read, write, stat, list, mkdir, rename}},
		{"dir", "a directory", []operation{read, write}},
		{"dir/file", "a file", []operation{list, mkdir}},
	} {
		for i, do := range c.do {
			err := do(c.name)
			if kind, is := errors.AsType[*KindError](err); !is || kind.Is != c.is ||
				!strings.HasPrefix(kind.Path, d.Path(".")) {
				t.Errorf("%s, operation %d: got %v, want %s", c.name, i, err, c.is)
			}
		}
	}
	if left, err := os.ReadFile(filepath.Join(elsewhere, "file")); err != nil || string(left) != "kept" {
		t.Errorf("the file elsewhere: %q, %v", left, err)
	}
	if all, err := os.ReadDir(elsewhere); err != nil || len(all) != 1 {
		t.Errorf("elsewhere stands %v, %v", all, err)
	}
}

// Something of a wrong kind can be renamed and removed. This affects the thing itself and not what it links to.
func TestWrongKindsGo(t *testing.T) {
	t.Parallel()
	d, elsewhere := hostile(t)
	if err := errors.Join(d.Rename("away", "aside"), d.Remove("aside"), d.RemoveAll("inside"), d.Remove("pipe"),
		d.RemoveAll("link"), d.Remove("dangling")); err != nil {
		t.Fatal(err)
	}
	if names, err := d.List("."); err != nil || len(names) != 1 || names[0] != "dir" {
		t.Errorf("left are %v, %v", names, err)
	}
	if data, err := d.ReadFile("dir/file"); err != nil || string(data) != "content" {
		t.Errorf("the file inside: %q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "file")); err != nil {
		t.Error(err)
	}
}

// Remove reports a directory that is not empty as such, so its caller knows that RemoveAll is needed.
func TestRemoveKeepsContent(t *testing.T) {
	t.Parallel()
	d, _ := hostile(t)
	if err := d.Remove("dir"); !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		t.Errorf("a directory with a file: got %v", err)
	}
	if err := errors.Join(d.Remove("dir/file"), d.Remove("dir")); err != nil {
		t.Error(err)
	}
}

// Names must be clean relative paths that do not lead out of the directory.
func TestNames(t *testing.T) {
	t.Parallel()
	d, _ := hostile(t)
	for _, name := range []string{"", "/etc/passwd", "..", "../x", "dir/../../x", "dir//file", "./dir", "dir/"} {
		if _, err := d.ReadFile(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: got %v, want an invalid name", name, err)
		}
	}
	if err := errors.Join(d.Mkdir("a/b/c", 0o700), d.Mkdir("a/b/c", 0o700), d.Rename("dir/file", "a/b/c/file"),
		d.SyncDir("a/b/c"), d.RemoveAll("a"), d.RemoveAll("a/b")); err != nil {
		t.Error(err)
	}
	if _, err := d.Stat("a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

package native

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// cacheIn returns a builder that only stores executables.
func cacheIn(t *testing.T, dir string) *Builder {
	t.Helper()
	at, err := beneath.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = at.Close() })
	key, err := seal.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	b := &Builder{opts: Options{Dir: dir, Key: key, MaxBytes: 25}, at: at, seen: map[string]sighting{}}
	if err := b.layOut(); err != nil {
		t.Fatal(err)
	}
	return b
}

// The least recently used executables are removed first, and never the one that was just built.
func TestPrune(t *testing.T) {
	t.Parallel()
	b := cacheIn(t, t.TempDir())
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
	b.bytes.Store(50)
	if err := b.prune(exeName("4")); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(b.dir("exe"), "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != "0" || filepath.Base(left[1]) != "4" {
		t.Errorf("left are %v %v, want 0 and 4", left, err)
	}
}

// kept stores an executable under the digest and returns its path.
func kept(t *testing.T, b *Builder, digest, about string) (path string) {
	t.Helper()
	if err := b.keep(exeKind, strings.NewReader("compiled"), digest, []byte(about)); err != nil {
		t.Fatal(err)
	}
	return b.dir(exeName(digest))
}

// found returns the content of an executable from the cache, or "" if there is none.
func found(t *testing.T, b *Builder, digest string) string {
	t.Helper()
	x, err := b.cached(digest)
	if err != nil {
		t.Fatal(err)
	}
	if x == nil {
		return ""
	}
	defer x.File.Close()
	data, err := io.ReadAll(x.File)
	if err != nil || !strings.HasSuffix(x.File.Name(), exeName(digest)) {
		t.Errorf("%s: %v", x.File.Name(), err)
	}
	return string(data[:len(data)-sealOf-lengthOf-len(x.About)]) + " " + string(x.About)
}

// An executable is found again by this installation under its own digest, with its own bytes, and as the daemon's own
// file. Anything else of that name is removed.
func TestCachedIsSealed(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	b := cacheIn(t, top)
	kept(t, b, "one", "facts")
	for range 2 { // the second time its seal has already been checked
		if got := found(t, b, "one"); got != "compiled facts" {
			t.Fatalf("got %q", got)
		}
	}
	if got := found(t, cacheIn(t, top), "one"); got != "compiled facts" {
		t.Fatalf("another process finds %q", got)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(elsewhere, []byte("compiled"), 0o555); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(path string) error{
		"other bytes": func(path string) error {
			return errors.Join(os.Chmod(path, 0o755), os.WriteFile(path, []byte("planted!"), 0o555),
				os.Chmod(path, 0o555))
		},
		"more bytes": func(path string) error {
			return errors.Join(os.Chmod(path, 0o755), os.WriteFile(path, []byte("compiled!"), 0o555),
				os.Chmod(path, 0o555))
		},
		"another's to write": func(path string) error { return os.Chmod(path, 0o777) },
		"a link to the same": func(path string) error {
			return errors.Join(os.Remove(path),
				os.Symlink(elsewhere, path))
		},
		"a pipe": func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o700)) },
		"a directory": func(path string) error {
			return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
		},
		"another name": func(path string) error {
			return os.Rename(path, filepath.Join(filepath.Dir(path), "another"))
		},
		"under another digest": func(path string) error {
			return os.Rename(kept(t, cacheIn(t, top), "another", "facts"), path)
		},
		"of another installation": func(string) error { return os.Remove(filepath.Join(top, seal.File)) },
	} {
		made := cacheIn(t, top)
		path := kept(t, made, "one", "facts")
		if got := found(t, made, "one"); got != "compiled facts" {
			t.Fatalf("%s: before: %q", name, got)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		for _, b := range []*Builder{made, cacheIn(t, top)} { // the first has already seen it
			if got := found(t, b, "one"); name != "of another installation" && got != "" {
				t.Errorf("%s: got %q", name, got)
			}
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: it stays: %v", name, err)
		}
	}
	if data, err := os.ReadFile(elsewhere); err != nil || string(data) != "compiled" {
		t.Errorf("what a link led to: %q, %v", data, err)
	}
}

// A refusal stays, in the same words, also for a later process, while its seal is valid.
func TestRefusalsAreKept(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	b := cacheIn(t, top)
	if err := b.refuse(&BuildError{Refusal: "program.go:1:1: no"}, "one", []byte("facts")); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*Builder{b, b, cacheIn(t, top)} {
		x, err := b.cached("one")
		if fault, is := errors.AsType[*BuildError](err); x != nil || !is || fault.Refusal != "program.go:1:1: no" {
			t.Errorf("got %+v, %v", x, err)
		}
	}
	if err := os.Rename(b.dir(exeName("one")), b.dir(exeName("two"))); err != nil {
		t.Fatal(err)
	}
	if got := found(t, b, "two"); got != "" {
		t.Errorf("got %q", got)
	}
	if err := b.refuse(&BuildError{Refusal: "no"}, "one", []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if err := b.Drop(t.Context(), func(about []byte) bool { return string(about) == "ours" }); err != nil {
		t.Fatal(err)
	}
	if got := found(t, b, "one"); got != "" || b.Bytes() != 0 {
		t.Errorf("got %q, %d bytes are left", got, b.Bytes())
	}
}

// Drop removes the executables that match, and their bytes no longer count.
func TestDrop(t *testing.T) {
	t.Parallel()
	b := cacheIn(t, t.TempDir())
	for digest, about := range map[string]string{"one": "ours", "two": "theirs", "three": "ours"} {
		kept(t, b, digest, about)
	}
	all := b.Bytes()
	if err := b.Drop(t.Context(), func(about []byte) bool { return string(about) == "ours" }); err != nil {
		t.Fatal(err)
	}
	for digest, want := range map[string]string{"one": "", "two": "compiled theirs", "three": ""} {
		if got := found(t, b, digest); got != want {
			t.Errorf("%s: %q", digest, got)
		}
	}
	if left := b.Bytes(); left <= 0 || left >= all/2 {
		t.Errorf("%d of %d bytes are left", left, all)
	}
}

// Packages that an earlier process compiled count only unchanged. With another file, another byte or another seal they
// are not used.
func TestPackagesAreSealed(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	b := cacheIn(t, top)
	b.version = "v"
	archive := filepath.Join(t.TempDir(), "fmt.a")
	if err := os.WriteFile(archive, []byte("!<arch>"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := b.dir(b.packagesDir())
	keep := func() {
		t.Helper()
		err := os.RemoveAll(dir)
		kept, keepErr := keepPackages("fmt="+archive+"\nnet/url="+archive+"\n", dir)
		if err := errors.Join(err, keepErr, b.sealPackages(dir, kept)); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	p, err := b.readPackages(b.packagesDir())
	if err != nil || p.config("@") != "packagefile fmt=@/fmt.a\npackagefile net/url=@/net_url.a\n" ||
		!p.unchanged(b.at) {
		t.Fatalf("got %+v, %v", p, err)
	}
	file := filepath.Join(dir, "fmt.a")
	list := filepath.Join(dir, packagesFile)
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"another byte": func() error { return os.WriteFile(file, []byte("?<arch>"), 0o644) },
		"the same bytes": func() error {
			return errors.Join(os.Rename(file, file+".old"), os.WriteFile(file, []byte("!<arch>"), 0o644))
		},
		"gone":             func() error { return os.Remove(file) },
		"a link":           func() error { return errors.Join(os.Remove(file), os.Symlink(archive, file)) },
		"a pipe":           func() error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o644)) },
		"others may write": func() error { return os.Chmod(file, 0o666) },
		"another list":     func() error { return os.WriteFile(list, append([]byte(" "), text...), 0o644) },
		"a list of no seal": func() error {
			return os.WriteFile(list,
				[]byte(`{"packages":[{"path":"fmt","file":"fmt.a"}]}`), 0o644)
		},
		"the directory anew": func() error { return errors.Join(os.Rename(dir, dir+"-old"), os.Mkdir(dir, 0o755)) },
	} {
		keep()
		p, err := b.readPackages(b.packagesDir())
		if err == nil {
			err = change()
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(name, "list") && p.unchanged(b.at) { // the list has been read
			t.Errorf("%s: it passes for unchanged", name)
		}
		if _, err := b.readPackages(b.packagesDir()); err == nil && name != "the same bytes" && name != "another list" {
			t.Errorf("%s: it passes as sealed", name)
		}
	}
}

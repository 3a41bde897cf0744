package native

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime/native/carried"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// packOf returns the text of a pack with tools and one package that contain the words.
func packOf(t *testing.T, words string) string {
	t.Helper()
	var list []carried.Source
	dir := t.TempDir()
	for _, name := range []string{carried.Compile, carried.Link, "fmt"} {
		from := filepath.Join(dir, name)
		if err := os.WriteFile(from, []byte(name+words), 0o600); err != nil {
			t.Fatal(err)
		}
		list = append(list, carried.Source{File: name, From: from})
	}
	list[2] = carried.Archive("fmt", list[2].From)
	var text strings.Builder
	if err := carried.Write(&text, carried.Index{Go: runtime.Version(), System: runtime.GOOS,
		Processor: runtime.GOARCH}, list); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// carrying returns a Builder in the directory whose binary embeds the pack.
func carrying(t *testing.T, dir, pack string) *Builder {
	t.Helper()
	b, err := carryingIn(dir, pack)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.at.Close() })
	return b
}

func carryingIn(dir, pack string) (*Builder, error) {
	p, err := carried.Open(pack)
	if err != nil {
		return nil, err
	}
	o := DefaultOptions()
	o.Toolchain, o.Dir, o.Key, o.Sources = Toolchain{Version: p.Go, pack: p}, dir, &seal.Key{}, os.DirFS("..")
	o.Run = func(context.Context, wire.Tools) ([]byte, error) { return nil, nil }
	return New(o)
}

// ready returns the files that the Builder has prepared, by name. It fails the test if there are any others.
func ready(t *testing.T, b *Builder) map[string]fs.FileInfo {
	t.Helper()
	if err := b.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := map[string]fs.FileInfo{}
	for _, name := range []string{carried.Compile, carried.Link, "fmt.a"} {
		info, err := os.Stat(filepath.Join(b.dir(b.packagesDir()), name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = info
	}
	if names, err := b.at.List(b.packagesDir()); err != nil || len(names) != len(files) {
		t.Errorf("unpacked are %v, %v", names, err)
	}
	if left, err := b.at.List(b.work); err != nil || len(left) > 0 {
		t.Errorf("left over are %v, %v", left, err)
	}
	if all, err := filepath.Glob(b.dir("packages-*")); err != nil || len(all) != 1 {
		t.Errorf("there are %v, %v", all, err)
	}
	return files
}

func sameFiles(a, b map[string]fs.FileInfo) bool {
	for name := range a {
		if !os.SameFile(a[name], b[name]) {
			return false
		}
	}
	return true
}

// The embedded compiler is unpacked once for each version, its tools and packages are at the expected paths, and those
// of an earlier version are removed.
func TestCarriedIsUnpackedOnce(t *testing.T) {
	t.Parallel()
	dir, pack := t.TempDir(), packOf(t, " of the first")
	first := carrying(t, dir, pack)
	was := ready(t, first)
	if first.tool(carried.Compile) != filepath.Join(dir, first.packagesDir(), carried.Compile) ||
		was[carried.Compile].Mode() != 0o555 || was["fmt.a"].Mode() != 0o444 {
		t.Errorf("the tool is %s, of mode %v", first.tool(carried.Compile), was[carried.Compile].Mode())
	}
	if got := first.packages.config("@"); got != "packagefile fmt=@/fmt.a\n" {
		t.Errorf("the packages are %q", got)
	}
	if again := ready(t, carrying(t, dir, pack)); !sameFiles(was, again) {
		t.Error("another process unpacks the same anew")
	}
	second := carrying(t, dir, packOf(t, " of the second"))
	if next := ready(t, second); sameFiles(was, next) || second.packagesDir() == first.packagesDir() {
		t.Error("another version takes what the first unpacked")
	}
	if data, err := os.ReadFile(second.tool(carried.Link)); err != nil || string(data) != "link of the second" {
		t.Errorf("got %q, %v", data, err)
	}
}

// Files that differ from the pack are unpacked again, whether a daemon notices at its start or while it runs.
func TestCarriedIsVerified(t *testing.T) {
	t.Parallel()
	pack := packOf(t, " here")
	for name, change := range map[string]func(dir string) error{
		"another byte": func(dir string) error {
			return errors.Join(os.Chmod(filepath.Join(dir, "fmt.a"), 0o644),
				os.WriteFile(filepath.Join(dir, "fmt.a"), []byte("fmt There"), 0o644))
		},
		"a longer file": func(dir string) error {
			return errors.Join(os.Chmod(filepath.Join(dir, "link"), 0o755),
				os.WriteFile(filepath.Join(dir, "link"), []byte("link here!"), 0o755))
		},
		"a lost end":       func(dir string) error { return os.Truncate(filepath.Join(dir, "compile"), 3) },
		"a missing file":   func(dir string) error { return os.Remove(filepath.Join(dir, "compile")) },
		"others may write": func(dir string) error { return os.Chmod(filepath.Join(dir, "compile"), 0o777) },
		"a link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "link")),
				os.Symlink("/bin/true", filepath.Join(dir, "link")))
		},
		"no directory": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
		"half of it": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755),
				os.WriteFile(filepath.Join(dir, "compile"), []byte("comp"), 0o555))
		},
	} {
		for _, restarts := range []bool{false, true} {
			dir := t.TempDir()
			b := carrying(t, dir, pack)
			ready(t, b)
			if err := change(b.dir(b.packagesDir())); err != nil {
				t.Fatal(err)
			}
			if restarts {
				b = carrying(t, dir, pack)
			}
			ready(t, b)
			for file, want := range map[string]string{"compile": "compile here", "link": "link here",
				"fmt.a": "fmt here"} {
				if data, err := os.ReadFile(filepath.Join(b.dir(b.packagesDir()),
					file)); err != nil || string(data) != want {
					t.Errorf("%s, restart %t: %s is %q, %v", name, restarts, file, data, err)
				}
			}
		}
	}
}

// Concurrent unpacking by several processes results in one complete set, and the remains of a killed process are
// removed at the next start.
func TestCarriedTogether(t *testing.T) {
	t.Parallel()
	dir, pack := t.TempDir(), packOf(t, " together")
	var all []*Builder
	for range 4 {
		all = append(all, carrying(t, dir, pack))
	}
	if err := errors.Join(os.MkdirAll(all[0].dir("tmp/packages-1/ready"), 0o700),
		os.WriteFile(all[0].dir("tmp/packages-1/ready/compile"), []byte("comp"), 0o555)); err != nil {
		t.Fatal(err)
	}
	all = append(all, carrying(t, dir, pack)) // starts after the killed process
	var together sync.WaitGroup
	for _, b := range all {
		together.Go(func() {
			if err := b.Prepare(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	ready(t, all[0])
}

// Only a pack of the daemon's own release and platform is used, and an embedded one precedes an installed toolchain.
func TestFindCarried(t *testing.T) {
	if platform(runtime.GOOS, runtime.GOARCH) != nil {
		t.Skip("nothing is compiled here")
	}
	t.Setenv("PATH", t.TempDir())
	own := packOf(t, "")
	if found, err := Find(own); err != nil || found.From() != "carried" || found.Version != runtime.Version() ||
		found.unchanged() != nil {
		t.Errorf("got %+v, %v", found, err)
	}
	for name, pack := range map[string]string{"another release": strings.Replace(own, runtime.Version(), "go1.2", 1),
		"another system": strings.Replace(own, runtime.GOOS, "plan9", 1), "no pack": "{"} {
		if _, err := Find(pack); err == nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The error of a directory names the remedy.
func TestUnusable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "free 200 MB there"},
		{syscall.EDQUOT, "free 200 MB there"},
		{&fs.PathError{Op: "mkdir", Path: "x", Err: syscall.EROFS},
			"let the daemon write there, or name another data directory"},
		{fs.ErrPermission, "let the daemon write there, or name another data directory"},
		{errNoExec, "mount its file system without noexec, or name a data directory elsewhere"},
	} {
		err := Unusable("/data", c.err)
		fault, is := errors.AsType[*DirError](err)
		if !is || fault.Dir != "/data" || fault.Fix != c.want || !errors.Is(err, c.err) ||
			!strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v: got %v", c.err, err)
		}
		if again := Unusable("/other", err); again != err {
			t.Errorf("said twice: %v", again)
		}
	}
	for _, err := range []error{nil, fs.ErrNotExist, &beneath.KindError{Path: "x", Is: "a socket"}} {
		if got := Unusable("/data", err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
	if err := TryDir(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := TryDir(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if !slices.Contains(carried.Packages(), carried.Support) {
		t.Error("executables are linked without our support")
	}
}

package carried

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// sources writes the files and returns them as tools, or as packages if their names contain a dot.
func sources(t *testing.T, files map[string]string) (list []Source) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		from := filepath.Join(dir, ArchiveName(name))
		if err := os.WriteFile(from, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		if path, isPackage := strings.CutSuffix(name, ".a"); isPackage {
			list = append(list, Archive(path, from))
		} else {
			list = append(list, Source{File: name, From: from})
		}
	}
	return list
}

func text(t *testing.T, files map[string]string) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, Index{Go: "go1.26.8", System: "linux", Processor: "amd64"}, sources(t, files)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var some = map[string]string{Compile: strings.Repeat("compiles ", 1<<16), Link: "links", "net/url.a": "!<arch>\n",
	"fmt.a": ""}

// Unpack restores the packed files for every user, whatever the umask: tools to execute, packages to read. Equal files
// give equal packs, wherever they are.
func TestPack(t *testing.T) {
	t.Parallel()
	was := text(t, some)
	if text(t, some) != was {
		t.Error("the same files give another text")
	}
	if len(was) > 5000 {
		t.Errorf("the text has %d bytes: it is not compressed", len(was))
	}
	p, err := Open(was)
	if err != nil {
		t.Fatal(err)
	}
	if p.Go != "go1.26.8" || p.System != "linux" || p.Processor != "amd64" || len(p.Files) != len(some) ||
		len(p.Digest) != 64 {
		t.Errorf("got %+v, digest %s", p.Index, p.Digest)
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := p.Unpack(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range some {
		file, mode := ArchiveName(strings.TrimSuffix(name, ".a")), fs.FileMode(0o444)
		if !strings.HasSuffix(name, ".a") {
			file, mode = name, 0o555
		}
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || string(data) != want {
			t.Errorf("%s: %d bytes, want %d; %v", name, len(data), len(want), err)
		}
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if !slices.ContainsFunc(p.Files, func(f File) bool { return f.File == file && f.Size == int64(len(want)) }) {
			t.Errorf("the index lacks %s: %+v", file, p.Files)
		}
	}
	other := maps.Clone(some)
	other["fmt.a"] = "more"
	if q, err := Open(text(t, other)); err != nil || q.Digest == p.Digest {
		t.Errorf("other files have the same digest; %v", err)
	}
}

// Unpacking fails if the text is truncated, a path is taken, or the daemon stops.
func TestUnpackFails(t *testing.T) {
	t.Parallel()
	whole := text(t, some)
	unpack := func(text, dir string, ctx context.Context) error {
		p, err := Open(text)
		if err != nil {
			t.Fatal(err)
		}
		return p.Unpack(ctx, dir)
	}
	if err := unpack(whole[:len(whole)-9], t.TempDir(), t.Context()); err == nil {
		t.Error("a text without its end passes")
	}
	taken := t.TempDir()
	if err := os.WriteFile(filepath.Join(taken, Link), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unpack(whole, taken, t.Context()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file is there: got %v", err)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("it stops"))
	if err := unpack(whole, t.TempDir(), ended); err == nil || err.Error() != "it stops" {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"", "\n", "{", "[]\n"} {
		if _, err := Open(bad); err == nil {
			t.Errorf("%q passes as a pack", bad)
		}
	}
	if err := Write(&bytes.Buffer{}, Index{},
		[]Source{Archive("fmt", filepath.Join(t.TempDir(), "none"))}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a source that is not there: got %v", err)
	}
}

// A program is compressed to what zstd restores, and the same each time.
func TestCompress(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "program")
	want := bytes.Repeat([]byte("a program "), 200_000)
	if err := os.WriteFile(file, want, 0o600); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := errors.Join(Compress(&first, file), Compress(&second, file)); err != nil {
		t.Fatal(err)
	}
	in, err := zstd.NewReader(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	got, err := io.ReadAll(in)
	if err != nil || !bytes.Equal(got, want) || !bytes.Equal(first.Bytes(), second.Bytes()) || first.Len() > 100_000 {
		t.Errorf("%d bytes, and %d restored: %v", first.Len(), len(got), err)
	}
	if err := Compress(io.Discard, file+"x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

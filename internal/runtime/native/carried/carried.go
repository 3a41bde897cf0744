// Package carried reads and writes packs: the compiler and the linker of a Go release for one platform, with the compiled packages that they need for programs, in one text that a
// binary carries. The text begins with an index that names each file and its digest.
//
// It trusts the text, which is part of the binary, and knows nothing of where files are kept or of what is compiled.
package carried

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// Settings are environment variables of everything that compiles programs or what they are linked with: archives of other settings do not fit, and a later GOAMD64 has multiplications fused
// with additions.
var Settings = []string{"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0"}

// Flags are those of the compiler that what programs are linked with, and programs, must be compiled with for the processor. With Settings, no package computes other numbers than for
// another processor. A program's own text does not depend on them (package rewrite), but what the compiler puts into it of other packages does.
func Flags(processor string) []string {
	if processor == "arm64" {
		return []string{"-d=fmahash=qn"} // fuse nothing
	}
	return nil
}

// Support is the import path of the package that is linked into each executable with its program.
const Support = "github.com/recurgentd/recurgentd/internal/runtime/native/support"

// Maphash is the import path of the package that programs get in the place of hash/maphash.
const Maphash = Support + "/maphash"

// ImportMap maps what programs import to what they get, as the compiler reads it: a line for each.
func ImportMap() string { return allow.ImportMap() + "importmap hash/maphash=" + Maphash + "\n" }

// Packages lists the paths of the packages that executables are linked of, without those that these import.
func Packages() []string {
	list := []string{Support, Maphash}
	for _, p := range allow.Packages() {
		list = append(list, allow.TruePath(p.Path))
	}
	return list
}

// Names of the tools.
const (
	Compile = "compile"
	Link    = "link"
)

// A File is one of a pack, or of another directory with compiled packages.
type File struct {
	Path   string `json:"path,omitempty"` // of the package, as programs import it; "" for a tool
	File   string `json:"file"`           // its name
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// An Index lists what a pack holds, and what it was made for.
type Index struct {
	Go        string `json:"go"` // the release: go1.26.8
	System    string `json:"system"`
	Processor string `json:"processor"`
	Files     []File `json:"files"` // in the order of the text
}

// A Pack is one that was opened. It is safe for concurrent use.
type Pack struct {
	Index
	Digest string // of everything in it: hexadecimal

	files string // compressed, one after another
}

// Open reads the index of a pack.
func Open(text string) (*Pack, error) {
	head, files, _ := strings.Cut(text, "\n")
	p := &Pack{files: files}
	if err := json.Unmarshal([]byte(head), &p.Index); err != nil {
		return nil, fmt.Errorf("the carried compiler's index: %w", err)
	}
	sum := sha256.Sum256([]byte(head))
	p.Digest = hex.EncodeToString(sum[:])
	return p, nil
}

// Unpack writes the files into a new directory, for every user to read and execute. The caller compares them with the index: a disk may lose what was written.
func (p *Pack) Unpack(ctx context.Context, dir string) error {
	// Whatever the umask is.
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir,
		0o755)); err != nil { //nolint:gosec // the user of the tools goes through it
		return err
	}
	in, err := zstd.NewReader(strings.NewReader(p.files), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer in.Close()
	for _, f := range p.Files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := f.write(dir, in); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) write(dir string, in io.Reader) error {
	mode := os.FileMode(0o444)
	if f.Path == "" {
		mode = 0o555
	}
	out, err := os.OpenFile(filepath.Join(dir, f.File), os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		mode) //nolint:gosec // the index names it
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, in, f.Size)
	return errors.Join(err, out.Chmod(mode), out.Close())
}

// A Source is a file to pack.
type Source struct{ Path, File, From string }

// Archive returns the source of a package that was compiled into the file.
func Archive(path, from string) Source {
	return Source{Path: path, File: ArchiveName(path), From: from}
}

// ArchiveName is the name of the file of a compiled package.
func ArchiveName(path string) string { return strings.ReplaceAll(path, "/", "_") + ".a" }

// Write writes a pack of the sources, which take the place of the index's files. The same sources give the same text.
func Write(w io.Writer, x Index, sources []Source) error {
	var all bytes.Buffer
	out, err := zstd.NewWriter(&all, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window))
	if err != nil {
		return err
	}
	x.Files = nil
	for _, s := range sources {
		data, err := os.ReadFile(s.From)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		x.Files = append(x.Files, File{s.Path, s.File, int64(len(data)), hex.EncodeToString(sum[:])})
		if _, err := out.Write(data); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	head, err := json.Marshal(x)
	if err != nil {
		return err
	}
	to := bufio.NewWriter(w)
	_, err = fmt.Fprintf(to, "%s\n%s", head, all.Bytes())
	return errors.Join(err, to.Flush())
}

// window is how far back the compression looks, in bytes: unpacking takes this much memory.
const window = 8 << 20

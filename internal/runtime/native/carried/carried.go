// Package carried reads and writes packs. A pack is a text, embedded in a binary, with the compiler and the linker of a
// Go release for one platform and the compiled packages that programs need. It begins with an index that names each
// file and its digest.
//
// The package trusts the text, which is part of the binary. It does not know where files are kept or what is compiled.
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

// Settings are the environment variables for compiling programs and the packages that they are linked with. Archives of
// other settings do not fit. A higher GOAMD64 would fuse multiplications with additions.
var Settings = []string{"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0"}

// Flags returns the compiler flags for programs and the packages that they are linked with. With Settings, they make
// all packages compute the same numbers on every processor. A program's own text does not depend on them (package
// rewrite), but code that the compiler inlines from other packages does.
func Flags(processor string) []string {
	if processor == "arm64" {
		return []string{"-d=fmahash=qn"} // fuses nothing
	}
	return nil
}

// Support is the import path of the package that is linked into each executable.
const Support = "github.com/recurgentd/recurgentd/internal/runtime/native/support"

// maphash is the import path of the package that replaces hash/maphash in programs.
const maphash = Support + "/maphash"

// ImportMap returns the import map for the compiler, one line for each replaced import.
func ImportMap() string { return allow.ImportMap() + "importmap hash/maphash=" + maphash + "\n" }

// Packages returns the import paths of the packages that executables are linked with, without the packages that these
// import.
func Packages() []string {
	list := []string{Support}
	for _, name := range []string{"contexts", "logs", "maphash", "random", "reflection"} {
		list = append(list, Support+"/"+name)
	}
	for _, p := range allow.Packages() {
		list = append(list, allow.TruePath(p.Path))
	}
	return list
}

// ListCommand returns the arguments with which the go command compiles Packages for the processor. It prints a line
// "path=archive" for each package. The flags are those with which scripts/build builds the daemon, so most packages are
// compiled once for both. An executable has no debug information, so neither have the archives, which are a quarter
// smaller without it.
func ListCommand(processor string) []string {
	flags := append([]string{"-dwarf=false"}, Flags(processor)...)
	return append([]string{"list", "-export", "-deps", "-trimpath", "-gcflags=all=" + strings.Join(flags, " "),
		"-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}, Packages()...)
}

// Names of the tools.
const (
	Compile = "compile"
	Link    = "link"
)

// A File is a file of a pack, or of another directory of compiled packages.
type File struct {
	Path   string `json:"path,omitempty"` // import path of the package as programs write it; "" for a tool
	File   string `json:"file"`           // name of the file
	Size   int64  `json:"size"`           // bytes
	SHA256 string `json:"sha256"`         // hexadecimal
}

// An Index lists the files of a pack and the platform that it was made for.
type Index struct {
	Go        string `json:"go"`        // the release, such as go1.26.8
	System    string `json:"system"`    // GOOS
	Processor string `json:"processor"` // GOARCH
	Files     []File `json:"files"`     // in the order of the text
}

// A Pack is an opened pack. It is safe for concurrent use.
type Pack struct {
	Index
	Digest string // of the whole content, hexadecimal

	files string // compressed, concatenated
}

// Open reads the index of a pack. It does not check the files.
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

// Unpack writes the files into a new directory, readable and executable for every user. The caller must verify them
// against the index, because a disk may lose data.
func (p *Pack) Unpack(ctx context.Context, dir string) error {
	// Chmod as well, because the umask may be restrictive.
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir,
		0o755)); err != nil { // the user of the tools goes through it
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
		mode)
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, in, f.Size)
	return errors.Join(err, out.Chmod(mode), out.Close())
}

// A Source is a file to pack: From is its path, File its name in the pack, and Path the import path, empty for a tool.
type Source struct{ Path, File, From string }

// Archive returns the Source of a compiled package in the file from.
func Archive(path, from string) Source {
	return Source{Path: path, File: ArchiveName(path), From: from}
}

// ArchiveName returns the file name of a compiled package.
func ArchiveName(path string) string { return strings.ReplaceAll(path, "/", "_") + ".a" }

// Write writes a pack of the sources, which replace x.Files. Equal sources give equal bytes.
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

// window is the compression window in bytes. Unpacking needs as much memory.
const window = 8 << 20

// Compress writes the file, compressed by zstd so that unpacking needs little memory. Equal files give equal bytes.
func Compress(w io.Writer, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(256<<10),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

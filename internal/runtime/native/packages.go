package native

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime/native/carried"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// packages describes the compiled packages that executables are linked with, and the embedded tools, as of when their
// digests were verified.
type packages struct {
	dir    string // in the cache
	list   []carried.File
	places map[string]seal.Place // by file name; the directory itself is "."
}

// sealedPackages is the content of the file that lists the packages.
type sealedPackages struct {
	Packages json.RawMessage `json:"packages"`
	Seal     string          `json:"seal"` // of the list, which contains the digest of each file
}

const (
	packagesFile = "packages.json"
	packagesKind = "packages"
)

// keepPackages copies archives from the go command's cache into dir. list has a line "path=archive" for each.
func keepPackages(list, dir string) (kept []carried.File, err error) {
	// The user of the tools must be able to read them, even under a restrictive umask.
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return nil, err
	}
	for line := range strings.Lines(list) {
		path, archive, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		data, err := os.ReadFile(archive)
		p := carried.File{Path: path, File: carried.ArchiveName(path), Size: int64(len(data)),
			SHA256: sumText(sha256.Sum256(data))}
		if err == nil {
			to := filepath.Join(dir, p.File)
			err = errors.Join(os.WriteFile(to, data, 0o644), os.Chmod(to, 0o644))
		}
		if err != nil {
			return nil, err
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// sealPackages writes the sealed list of packages into dir.
func (b *Builder) sealPackages(dir string, kept []carried.File) error {
	list, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	text, err := json.Marshal(sealedPackages{list, b.opts.Key.SealText(packagesKind, b.packagesDir(), list)})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, packagesFile), text, 0o644)
}

// readPackages returns the packages in a directory of the cache. Each file must match the pack or the sealed list,
// otherwise the error is errSeal.
func (b *Builder) readPackages(dir string) (p *packages, err error) {
	p = &packages{dir: dir}
	if pack := b.opts.Toolchain.pack; pack != nil {
		p.list = pack.Files
	} else if p.list, err = b.sealedList(dir); err != nil {
		return nil, err
	}
	if p.places, err = p.now(b.at); err != nil {
		return nil, err
	}
	for _, x := range p.list {
		if err := verifyFile(b.at, dir, x); err != nil {
			return nil, err
		}
	}
	if !p.unchanged(b.at) {
		return nil, errSeal
	}
	return p, nil
}

// sealedList reads the sealed list of the packages that the go command compiled into the directory.
func (b *Builder) sealedList(dir string) (list []carried.File, err error) {
	text, err := b.at.ReadFile(path.Join(dir, packagesFile))
	if err != nil {
		return nil, err
	}
	var sealed sealedPackages
	if err := json.Unmarshal(text, &sealed); err != nil {
		return nil, err
	}
	if !seal.Fits(sealed.Seal, b.opts.Key.SealText(packagesKind, b.packagesDir(), sealed.Packages)) {
		return nil, errSeal
	}
	return list, json.Unmarshal(sealed.Packages, &list)
}

// verifyFile returns errSeal if the file does not have the size and digest of x.
func verifyFile(at *beneath.Dir, dir string, x carried.File) error {
	f, err := at.Open(path.Join(dir, x.File), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size, sum, err := seal.SumOf(f, x.Size+1)
	if err == nil && (size != x.Size || sumText(sum) != x.SHA256) {
		err = errSeal
	}
	return err
}

func sumText(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) }

// now returns the current places of the files and of their directory.
func (p *packages) now(at *beneath.Dir) (map[string]seal.Place, error) {
	dir, err := at.OpenDir(p.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	places := make(map[string]seal.Place, len(p.list)+1)
	if places["."], err = seal.PlaceOf(dir); err != nil {
		return nil, err
	}
	for _, x := range p.list {
		if places[x.File], err = seal.PlaceIn(dir, x.File); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// unchanged reports whether every file is still the one that was verified, without modification.
func (p *packages) unchanged(at *beneath.Dir) bool {
	now, err := p.now(at)
	if err != nil {
		return false
	}
	for name, place := range p.places {
		if now[name] != place {
			return false
		}
	}
	return true
}

// config returns the packages in the format of the compiler and the linker. dir is the directory as these name it.
func (p *packages) config(dir string) string {
	var out bytes.Buffer
	for _, x := range p.list {
		if x.Path == "" {
			continue // a tool
		}
		fmt.Fprintf(&out, "packagefile %s=%s/%s\n", x.Path, dir, x.File)
	}
	return out.String()
}

// dropPackages removes the packages of all versions, including anything at the place of the current ones.
func (b *Builder) dropPackages() error {
	names, err := b.at.List(".")
	for _, name := range names {
		if err == nil && strings.HasPrefix(name, "packages-") {
			err = b.at.RemoveAll(name)
		}
	}
	return err
}

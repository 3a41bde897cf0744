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
	"github.com/recurgentd/recurgentd/internal/seal"
)

// packages are the compiled packages that executables are linked of, as they were when their seal was checked.
type packages struct {
	dir    string // below the cache
	list   []keptPackage
	places map[string]seal.Place // of the files, and of the directory under "."
}

// A keptPackage is a compiled package.
type keptPackage struct {
	Path   string `json:"path"` // as programs import it
	File   string `json:"file"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// sealedPackages is the file that lists the packages.
type sealedPackages struct {
	Packages json.RawMessage `json:"packages"`
	Seal     string          `json:"seal"` // of the list, and so of each file
}

const (
	packagesFile = "packages.json"
	packagesKind = "packages"
)

// keepPackages copies the archives out of the go command's cache, given a line "path=archive" for each.
func keepPackages(list, dir string) (kept []keptPackage, err error) {
	// The user of the tools reads them, whatever the umask is.
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return nil, err
	}
	for line := range strings.Lines(list) {
		path, archive, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		data, err := os.ReadFile(archive)
		p := keptPackage{Path: path, File: strings.ReplaceAll(path, "/", "_") + ".a", Size: int64(len(data)), SHA256: sumText(sha256.Sum256(data))}
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

// sealPackages writes the list.
func (b *Builder) sealPackages(dir string, kept []keptPackage) error {
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

// readPackages returns the packages in a directory of the cache. Each of them is what the sealed list says.
func (b *Builder) readPackages(dir string) (*packages, error) {
	text, err := b.at.ReadFile(path.Join(dir, packagesFile))
	if err != nil {
		return nil, err
	}
	var sealed sealedPackages
	p := &packages{dir: dir}
	if err := json.Unmarshal(text, &sealed); err != nil {
		return nil, err
	}
	if !seal.Fits(sealed.Seal, b.opts.Key.SealText(packagesKind, b.packagesDir(), sealed.Packages)) {
		return nil, errSeal
	}
	if err := json.Unmarshal(sealed.Packages, &p.list); err != nil {
		return nil, err
	}
	if p.places, err = p.now(b.at); err != nil {
		return nil, err
	}
	for _, x := range p.list {
		if err := x.verify(b.at, dir); err != nil {
			return nil, err
		}
	}
	if !p.unchanged(b.at) {
		return nil, errSeal
	}
	return p, nil
}

// verify sums up the file.
func (x *keptPackage) verify(at *beneath.Dir, dir string) error {
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

// now returns where the files and their directory are now.
func (p *packages) now(at *beneath.Dir) (map[string]seal.Place, error) {
	places := make(map[string]seal.Place, len(p.list)+1)
	for i := -1; i < len(p.list); i++ {
		name, open := ".", at.OpenDir
		if i >= 0 {
			name, open = p.list[i].File, func(name string) (*os.File, error) { return at.Open(name, os.O_RDONLY, 0) }
		}
		f, err := open(path.Join(p.dir, name))
		if err != nil {
			return nil, err
		}
		places[name], err = seal.PlaceOf(f)
		_ = f.Close() // it was only read
		if err != nil {
			return nil, err
		}
	}
	return places, nil
}

// unchanged reports whether every file is the one that was verified, and has not been changed since.
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

// config lists the packages as the compiler and the linker read it; dir is the directory as they name it.
func (p *packages) config(dir string) string {
	var out bytes.Buffer
	for _, x := range p.list {
		fmt.Fprintf(&out, "packagefile %s=%s/%s\n", x.Path, dir, x.File)
	}
	return out.String()
}

// dropPackages removes those of other versions, and what stands in the place of ours.
func (b *Builder) dropPackages() error {
	names, err := b.at.List(".")
	for _, name := range names {
		if err == nil && strings.HasPrefix(name, "packages-") {
			err = b.at.RemoveAll(name)
		}
	}
	return err
}

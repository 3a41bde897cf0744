package native

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

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

const (
	modulePath  = "github.com/recurgentd/recurgentd"
	sourcesPath = modulePath + "/internal/runtime"
)

// supportVersion returns a version of everything in an executable except its program: the packages of this module and
// the toolchain, and the way of building.
func (b *Builder) supportVersion() (string, error) {
	h := sha256.New()
	fmt.Fprint(h, b.opts.Toolchain.Version, "\n", carried.Settings, "\n", mainText(""))
	if pack := b.opts.Toolchain.pack; pack != nil {
		fmt.Fprintln(h, pack.Digest)
		return hex.EncodeToString(h.Sum(nil))[:16], nil
	}
	err := b.sum(h, sourceDirs)
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// textVersion returns a version of the packages that check a program and write its text, and of the bounds of a build.
// Executables of other versions are not found.
func (b *Builder) textVersion() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, buildCPU, buildFile, b.opts.Memory)
	err := b.sum(h, textDirs)
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// sum adds the source files of packages to h.
func (b *Builder) sum(h io.Writer, dirs []string) error {
	return b.eachSource(dirs, func(name string, data []byte) error {
		_, err := fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
		return err
	})
}

// sourceDirs are the packages of this module in an executable, below internal/runtime. They import only each other and
// the standard library.
var sourceDirs = []string{"gate/report", "gate/rt", "native/support", "native/support/contexts",
	"native/support/logs", "native/support/maphash", "native/support/random", "native/support/reflection", "plain",
	"recurgent", "recurgent/html", "recurgent/html/internal/cascadia", "recurgent/html/internal/html",
	"recurgent/html/internal/html/atom", "sandbox/narrow", "sandbox/narrow/now", "sandbox/serve", "sandbox/threads",
	"sandbox/wire"}

// textDirs are the packages that check a program and write its text, below internal/runtime.
var textDirs = []string{"gate", "gate/allow", "gate/inputs", "gate/outside", "gate/report", "gate/residue",
	"gate/rewrite"}

// eachSource calls visit for each source file of the packages, without tests, in a fixed order.
func (b *Builder) eachSource(dirs []string, visit func(name string, data []byte) error) error {
	for _, dir := range dirs {
		names, err := fs.Glob(b.opts.Sources, dir+"/*.go")
		if err == nil && len(names) == 0 {
			err = fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			data, err := fs.ReadFile(b.opts.Sources, name)
			if err == nil {
				err = visit(name, data)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Builder) packagesDir() string { return "packages-" + b.version }

// makeReady prepares the packages that all executables share, once for each version: the embedded tools and packages
// or, with an installed toolchain, the compiled packages of this module and of the standard library. No program is
// involved. The result of an earlier process is reused if its digests match. The caller holds preparing.
func (b *Builder) makeReady(ctx context.Context) error {
	if b.packages != nil && b.packages.unchanged(b.at) {
		return nil
	}
	b.packages = nil
	p, err := b.readPackages(b.packagesDir())
	if err != nil {
		p, err = b.renew(ctx)
	}
	if err == nil && b.opts.Toolchain.Carried() {
		err = executable(b.tool(carried.Compile))
	}
	if err == nil {
		b.packages = p
	}
	return err
}

// renew prepares the packages again and replaces those in the cache.
func (b *Builder) renew(ctx context.Context) (*packages, error) {
	work, err := os.MkdirTemp(b.dir(b.work), "packages-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	ready := filepath.Join(work, "ready")
	if pack := b.opts.Toolchain.pack; pack != nil {
		err = pack.Unpack(ctx, ready)
	} else {
		err = b.compilePackages(ctx, work, ready)
	}
	if err != nil {
		return nil, err
	}
	defer b.alone()()
	if p, err := b.readPackages(b.packagesDir()); err == nil {
		return p, nil // another process was faster
	}
	if err := b.dropPackages(); err != nil {
		return nil, err
	}
	if err := os.Rename(ready, b.dir(b.packagesDir())); err != nil {
		return nil, err
	}
	return b.readPackages(b.packagesDir())
}

// compilePackages compiles the packages with the go command, into the new directory ready.
func (b *Builder) compilePackages(ctx context.Context, work, ready string) error {
	if err := b.writeSources(work); err != nil {
		return err
	}
	list, err := b.listPackages(ctx, work)
	if err != nil {
		return err
	}
	kept, err := keepPackages(list, ready)
	if err == nil {
		err = b.sealPackages(ready, kept)
	}
	if err != nil {
		return err
	}
	return b.checkToolchain()
}

// writeSources writes a module of the source packages into work.
func (b *Builder) writeSources(work string) error {
	write := func(name string, data []byte) error {
		to := filepath.Join(work, "module", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	}
	if err := write("go.mod",
		[]byte("module "+modulePath+"\n\ngo "+strings.TrimPrefix(release(b.opts.Toolchain.Version), "go")+
			"\n")); err != nil {
		return err
	}
	return b.eachSource(sourceDirs, func(name string, data []byte) error {
		return write("internal/runtime/"+name,
			data)
	})
}

// listPackages compiles the packages and returns a line "path=archive" for each.
func (b *Builder) listPackages(ctx context.Context, work string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.opts.Toolchain.Root, "bin", "go"),
		carried.ListCommand(runtime.GOARCH)...)
	cmd.Dir = filepath.Join(work, "module")
	cmd.Env = append(slices.Clone(carried.Settings), "HOME="+work,
		"GOCACHE="+cmp.Or(b.GoCache, filepath.Join(work, "cache")), "GOPATH="+filepath.Join(work, "gopath"),
		"GOTMPDIR="+work, "TMPDIR="+work,
		"GOROOT="+b.opts.Toolchain.Root, "GOENV=off", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local",
		"GOWORK=off", "GO111MODULE=on")
	var said bytes.Buffer
	cmd.Stderr = &said
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Start()
	if err == nil {
		// Calls have precedence, but the first ones wait for the packages.
		_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, 5)
		err = cmd.Wait()
	}
	if err != nil {
		return "", buildError("packages", said.Bytes(), err)
	}
	return out.String(), nil
}

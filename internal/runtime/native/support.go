package native

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/native/carried"
)

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
var sourceDirs = []string{"gate/report", "gate/rt", "native/support", "native/support/maphash", "plain", "recurgent",
	"recurgent/html", "recurgent/html/internal/cascadia", "recurgent/html/internal/html",
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
	args := []string{"list", "-export", "-deps", "-trimpath", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}
	args = append(args, carried.Packages()...)
	cmd := exec.CommandContext(ctx, filepath.Join(b.opts.Toolchain.Root, "bin", "go"), args...)
	cmd.Dir = filepath.Join(work, "module")
	cmd.Env = append(slices.Clone(carried.Settings), "HOME="+work,
		"GOCACHE="+cmp.Or(b.GoCache, filepath.Join(work, "cache")), "GOPATH="+filepath.Join(work, "gopath"),
		"GOTMPDIR="+work, "TMPDIR="+work,
		"GOROOT="+b.opts.Toolchain.Root, "GOENV=off", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local",
		"GOWORK=off", "GO111MODULE=on", "GOMAXPROCS=1")
	var said bytes.Buffer
	cmd.Stderr = &said
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Start()
	if err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, 19) // calls have precedence
		err = cmd.Wait()
	}
	if err != nil {
		return "", buildError("packages", said.Bytes(), err)
	}
	return out.String(), nil
}

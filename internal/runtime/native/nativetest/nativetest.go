// Package nativetest has the builder of tests that compile real programs. What it makes is kept for tests of other packages and later runs.
package nativetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// A Pool runs tools. sandbox.Pool is one.
type Pool interface {
	RunTools(ctx context.Context, t wire.Tools) ([]byte, error)
}

// Shared returns the directory in which all tests of this copy of the module keep what they compile, and the go command's cache. Tests of later runs find there what
// does not change: executables are kept by all that they are made of. It is below the temporary directory, where users of the sandbox may go through it. Another copy has another one, since
// a builder removes the packages of other versions.
var Shared = sync.OnceValues(func() (dirs [2]string, err error) {
	own := filepath.Join(os.TempDir(), fmt.Sprintf("recurgentd-tests-%d", os.Getuid()))
	if err := os.Mkdir(own, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return dirs, err
	}
	info, err := os.Lstat(own)
	if err != nil {
		return dirs, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(s.Uid) != os.Getuid() ||
		info.Mode().Perm()&0o022 != 0 {
		return dirs, fmt.Errorf("%s is not a directory of this user alone: remove it", own)
	}
	module, err := goEnv("GOMOD")
	if err != nil {
		return dirs, err
	}
	dir := filepath.Join(own, fmt.Sprintf("compiled-%.8x", sha256.Sum256([]byte(module))))
	if err := errors.Join(dropOrphans(own), os.MkdirAll(dir, 0o711),
		os.WriteFile(filepath.Join(dir, moduleFile), []byte(module), 0o600)); err != nil {
		return dirs, err
	}
	cache, err := goEnv("GOCACHE")
	return [2]string{dir, cache}, err
})

// moduleFile has the path of the go.mod of the copy whose directory it is in.
const moduleFile = "module"

// dropOrphans removes the directories of copies that are gone.
func dropOrphans(own string) error {
	names, err := filepath.Glob(filepath.Join(own, "compiled*"))
	errs := []error{err}
	for _, name := range names {
		module, err := os.ReadFile(filepath.Join(name, moduleFile))
		if err != nil { // it is just being made
			continue
		}
		if _, err := os.Stat(string(module)); errors.Is(err, os.ErrNotExist) {
			errs = append(errs, os.RemoveAll(name))
		}
	}
	return errors.Join(errs...)
}

// goEnv returns a setting of the go command.
func goEnv(name string) (string, error) {
	text, err := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(text)), err
}

// Open returns a builder in the directory of all tests, with the toolchain on PATH. The pool must live as long as the builder is used.
func Open(p Pool) (*native.Builder, error) {
	o := native.DefaultOptions()
	o.Timeout, o.MaxBytes = time.Hour, 2<<30 // a busy machine is not a program's fault
	shared, err := Shared()
	if err != nil {
		return nil, err
	}
	if o.Toolchain, err = native.Find(""); err != nil {
		return nil, err
	}
	module, err := goEnv("GOMOD")
	if err != nil {
		return nil, err
	}
	if o.Key, err = keyIn(shared[0]); err != nil {
		return nil, err
	}
	o.Dir, o.Sources = shared[0], os.DirFS(filepath.Join(filepath.Dir(module), "internal", "runtime"))
	o.Run = p.RunTools
	b, err := native.New(o)
	if err != nil {
		return nil, err
	}
	b.GoCache = shared[1]
	return b, nil
}

// keyIn is the key of an installation in the directory.
func keyIn(dir string) (*seal.Key, error) {
	at, err := beneath.Open(dir)
	if err != nil {
		return nil, err
	}
	key, err := seal.Open(at)
	return key, errors.Join(err, at.Close())
}

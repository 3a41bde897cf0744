// Package nativetest provides a native.Builder for tests that compile real programs. Its results are kept for tests of
// other packages and for later runs.
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

// A Pool runs tools. sandbox.Pool implements it.
type Pool interface {
	RunTools(ctx context.Context, t wire.Tools) ([]byte, error)
}

// Shared returns the directory in which all tests of this copy of the module keep what they compile, and the go
// command's cache. Later runs reuse unchanged executables, which are stored by a digest of what they are made of. The
// directory is below the temporary directory, where the users of the sandbox can traverse it. Each copy of the module
// has a directory of its own, because a Builder removes the packages of other versions.
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
	dropOrphans(own)
	if err := errors.Join(os.MkdirAll(dir, 0o711),
		os.WriteFile(filepath.Join(dir, moduleFile), []byte(module), 0o600)); err != nil {
		return dirs, err
	}
	cache, err := goEnv("GOCACHE")
	return [2]string{dir, cache}, err
})

// moduleFile is the name of the file that holds the path of the copy's go.mod.
const moduleFile = "module"

// dropOrphans removes the directories of copies that no longer exist. Several test processes may remove one at the same
// time, so that none of them can rely on its end.
func dropOrphans(own string) {
	names, _ := filepath.Glob(filepath.Join(own, "compiled*"))
	for _, name := range names {
		module, err := os.ReadFile(filepath.Join(name, moduleFile))
		if err != nil { // it is being created
			continue
		}
		if _, err := os.Stat(string(module)); errors.Is(err, os.ErrNotExist) {
			_ = os.RemoveAll(name)
		}
	}
}

// goEnv returns a setting of the go command.
func goEnv(name string) (string, error) {
	text, err := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(text)), err
}

// Open returns a Builder in the shared directory, with the toolchain on PATH. The pool must outlive the Builder.
func Open(p Pool) (*native.Builder, error) {
	o := native.DefaultOptions()
	o.Timeout, o.MaxBytes = time.Hour, 2<<30 // a busy machine must not fail a test
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

// keyIn returns the installation key kept in the directory.
func keyIn(dir string) (*seal.Key, error) {
	at, err := beneath.Open(dir)
	if err != nil {
		return nil, err
	}
	key, err := seal.Open(at)
	return key, errors.Join(err, at.Close())
}

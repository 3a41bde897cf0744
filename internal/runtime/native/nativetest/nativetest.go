// Package nativetest has the builder of tests that compile real programs. What all programs share is compiled in the go command's own cache, so that it costs seconds once a machine.
package nativetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// A Pool checks programs and runs tools. sandbox.Pool is one.
type Pool interface {
	NativeText(ctx context.Context, source string) (string, error)
	RunTools(ctx context.Context, t wire.Tools) ([]byte, error)
}

// Open returns a builder for the tests of a package in a temporary directory, which remove removes. It takes the toolchain on PATH. The pool must live as long as the builder is used.
func Open(p Pool) (b *native.Builder, remove func(), err error) {
	o := native.DefaultOptions()
	o.Timeout, o.Waited = time.Hour, true // a busy machine is not a program's fault
	if o.Toolchain, err = native.Find(native.SettingAuto, ""); err != nil {
		return nil, nil, err
	}
	said, err := exec.Command("go", "env", "GOMOD", "GOCACHE").Output()
	if err != nil {
		return nil, nil, err
	}
	module, cache, ok := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if !ok {
		return nil, nil, fmt.Errorf("go env: %q", said)
	}
	o.Sources, o.Text, o.Run = os.DirFS(filepath.Join(filepath.Dir(module), "internal", "runtime")), p.NativeText, p.RunTools
	if o.Dir, err = os.MkdirTemp("", "compiled"); err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(o.Dir) } // it is below the temporary directory
	if o.Key, err = keyIn(o.Dir); err == nil {
		b, err = native.New(o)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	b.GoCache = cache
	return b, remove, nil
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

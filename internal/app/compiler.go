package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// compileAll has the pool compile all programs with the toolchain.
func (a *App) compileAll(o Options, p parts, with native.Toolchain) error {
	key, dir, err := openCompiled(o)
	if err != nil {
		return err
	}
	b, err := openBuilder(dir, p, with, key)
	if err != nil {
		return err
	}
	p.pool.UseCompiler(&compiler{b, report.EngineGo + " " + with.Version, fair.NewShare[agent.Owner](int64(o.Runners))})
	return nil
}

// openCompiled returns the directory of what is compiled, and the key that it is sealed with.
func openCompiled(o Options) (*seal.Key, string, error) {
	if o.CompilerDir == "" {
		key, err := openDerived(o.DataDir)
		return key, filepath.Join(NativeDir(o.DataDir), nativeCache), err
	}
	if err := os.MkdirAll(o.CompilerDir, 0o711); err != nil {
		return nil, "", err
	}
	at, err := beneath.Open(o.CompilerDir)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = at.Close() }() // it was only read
	key, err := seal.Open(at)
	return key, o.CompilerDir, err
}

// A compiler is a native.Builder as the sandbox asks it. Owners take turns at it.
type compiler struct {
	builder *native.Builder
	engine  string
	turns   *fair.Share[agent.Owner]
}

func (c *compiler) Engine() string { return c.engine }

func (c *compiler) Find(checksum string) (*sandbox.Executable, error) {
	x, err := c.builder.Find(checksum)
	if x == nil || err != nil {
		return nil, err
	}
	return executable(x)
}

func (c *compiler) Compile(ctx context.Context, what sandbox.Compilation) (*sandbox.Executable, error) {
	about, err := json.Marshal(what.Facts)
	if err != nil {
		return nil, err
	}
	if err := c.turns.Enter(ctx, what.Owner, 1); err != nil {
		return nil, err
	}
	defer c.turns.Leave(what.Owner, 1)
	x, err := c.builder.Compile(ctx, what.Checksum, what.Text, about)
	var failed *native.BuildError
	if errors.As(err, &failed) && failed.Refused() {
		return nil, &sandbox.CompileError{Text: failed.Text}
	}
	if err != nil {
		return nil, err
	}
	return executable(x)
}

// executable is what the builder has made, as the sandbox runs it.
func executable(x *native.Executable) (*sandbox.Executable, error) {
	facts := &report.Facts{}
	if err := json.Unmarshal(x.About, facts); err != nil {
		return nil, err
	}
	return &sandbox.Executable{Path: x.Path, Digest: x.Sum, Facts: facts}, nil
}

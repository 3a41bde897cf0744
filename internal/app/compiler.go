package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/seal"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// CompilerOptions configure what compiles programs under --engine go.
type CompilerOptions struct {
	// ProgramCache is how many bytes compiled programs may take on the disk, at least 64 MiB.
	ProgramCache Bytes `name:"program-cache" env:"RECURGENT_PROGRAM_CACHE" value:"BYTES" help:"compiled programs that are kept; beyond it the least recently used go, and are compiled again when they are called"`
	// Builds is how many programs one owner may have compiled at once, 1 to 1024.
	Builds int `name:"builds" env:"RECURGENT_BUILDS" value:"N" default:"number of CPUs" help:"programs that are compiled at the same time under --engine go; owners take turns"`

	CompilerDir string // keeps executables and what they are made of, also for other daemons of the same binary, for tests; "": DataDir does
	GoCache     string // the go command's that compiles what all programs share, for tests; "": one that is removed
}

func (o *CompilerOptions) check() error {
	if o.ProgramCache < leastProgramCache {
		return refuse("program-cache", "must be at least %s, got %s", leastProgramCache, o.ProgramCache)
	}
	if o.Builds < 1 || o.Builds > 1024 {
		return refuse("builds", "must be 1 to 1024, got %d", o.Builds)
	}
	return nil
}

// toolchain is the setting of the toolchain that programs are compiled with: where the compiler is the engine, it is not off.
func (o *Options) toolchain() string {
	if o.Engine == report.EngineGo && o.Native == native.SettingOff {
		return native.SettingAuto
	}
	return o.Native
}

// compileAll has the pool compile all programs with the toolchain.
func (a *App) compileAll(o Options, p *parts, with native.Toolchain) error {
	key, dir, err := openCompiled(o)
	if err != nil {
		return err
	}
	b, err := openBuilder(dir, o.ProgramCache, p, with, key)
	if err != nil {
		return err
	}
	b.GoCache = o.GoCache
	a.prepareNative(with, b)
	p.compiled = b.Bytes
	p.pool.UseCompiler(&compiler{b, report.EngineGo + " " + with.Version, fair.NewShare[agent.Owner](int64(o.Builds)), p.metrics})
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
	metrics *telemetry.Metrics
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
	began := time.Now()
	x, err := c.builder.Compile(ctx, what.Checksum, what.Text, about)
	outcome := "ok"
	var failed *native.BuildError
	switch {
	case errors.As(err, &failed) && failed.Refused():
		outcome, err = "refused", &sandbox.CompileError{Text: failed.Text}
	case ctx.Err() != nil:
		outcome = "canceled"
	case err != nil:
		outcome = "failed"
	}
	c.metrics.Build(outcome, time.Since(began))
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

package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/fair"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
	"github.com/recurgentd/recurgentd/internal/seal"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// CompilerOptions configure the compilation of programs.
type CompilerOptions struct {
	// ProgramCache bounds the compiled programs on disk, in bytes, at least 64 MiB.
	ProgramCache Bytes `name:"program-cache" env:"RECURGENT_PROGRAM_CACHE" value:"BYTES" help:"compiled programs that are kept; beyond it the least recently used go, and are compiled again when they are called"`
	// Builds is how many programs one owner may compile at once, 1 to 1024.
	Builds int `name:"builds" env:"RECURGENT_BUILDS" value:"N" default:"number of CPUs" help:"programs that are compiled at the same time; owners take turns"`

	// CompilerDir is the directory of executables and build inputs; "" is below DataDir. Only tests set it: daemons of
	// the same binary may share it.
	CompilerDir string
	GoCache     string // Go build cache for the shared packages, for tests; "": a temporary one
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

// compilerDir returns the directory below a data directory that contains executables and their build inputs.
func compilerDir(dataDir string) string {
	return filepath.Join(dataDir, store.DerivedDir, compilerCache)
}

// compilerCache is the name of that directory below store.DerivedDir.
const compilerCache = "cache"

// FindCompiler returns the toolchain that compiles programs. If there is none, why is the reason. confined is the
// sandbox in which executables must start; nil means that it is not known yet.
func FindCompiler(confined *sandbox.Status) (found native.Toolchain, why string) {
	found, err := native.Find(embedded.Compiler)
	switch {
	case err != nil:
		return found, err.Error()
	case confined == nil:
	case confined.NativeOff() != "":
		return native.Toolchain{}, "compiled programs cannot be started confined: " + confined.NativeOff()
	}
	return found, ""
}

// compiles reports whether the engine setting asks for compiled programs.
func (o *Options) compiles() bool { return o.Engine != report.EngineYaegi }

// openCompiler makes the pool compile programs if the engine setting asks for it and the machine can. Otherwise the
// result has the reason, unless the setting insists, which is an error.
func (a *App) openCompiler(o Options, p *parts) (env.Compiling, error) {
	if !o.compiles() {
		return env.Compiling{Why: "--engine is " + o.Engine}, nil
	}
	if p.pool == nil {
		return env.Compiling{Why: "programs run in no processes"}, nil
	}
	status := p.pool.Status()
	found, why := FindCompiler(&status)
	if why == "" {
		if err := a.compileAll(o, p, found); err != nil {
			why = err.Error()
		}
	}
	switch {
	case why == "":
		return env.Compiling{Toolchain: found.Version, From: found.From()}, nil
	case o.Engine != report.EngineAuto:
		return env.Compiling{}, refuse("engine",
			"%s cannot compile programs here: %s; set auto, which needs no compiler", o.Engine, why)
	}
	a.log.Warn().Str("reason", why).Msg("programs are not compiled: only plain ones run")
	return env.Compiling{Why: why}, nil
}

// compileAll makes the pool compile all programs with the toolchain.
func (a *App) compileAll(o Options, p *parts, with native.Toolchain) error {
	c, err := newCompiler(o, p.pool, with)
	if err != nil {
		return err
	}
	c.metrics = p.metrics
	if o.CompilerDir == "" { // daemons that share a directory would all verify the same files
		a.prepareCompiler(c.builder)
	}
	p.compiled, p.compiler = c.builder.Bytes, c
	p.pool.UseCompiler(c)
	return nil
}

// newCompiler returns a compiler whose tools run in the pool, and which keeps executables below the data directory.
func newCompiler(o Options, pool *sandbox.Pool, with native.Toolchain) (*compiler, error) {
	key, dir, err := openCompiled(o)
	if err != nil {
		return nil, native.Unusable(dir, err)
	}
	no := native.DefaultOptions()
	no.Toolchain, no.Dir, no.Key, no.Sources, no.Run = with, dir, key, runtime.NativeSources, pool.RunTools
	no.MaxBytes, no.Timeout = int64(o.ProgramCache), buildTime
	b, err := native.New(no)
	if err != nil {
		return nil, err
	}
	b.GoCache = o.GoCache
	return &compiler{b, report.EngineGo + " " + with.Version, fair.NewShare[agent.Owner](int64(o.Builds)), nil}, nil
}

// OpenGate opens a pool that checks programs, and compiles them if a daemon with these options would. It writes below
// dir only, which must exist. The caller closes the pool. Without a compiler, why is the reason.
func OpenGate(o Options, dir string) (pool *sandbox.Pool, why string, err error) {
	o.DataDir = dir
	so := o.SandboxOptions()
	so.Require, so.Blank, so.Native = string(sandbox.LevelProcess), 0, o.compiles()
	if pool, err = sandbox.New(so); err != nil {
		return nil, "", err
	}
	if !o.compiles() {
		return pool, "--engine is " + o.Engine, nil
	}
	status := pool.Status()
	found, why := FindCompiler(&status)
	if why != "" {
		return pool, why, nil
	}
	c, err := newCompiler(o, pool, found)
	if err != nil {
		return pool, err.Error(), nil
	}
	pool.UseCompiler(c)
	return pool, "", nil
}

// buildTime bounds one build. The first build with an installed toolchain compiles the shared packages, which takes a
// minute of CPU time.
const buildTime = 10 * time.Minute

// prepareCompiler compiles the shared packages in the background after Start, for the first program. Doing it earlier
// would slow the start down.
func (a *App) prepareCompiler(b *native.Builder) {
	ctx, cancel := context.WithCancel(context.Background())
	var under sync.WaitGroup
	a.prepare = func() {
		under.Go(func() {
			if err := b.Prepare(ctx); err != nil && ctx.Err() == nil {
				a.log.Warn().Err(err).Msg("no program can be compiled")
			}
		})
	}
	a.onStop("the compiler", func(context.Context) error {
		cancel()
		under.Wait()
		return nil
	})
}

// openCompiled opens the directory of compiled programs, and returns it with the key that seals them.
func openCompiled(o Options) (*seal.Key, string, error) {
	if o.CompilerDir == "" {
		key, err := openDerived(o.DataDir)
		return key, compilerDir(o.DataDir), err
	}
	if err := os.MkdirAll(o.CompilerDir, 0o711); err != nil {
		return nil, o.CompilerDir, err
	}
	at, err := beneath.Open(o.CompilerDir)
	if err != nil {
		return nil, o.CompilerDir, err
	}
	defer func() { _ = at.Close() }() // it was only read from
	key, err := seal.Open(at)
	return key, o.CompilerDir, err
}

// openDerived makes the directories of derived data in a data directory, and returns the key that seals them. It
// deletes notes of earlier versions about programs, since they contain data of calls.
func openDerived(dataDir string) (*seal.Key, error) {
	top, err := beneath.Open(dataDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = top.Close() }() // it was only read from
	if err := top.Mkdir(path.Join(store.DerivedDir, compilerCache), 0o711); err != nil {
		return nil, err
	}
	at, err := beneath.Open(top.Path(store.DerivedDir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }() // it was only read from
	if err := errors.Join(at.RemoveAll("verdicts"), at.RemoveAll("differences")); err != nil {
		return nil, err
	}
	return seal.Open(at)
}

// A compiler implements sandbox.Compiler with a native.Builder. Owners take turns.
type compiler struct {
	builder *native.Builder
	engine  string
	turns   *fair.Share[agent.Owner]
	metrics *telemetry.Metrics // nil means that builds are not counted
}

// about is the metadata of an executable.
type about struct {
	Namespace agent.Namespace `json:"namespace"` // of the call that caused the build; "" in tests
	report.Facts
}

// erase removes the executables that were built for a namespace. A namespace with the same program builds it again. A
// nil compiler has none.
func (c *compiler) erase(ctx context.Context, name agent.Namespace) error {
	if c == nil {
		return nil
	}
	return c.builder.Drop(ctx, func(text []byte) bool {
		var known about
		return json.Unmarshal(text, &known) != nil || known.Namespace == name
	})
}

// Engine is part of sandbox.Compiler.
func (c *compiler) Engine() string { return c.engine }

// Find is part of sandbox.Compiler.
func (c *compiler) Find(checksum string) (*sandbox.Executable, error) {
	x, err := c.builder.Find(checksum)
	if x == nil {
		return nil, ofProgram(err)
	}
	return executable(x)
}

// ofProgram converts the error of a build. If the compiler refused the program, it returns a *sandbox.CompileError.
func ofProgram(err error) error {
	if failed, is := errors.AsType[*native.BuildError](err); is && failed.Refusal != "" {
		return &sandbox.CompileError{Text: failed.Refusal}
	}
	return err
}

// Compile is part of sandbox.Compiler. Builds in the background wait behind all others.
func (c *compiler) Compile(ctx context.Context, what sandbox.Compilation) (*sandbox.Executable, error) {
	about, err := json.Marshal(about{what.Owner.Namespace, *what.Facts})
	if err != nil {
		return nil, err
	}
	enter := c.turns.Enter
	if sandbox.InBackground(ctx) {
		enter = c.turns.EnterLast
	}
	if err := enter(ctx, what.Owner, 1); err != nil {
		return nil, err
	}
	defer c.turns.Leave(what.Owner, 1)
	began := time.Now()
	x, err := c.builder.Compile(ctx, what.Checksum, what.Text, about)
	err = ofProgram(err)
	outcome := "ok"
	switch _, refused := errors.AsType[*sandbox.CompileError](err); {
	case refused:
		outcome = "refused"
	case ctx.Err() != nil:
		outcome = "canceled"
	case err != nil:
		outcome = "failed"
	}
	if c.metrics != nil {
		c.metrics.Build(outcome, time.Since(began))
	}
	if err != nil {
		return nil, err
	}
	return executable(x)
}

// executable converts an executable of the builder for the sandbox.
func executable(x *native.Executable) (*sandbox.Executable, error) {
	var known about
	if err := json.Unmarshal(x.About, &known); err != nil {
		return nil, errors.Join(err, x.File.Close())
	}
	return &sandbox.Executable{File: x.File, Facts: &known.Facts}, nil
}

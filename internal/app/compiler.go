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
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
	"github.com/recurgentd/recurgentd/internal/seal"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// CompilerOptions configure what compiles programs.
type CompilerOptions struct {
	// ProgramCache is how many bytes compiled programs may take on the disk, at least 64 MiB.
	ProgramCache Bytes `name:"program-cache" env:"RECURGENT_PROGRAM_CACHE" value:"BYTES" help:"compiled programs that are kept; beyond it the least recently used go, and are compiled again when they are called"`
	// Builds is how many programs one owner may have compiled at once, 1 to 1024.
	Builds int `name:"builds" env:"RECURGENT_BUILDS" value:"N" default:"number of CPUs" help:"programs that are compiled at the same time; owners take turns"`

	// keeps executables and what they are made of, also for other daemons of the same binary, for tests; "": DataDir does
	CompilerDir string
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

// CompilerDir is where a data directory keeps executables and what they are made of.
func CompilerDir(dataDir string) string {
	return filepath.Join(dataDir, store.DerivedDir, compilerCache)
}

// compilerCache is the directory of the builder below store.DerivedDir.
const compilerCache = "cache"

// FindCompiler returns the toolchain that compiles programs, or why none does under that confinement, which is nil while it is unknown.
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

// compiles reports whether the setting has programs compiled where that is possible.
func (o *Options) compiles() bool { return o.Engine != report.EngineYaegi }

// openCompiler has the pool compile all programs, where the setting wants it and the machine can. Views show what it returns.
func (a *App) openCompiler(o Options, p *parts) (runtime.Compiling, error) {
	if !o.compiles() {
		return runtime.Compiling{Why: "--engine is " + o.Engine}, nil
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
		return runtime.Compiling{Toolchain: found.Version, From: found.From()}, nil
	case o.Engine != report.EngineAuto:
		return runtime.Compiling{}, refuse("engine",
			"%s compiles programs, which cannot be done here: %s; take auto, which needs no compiler", o.Engine, why)
	}
	a.log.Warn().Str("reason", why).Msg("programs are not compiled: only plain ones run")
	return runtime.Compiling{Why: why}, nil
}

// compileAll has the pool compile all programs with the toolchain.
func (a *App) compileAll(o Options, p *parts, with native.Toolchain) error {
	key, dir, err := openCompiled(o)
	if err != nil {
		return native.Unusable(dir, err)
	}
	no := native.DefaultOptions()
	no.Toolchain, no.Dir, no.Key, no.Sources, no.Run = with, dir, key, runtime.NativeSources, p.pool.RunTools
	no.MaxBytes, no.Timeout = int64(o.ProgramCache), buildTime
	b, err := native.New(no)
	if err != nil {
		return err
	}
	b.GoCache = o.GoCache
	if o.CompilerDir == "" { // daemons that share one would all verify the same
		a.prepareCompiler(b)
	}
	p.compiled = b.Bytes
	p.compiler = &compiler{b, report.EngineGo + " " + with.Version, fair.NewShare[agent.Owner](int64(o.Builds)),
		p.metrics}
	p.pool.UseCompiler(p.compiler)
	return nil
}

// buildTime bounds one build. The first one with an installed toolchain compiles what all executables share, which takes a minute of processor time.
const buildTime = 10 * time.Minute

// prepareCompiler has what all programs share made ready as soon as the daemon is, for the first program: before, it would take the processor from the start.
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

// openCompiled returns the directory of what is compiled, and the key that it is sealed with.
func openCompiled(o Options) (*seal.Key, string, error) {
	if o.CompilerDir == "" {
		key, err := openDerived(o.DataDir)
		return key, CompilerDir(o.DataDir), err
	}
	if err := os.MkdirAll(o.CompilerDir, 0o711); err != nil {
		return nil, o.CompilerDir, err
	}
	at, err := beneath.Open(o.CompilerDir)
	if err != nil {
		return nil, o.CompilerDir, err
	}
	defer func() { _ = at.Close() }() // it was only read
	key, err := seal.Open(at)
	return key, o.CompilerDir, err
}

// openDerived makes the directories of what is derived in a data directory, and returns the key that it is sealed with. What earlier versions noted there about
// programs, with calls of people in it, goes.
func openDerived(dataDir string) (*seal.Key, error) {
	top, err := beneath.Open(dataDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = top.Close() }() // it was only read
	if err := top.Mkdir(path.Join(store.DerivedDir, compilerCache), 0o711); err != nil {
		return nil, err
	}
	at, err := beneath.Open(top.Path(store.DerivedDir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }() // it was only read
	if err := errors.Join(at.RemoveAll("verdicts"), at.RemoveAll("differences")); err != nil {
		return nil, err
	}
	return seal.Open(at)
}

// A compiler is a native.Builder as the sandbox asks it. Owners take turns at it.
type compiler struct {
	builder *native.Builder
	engine  string
	turns   *fair.Share[agent.Owner]
	metrics *telemetry.Metrics
}

// about is what an executable brings with it.
type about struct {
	Namespace agent.Namespace `json:"namespace"` // whose call had it made; "" where tests have
	report.Facts
}

// erase removes the executables that were made for a namespace. Others that have the same programs have them made again.
func (c *compiler) erase(ctx context.Context, name agent.Namespace) error {
	if c == nil {
		return nil
	}
	return c.builder.Drop(ctx, func(text []byte) bool {
		var known about
		return json.Unmarshal(text, &known) != nil || known.Namespace == name
	})
}

func (c *compiler) Engine() string { return c.engine }

func (c *compiler) Find(checksum string) (*sandbox.Executable, error) {
	x, err := c.builder.Find(checksum)
	if x == nil {
		return nil, ofProgram(err)
	}
	return executable(x)
}

// ofProgram returns the error of a build as the sandbox knows it: a program that was refused has a *sandbox.CompileError.
func ofProgram(err error) error {
	if failed, is := errors.AsType[*native.BuildError](err); is && failed.Refusal != "" {
		return &sandbox.CompileError{Text: failed.Refusal}
	}
	return err
}

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
	c.metrics.Build(outcome, time.Since(began))
	if err != nil {
		return nil, err
	}
	return executable(x)
}

// executable is what the builder has made, as the sandbox runs it.
func executable(x *native.Executable) (*sandbox.Executable, error) {
	var known about
	if err := json.Unmarshal(x.About, &known); err != nil {
		return nil, errors.Join(err, x.File.Close())
	}
	return &sandbox.Executable{File: x.File, Facts: &known.Facts}, nil
}

package app

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/embedded"
	"github.com/recurgentd/recurgentd/internal/runtime/tier"
	"github.com/recurgentd/recurgentd/internal/seal"
	"github.com/recurgentd/recurgentd/internal/store"
)

// NativeDir is where the native tier of a data directory keeps its files: executables, verdicts and differences.
func NativeDir(dataDir string) string { return filepath.Join(dataDir, store.DerivedDir) }

// FindNative returns the toolchain that the setting --native leads to, or why programs are not compiled under that confinement; confined is nil while the confinement is
// unknown. The error is an *OptionError: a named directory that does not serve.
func FindNative(setting string, confined *sandbox.Status) (found native.Toolchain, why string, err error) {
	found, err = native.Find(setting, embedded.Compiler)
	switch {
	case setting == native.SettingOff:
		return found, "--native is off", nil
	case errors.Is(err, native.ErrOff):
		return found, strings.TrimPrefix(err.Error(), native.ErrOff.Error()+": "), nil
	case err != nil:
		return found, "", refuse("native", "%s", err)
	case confined == nil:
	case confined.Level == sandbox.LevelProcess:
		return native.Toolchain{}, "programs are confined at level " + string(confined.Level) + ", and compiled ones need reduced or full", nil
	case confined.NativeOff() != "":
		return native.Toolchain{}, "compiled programs cannot be started confined: " + confined.NativeOff(), nil
	}
	return found, "", nil
}

// buildTime bounds one build. The first one compiles what all executables share, which takes a minute of processor time.
const buildTime = 10 * time.Minute

// openNative makes the native tier, which is off where there is no toolchain or too little confinement, or where links lead out of its directory. Where the compiler is the
// engine it is off as well, and the pool has all programs compiled.
func (a *App) openNative(o Options, p *parts) (*tier.Tier, error) {
	to := tier.Options{Dir: NativeDir(o.DataDir), Box: p.pool, Metrics: p.metrics, Logger: a.log, Now: o.Now}
	status := p.pool.Status()
	found, why, err := FindNative(o.toolchain(), &status)
	if err != nil {
		return nil, err
	}
	if o.Engine == report.EngineGo {
		if why == "" {
			err = a.compileAll(o, p, found)
		} else {
			err = refuse("engine", "go compiles programs, which cannot be done here: %s; take auto, which needs no compiler", why)
		}
		to.Why = "the compiler is the engine"
		tiers, _ := tier.New(to) // it fails with a builder only
		return tiers, err
	}
	to.Why, to.Toolchain, to.From = why, found.Version, found.From()
	to.Identity = found.Version + " " + p.build.Version + " " + p.build.Revision
	if why != "" {
		return tier.New(to)
	}
	to.Key, err = openDerived(o.DataDir)
	switch {
	case err != nil:
		err = native.Unusable(to.Dir, err)
	case o.NativeBuilder != nil:
		to.Builder = o.NativeBuilder
	default:
		var b *native.Builder
		if b, err = openBuilder(filepath.Join(to.Dir, nativeCache), o.ProgramCache, p, found, to.Key); err == nil {
			to.Builder, to.Fault = tierBuilder{b}, b.Fault
			a.prepareNative(found, b)
		}
	}
	if err != nil {
		to.Why = err.Error()
	}
	return tier.New(to)
}

// openBuilder opens the builder of a directory.
func openBuilder(dir string, most Bytes, p *parts, with native.Toolchain, key *seal.Key) (*native.Builder, error) {
	no := native.DefaultOptions()
	no.MaxBytes, no.Waited = int64(most), p.options.Engine == report.EngineGo
	no.Timeout = buildTime
	no.Toolchain, no.Dir, no.Key, no.Sources, no.Text, no.Run = with, dir, key, runtime.NativeSources, p.pool.NativeText, p.pool.RunTools
	return native.New(no)
}

// prepareNative has the carried compiler made ready as soon as the daemon is, for the first program that wants it: before, it would take the processor from the start.
func (a *App) prepareNative(found native.Toolchain, b *native.Builder) {
	if !found.Carried() {
		return // the packages of an installed one take a minute to compile: that waits for a program
	}
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

// nativeCache is the directory of the builder below NativeDir.
const nativeCache = "cache"

// openDerived makes the directories of what is derived in a data directory, and returns the key that it is sealed with.
func openDerived(dataDir string) (*seal.Key, error) {
	top, err := beneath.Open(dataDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = top.Close() }() // it was only read
	if err := top.Mkdir(path.Join(store.DerivedDir, nativeCache), 0o711); err != nil {
		return nil, err
	}
	at, err := beneath.Open(top.Path(store.DerivedDir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }() // it was only read
	return seal.Open(at)
}

// A tierBuilder is a native.Builder as the tier asks it.
type tierBuilder struct{ builder *native.Builder }

func (c tierBuilder) Build(ctx context.Context, source string) (path, digest string, err error) {
	x, err := c.builder.Build(ctx, source)
	switch {
	case errors.Is(err, sandbox.ErrNoNativeForm):
		return "", "", fmt.Errorf("%w: %w", tier.ErrUnsupported, err)
	case err != nil:
		return "", "", err
	}
	return x.Path, x.Sum, nil
}

// source is a tier.Sources.
func (n *namespaces) source(ctx context.Context, of agent.Namespace) (tier.Source, func(), error) {
	if s := n.get(of); s != nil && s.enter() {
		return s.NativeSource(), s.leave, nil
	}
	s, err := n.use(ctx, of, true)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return s.NativeSource(), s.leave, nil
}

// Package native builds checked programs with the Go compiler that the binary embeds (package carried), or with an
// installed Go toolchain. An executable holds one program and speaks the runner's side of package wire, so the sandbox
// can run it in place of a runner.
//
// It does not compile the program's own text but the text that a runner derived from it (package rewrite), in which the
// clock, randomness and the order of map ranges come from the call. It keeps the executables in a directory, by a
// digest of what they are made of. A file there counts only with a seal of this installation (package seal) that fits
// its bytes. Anything else is built again.
//
// The package parses no program. It does not decide when to build or whether to use an executable.
package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// Options configures a Builder. Start from DefaultOptions.
type Options struct {
	Toolchain Toolchain
	Dir       string    // the cache directory, created if it is missing; one Builder at a time may use it
	Key       *seal.Key // the installation's key
	// Sources is the tree of internal/runtime. It holds the packages that are linked into every executable, and those
	// that write the text of a program.
	Sources  fs.FS
	MaxBytes int64         // most bytes of all executables in Dir; the least recently used are removed first
	Timeout  time.Duration // bounds one build
	Memory   int64         // bytes of data per process of a build
	// Run runs tools in confinement and returns the output of the one that failed (sandbox.Pool.RunTools).
	Run func(ctx context.Context, t wire.Tools) ([]byte, error)
}

// DefaultOptions returns defaults for all options except Toolchain, Dir, Key, Sources and Run, which the caller must
// set.
func DefaultOptions() Options {
	return Options{MaxBytes: 512 << 20, Timeout: time.Minute, Memory: 1 << 30}
}

// An Executable is a built program.
type Executable struct {
	File  *os.File // open and verified; the receiver must close it
	About []byte   // the about argument of Compile
}

// A Builder builds executables. Its methods may be called concurrently.
type Builder struct {
	opts    Options
	version string // version of everything in an executable except the program
	texts   string // version of the packages that write program texts, and of the bounds of a build
	GoCache string // GOCACHE for the go command, shared by tests; "" means one that is removed after use

	at    *beneath.Dir // the cache directory
	work  string       // directory in it for this Builder's builds in progress
	alive *os.File     // that directory, locked while the process lives

	mu     sync.Mutex
	making map[string]*making  // guarded by mu; builds in progress, by digest
	seen   map[string]sighting // guarded by mu; verified executables, by digest

	bytes     atomic.Int64 // bytes of the executables in the cache
	pruning   sync.Mutex   // held while the cache is pruned
	preparing sync.Mutex   // held while packages is prepared
	// packages is guarded by preparing. It holds the verified packages that all executables share, and is nil before
	// the first build.
	packages *packages
}

// New returns a Builder and removes what an earlier one left unfinished in Dir. It does not build anything yet. It
// returns a *DirError if Dir cannot be used.
func New(o Options) (*Builder, error) {
	if o.Toolchain.Version == "" || o.Dir == "" || o.Key == nil || o.Sources == nil || o.Run == nil ||
		o.MaxBytes <= 0 || o.Timeout <= 0 || o.Memory <= 0 {
		return nil, errors.New("native: Toolchain, Dir, Key, Sources, Run, MaxBytes, Timeout and Memory must be set")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	b := &Builder{opts: o, making: map[string]*making{}, seen: map[string]sighting{}}
	b.version, err = b.supportVersion()
	if err == nil {
		b.texts, err = b.textVersion()
	}
	if err != nil {
		return nil, fmt.Errorf("native: the sources: %w", err)
	}
	if err = os.MkdirAll(dir, 0o711); err == nil {
		b.at, err = beneath.Open(dir)
	}
	if err == nil {
		err = b.layOut()
	}
	if err == nil {
		err = b.prune("")
	}
	return b, Unusable(dir, err)
}

// layOut creates the directories. The user of the tools can traverse them but not list them.
func (b *Builder) layOut() error {
	for _, name := range []string{".", "tmp", "exe"} {
		d, err := b.at.OpenDir(name)
		if err != nil { // missing, or not a directory
			if err := errors.Join(b.at.RemoveAll(name), b.at.Mkdir(name, 0o711)); err != nil {
				return err
			}
			if d, err = b.at.OpenDir(name); err != nil {
				return err
			}
		}
		if err := errors.Join(d.Chmod(0o711), d.Close()); err != nil {
			return err
		}
	}
	return b.openWork()
}

// openWork creates and locks the directory for builds in progress, and removes those of processes that have ended.
func (b *Builder) openWork() error {
	names, err := b.at.List("tmp")
	if err != nil {
		return err
	}
	for _, name := range names {
		name = path.Join("tmp", name)
		d, err := b.at.OpenDir(name)
		if err == nil {
			err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			_ = d.Close() // it was only read
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue // locked: its process lives
		}
		if err := b.at.RemoveAll(name); err != nil {
			return err
		}
	}
	for range 10 { // another process may remove the directory before it is locked
		dir, err := os.MkdirTemp(b.dir("tmp"), "of-")
		if err != nil {
			return err
		}
		b.work = path.Join("tmp", filepath.Base(dir))
		if b.alive, err = b.at.OpenDir(b.work); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := errors.Join(b.alive.Chmod(0o711), unix.Flock(int(b.alive.Fd()), unix.LOCK_EX)); err != nil {
			return err
		}
		if _, err := b.at.Stat(b.work); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.New("other processes remove what this one makes")
}

func (b *Builder) dir(name string) string { return filepath.Join(b.opts.Dir, name) }

// Find returns the executable that Compile has stored under the key, or nil if there is none. For a program that the
// compiler refused, it returns the error of Compile. It may be called concurrently.
func (b *Builder) Find(key string) (*Executable, error) { return b.cached(b.digest(key)) }

// Compile returns the executable of a text and stores it under the key, with about, at most a megabyte of data about
// the program. The key must identify the text. If the same build is in progress, Compile waits for it; a build
// continues if ctx ends. The error is a *BuildError, a *DirError or that of ctx. A refusal of the program is stored
// like an executable. It may be called concurrently.
func (b *Builder) Compile(ctx context.Context, key, text string, about []byte) (*Executable, error) {
	if len(about) > maxAbout {
		return nil, fmt.Errorf("native: %d bytes about a program", len(about))
	}
	digest := b.digest(key)
	if err := b.make(ctx, digest, text, about); err != nil {
		return nil, err
	}
	x, err := b.cached(digest)
	if x == nil && err == nil {
		err = errors.New("native: the executable was removed as soon as it was made")
	}
	return x, err
}

// digest returns the name of an executable, a digest of everything that it is made of.
func (b *Builder) digest(key string) string {
	sum := sha256.Sum256([]byte(b.version + "\x00" + b.texts + "\x00" + key))
	return hex.EncodeToString(sum[:])
}

// A making is a build in progress.
type making struct {
	done chan struct{} // closed once err is set
	err  error
}

// make builds the executable with the digest if it does not exist. Concurrent calls for the same digest share one
// build.
func (b *Builder) make(ctx context.Context, digest, text string, about []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.mu.Lock()
	m := b.making[digest]
	if m == nil {
		m = &making{done: make(chan struct{})}
		b.making[digest] = m
		go b.finish(context.WithoutCancel(ctx), m, digest, text, about)
	}
	b.mu.Unlock()
	select {
	case <-m.done:
		return m.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish runs the build of m and publishes the result.
func (b *Builder) finish(ctx context.Context, m *making, digest, text string, about []byte) {
	ctx, cancel := context.WithTimeout(ctx, b.opts.Timeout)
	defer cancel()
	m.err = b.makeNow(ctx, digest, text, about)
	b.mu.Lock()
	delete(b.making, digest)
	b.mu.Unlock()
	close(m.done)
}

// makeNow builds and stores the executable with the digest unless it is cached.
func (b *Builder) makeNow(ctx context.Context, digest, text string, about []byte) error {
	if x, err := b.cached(digest); x != nil {
		return x.File.Close()
	} else if err != nil {
		return err
	}
	if err := b.checkToolchain(); err != nil {
		return err
	}
	p, err := b.shared(ctx)
	if err != nil {
		return err
	}
	err = b.build(ctx, p, []string{text}, digest, about)
	if fault, is := errors.AsType[*BuildError](err); is && fault.Refusal != "" {
		err = errors.Join(err, b.refuse(fault, digest, about))
	}
	if err != nil {
		return err
	}
	return b.prune(exeName(digest))
}

// shared returns the verified packages that all executables share, and prepares them if necessary.
func (b *Builder) shared(ctx context.Context) (*packages, error) {
	b.preparing.Lock()
	defer b.preparing.Unlock()
	err := Unusable(b.opts.Dir, b.makeReady(ctx))
	return b.packages, err
}

// Bytes returns the size of all executables in the cache, in bytes.
func (b *Builder) Bytes() int64 { return b.bytes.Load() }

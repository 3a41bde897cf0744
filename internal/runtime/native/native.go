// Package native builds checked programs with the Go compiler that the binary carries (package carried), or with an installed Go toolchain. An executable holds one program and speaks the runner's side of
// package wire, so that the sandbox can run it in the place of a runner.
//
// What is compiled is not the program's own text but the text that a runner made of it (package rewrite): clock, randomness and the order of map
// ranges come from the call. This package parses no program. It keeps the executables in a directory, by their content, and knows nothing of when
// to build or whether to use what was built. What it finds there counts only with a seal of this installation (package seal) that fits its bytes: anything else is
// built anew.
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
	Dir       string    // of the cache; it is created, and belongs to one Builder at a time
	Key       *seal.Key // of the installation
	// internal/runtime: the packages that are linked into every executable with its program, and those that write the text of a program
	Sources  fs.FS
	MaxBytes int64         // that the executables in Dir may take together; the least recently used go first
	Timeout  time.Duration // of one build
	Memory   int64         // bytes of data that each process of a build may have
	// Run runs tools confined, and returns what the one that failed wrote (sandbox.Pool.RunTools).
	Run func(ctx context.Context, t wire.Tools) ([]byte, error)
}

// DefaultOptions has all but Toolchain, Dir, Key, Sources and Run.
func DefaultOptions() Options {
	return Options{MaxBytes: 512 << 20, Timeout: time.Minute, Memory: 1 << 30}
}

// An Executable is a built program.
type Executable struct {
	File  *os.File // open, and verified; whoever got the Executable closes it
	About []byte   // what is known about the program: Compile's argument
}

// A Builder builds executables. Its methods may be called concurrently.
type Builder struct {
	opts    Options
	version string // of everything in an executable beside the program
	texts   string // version of what writes the texts of programs, and of the bounds of a build
	GoCache string // of the go command, where tests share one; "": one that is removed when it has done its work

	at    *beneath.Dir // the cache
	work  string       // directory in it of this builder's builds under way
	alive *os.File     // that directory, locked as long as the process lives

	mu     sync.Mutex
	making map[string]*making  // by digest; guarded by mu
	seen   map[string]sighting // executables, by digest; guarded by mu

	bytes     atomic.Int64 // of the executables in the cache
	pruning   sync.Mutex   // held while the cache is pruned
	preparing sync.Mutex   // held while what executables share is made
	packages  *packages    // what executables share, verified; nil before the first build; guarded by preparing
}

// New returns a Builder and removes what an earlier one left unfinished in Dir. It builds nothing yet.
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

// layOut makes the directories. The user of the tools goes through them from one to another, and can list none.
func (b *Builder) layOut() error {
	for _, name := range []string{".", "tmp", "exe"} {
		d, err := b.at.OpenDir(name)
		if err != nil { // it is missing, or is not a directory
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

// openWork makes the directory of builds under way, and removes those of processes that are gone.
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
			_ = d.Close() // it was only looked at
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue // its process lives
		}
		if err := b.at.RemoveAll(name); err != nil {
			return err
		}
	}
	for range 10 { // another process may find the directory before it is locked
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

// Find returns the executable that Compile has made under the key, nil where there is none. The error of a program that the compiler has refused is Compile's. It may be called concurrently.
func (b *Builder) Find(key string) (*Executable, error) { return b.cached(b.digest(key)) }

// Compile returns the executable of a text, and keeps it under the key with what is known about the program, at most a megabyte. The key stands for the text. It waits for the same build
// where that is under way, which goes on where ctx ends before. The error is a *BuildError, a *DirError or that of ctx. What says something against the program is kept as an executable is.
// It may be called concurrently.
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

// digest names an executable by all that it is made of.
func (b *Builder) digest(key string) string {
	sum := sha256.Sum256([]byte(b.version + "\x00" + b.texts + "\x00" + key))
	return hex.EncodeToString(sum[:])
}

// A making is a build under way.
type making struct {
	done chan struct{} // closed when the rest is set
	err  error
}

// make has the executable with the digest made where there is none. Who asks for one that is being built waits for it.
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

// finish does what a making says.
func (b *Builder) finish(ctx context.Context, m *making, digest, text string, about []byte) {
	ctx, cancel := context.WithTimeout(ctx, b.opts.Timeout)
	defer cancel()
	m.err = b.makeNow(ctx, digest, text, about)
	b.mu.Lock()
	delete(b.making, digest)
	b.mu.Unlock()
	close(m.done)
}

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

// shared returns what all executables share, prepared.
func (b *Builder) shared(ctx context.Context) (*packages, error) {
	b.preparing.Lock()
	defer b.preparing.Unlock()
	err := Unusable(b.opts.Dir, b.makeReady(ctx))
	return b.packages, err
}

// Bytes returns how many bytes the executables in the cache take.
func (b *Builder) Bytes() int64 { return b.bytes.Load() }

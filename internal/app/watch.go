package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	// watchEvery is how often files are looked at. They are read whole: a look at times and sizes misses what is mounted over, as
	// Kubernetes does it, and changes within the grain of a file system's clock.
	watchEvery = time.Second
	// maxWatched bounds a file that is watched, in bytes.
	maxWatched = 1 << 20
)

// A file is a value that was read from files and is read again when they change.
type file[T any] struct {
	paths []string
	read  func(contents ...[]byte) (T, error)
	now   atomic.Pointer[T]

	taken, seen [sha256.Size]byte // what was read last, and seen last; only watched uses them
	fixed       bool              // it is a pipe, or the like: it can be read once
}

// openFile reads the files for the first time.
func openFile[T any](read func(contents ...[]byte) (T, error), paths ...string) (*file[T], error) {
	f := &file[T]{paths: paths, read: read}
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		f.fixed = f.fixed || !info.Mode().IsRegular()
	}
	contents, state, err := f.load()
	if err != nil {
		return nil, err
	}
	f.taken, f.seen = state, state
	return f, f.take(contents)
}

func (f *file[T]) take(contents [][]byte) error {
	v, err := f.read(contents...)
	if err != nil {
		return fmt.Errorf("%s: %w", f.paths[0], err)
	}
	f.now.Store(&v)
	return nil
}

// load reads the files. state is another one whenever that leads to something else.
func (f *file[T]) load() (contents [][]byte, state [sha256.Size]byte, err error) {
	h := sha256.New()
	for _, p := range f.paths {
		data, err := readBounded(p)
		if err != nil {
			return nil, sha256.Sum256([]byte(err.Error())), err
		}
		contents = append(contents, data)
		fmt.Fprintf(h, "%d:", len(data))
		_, _ = h.Write(data) // never fails (hash.Hash)
	}
	return contents, [sha256.Size]byte(h.Sum(nil)), nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxWatched+1))
	if err == nil && len(data) > maxWatched {
		err = fmt.Errorf("%s has more than %d bytes", path, maxWatched)
	}
	return data, err
}

// look reads what has changed. Without now, a change is taken at the second look that finds it: it may be half written.
func (f *file[T]) look(now bool) (changed bool, err error) {
	if f.fixed {
		return false, nil
	}
	contents, state, err := f.load()
	if state == f.taken {
		f.seen = state
		return false, nil
	}
	if !now && state != f.seen {
		f.seen = state
		return false, nil
	}
	f.taken, f.seen = state, state
	if err != nil {
		return true, err
	}
	return true, f.take(contents)
}

// watched are the files that are looked at while the daemon runs.
type watched struct {
	log zerolog.Logger

	mu   sync.Mutex // of looks
	list []watchedFile
}

type watchedFile struct {
	look  func(now bool) (changed bool, err error)
	name  string
	taken func(error)
}

// watch adds a file; taken receives the result of each change.
func watch[T any](w *watched, f *file[T], taken func(error)) {
	w.list = append(w.list, watchedFile{f.look, f.paths[0], taken})
}

func (w *watched) look(now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.list {
		changed, err := f.look(now)
		if !changed {
			continue
		}
		f.taken(err)
		if err != nil {
			w.log.Error().Err(err).Str("file",
				f.name).Msg("the changed file is refused; what it held before stays in use")
		} else {
			w.log.Info().Str("file", f.name).Msg("the changed file is in use")
		}
	}
}

// start looks from now on. What it returns ends that.
func (w *watched) start() (stop func(context.Context) error) {
	if len(w.list) == 0 {
		return func(context.Context) error { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		t := time.NewTicker(watchEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				w.look(false)
			case <-ctx.Done():
				return
			}
		}
	})
	return func(context.Context) error { cancel(); ended.Wait(); return nil }
}

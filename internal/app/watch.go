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
	// watchEvery is how often watched files are read. They are read whole, since times and sizes miss a file that is
	// mounted over, as Kubernetes does, and changes within the granularity of the file system's clock.
	watchEvery = time.Second
	// maxWatched bounds the size of a watched file, in bytes.
	maxWatched = 1 << 20
)

// A file is a value parsed from one or more files, which are reread when they change. now may be loaded concurrently.
type file[T any] struct {
	paths []string
	read  func(contents ...[]byte) (T, error)
	now   atomic.Pointer[T]

	taken, seen [sha256.Size]byte // digests of the contents last parsed and last seen; guarded by watched.mu
	fixed       bool              // a path is not a regular file, such as a pipe, which can be read only once
}

// openFile reads and parses the files. The caller may watch the result.
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

// take parses the contents and publishes the value. After an error the previous value stays.
func (f *file[T]) take(contents [][]byte) error {
	v, err := f.read(contents...)
	if err != nil {
		return fmt.Errorf("%s: %w", f.paths[0], err)
	}
	f.now.Store(&v)
	return nil
}

// load reads the files. state is a digest of the contents or of the error.
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

// readBounded reads a file of at most maxWatched bytes.
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

// look rereads the files, and reports whether they changed. Unless now is set, it takes a change only if two looks in a
// row find the same contents, because a file may be half written.
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

// watched are the files that the daemon watches.
type watched struct {
	log zerolog.Logger

	mu   sync.Mutex    // held during a look
	list []watchedFile // set before start
}

// A watchedFile is a file of any type, with the callback that receives the result of each change.
type watchedFile struct {
	look  func(now bool) (changed bool, err error)
	name  string
	taken func(error)
}

// watch adds a file. taken is called after each change, with the error if the file is invalid.
func watch[T any](w *watched, f *file[T], taken func(error)) {
	w.list = append(w.list, watchedFile{f.look, f.paths[0], taken})
}

// look rereads all files and logs each change.
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

// start watches the files until stop is called, which waits for the end.
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

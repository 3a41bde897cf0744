package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A caretaker runs maintenance in all namespaces, and closes idle ones. It opens a closed namespace only if something
// may be due in it: the store knows when data expires, and sched when a schedule is due. After the start it also opens,
// once, each namespace that has changed since retention was last applied, to resume interrupted corrections.
// One goroutine uses seen and sched.
type caretaker struct {
	*namespaces
	tick  time.Duration
	turn  turn
	seen  map[agent.Namespace]time.Time // last maintenance
	sched map[agent.Namespace]time.Time // next run of its schedule, if it has one
}

// Bounds of a round.
const (
	openedAtOnce = 32 // namespaces that a round opens at most
	perPage      = 1000
	lookEvery    = time.Hour // least time between maintenance runs of a closed namespace that has changed
)

// begin starts the caretaker, which acts every tick. The returned function stops it and waits for its end.
func (n *namespaces) begin(tick time.Duration) (end func()) {
	c := &caretaker{namespaces: n, tick: tick, seen: map[agent.Namespace]time.Time{},
		sched: map[agent.Namespace]time.Time{}}
	c.turn = turn{shared: n.parts.runtime.Shared, store: n.parts.memory}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		defer c.turn.End()
		c.run(ctx)
	})
	unfollow := n.follow(ctx, &running)
	return func() {
		unfollow()
		cancel()
		running.Wait()
	}
}

// run does a round per tick until ctx ends. Only the replica that has the turn does the round; each replica closes its
// own idle namespaces.
func (c *caretaker) run(ctx context.Context) {
	tick := time.NewTicker(c.tick)
	defer tick.Stop()
	for idleSince := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.parts.spend.Record(ctx)
		c.turn.Do(ctx, c.round)
		if time.Since(idleSince) >= dropEvery {
			idleSince = time.Now()
			c.dropIdle(mostOpen, false)
		}
	}
}

// round runs maintenance in the open namespaces, then in closed ones where something is due.
func (c *caretaker) round(ctx context.Context) {
	c.all(func(s *services) { c.maintain(ctx, s) })
	if err := c.openDue(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn().Err(err).Msg("maintenance of a namespace was not done")
	}
}

// dropEvery is the interval at which namespaces that were not used since the last time are closed.
const dropEvery = time.Minute

// maintain runs the maintenance of one namespace, and records when its schedule is due next.
func (c *caretaker) maintain(ctx context.Context, s *services) {
	next := s.Maintain(ctx)
	c.seen[s.name] = c.parts.runtime.Now()
	if delete(c.sched, s.name); !next.IsZero() {
		c.sched[s.name] = next
	}
}

// openDue opens the closed namespaces in which something is due, one after the other, at most openedAtOnce of them.
func (c *caretaker) openDue(ctx context.Context) error {
	now, opened := c.parts.runtime.Now(), 0
	for after := agent.Namespace(""); ; {
		page, err := c.parts.memory.ListNamespaces(ctx, after, perPage)
		if err != nil {
			return err
		}
		for _, info := range page {
			after = info.Name
			if c.get(info.Name) != nil || !c.due(info.Name, info.Due, now) {
				continue
			}
			if opened++; opened > openedAtOnce {
				return nil // the next round does the others
			}
			s, err := c.use(ctx, info.Name, true)
			if errors.Is(err, store.ErrNotFound) {
				continue // it was erased meanwhile
			}
			if err != nil {
				return err
			}
			c.maintain(ctx, s)
			s.release()
		}
		if len(page) < perPage {
			return nil
		}
	}
}

// due reports whether something may be due in a closed namespace. expires is the store's NamespaceInfo.Due.
func (c *caretaker) due(name agent.Namespace, expires, now time.Time) bool {
	if next, ok := c.sched[name]; ok && !now.Before(next) {
		return true
	}
	seen, ok := c.seen[name]
	if expires.IsZero() {
		return !ok || now.Sub(seen) >= lookEvery
	}
	return !now.Before(expires) && now.Sub(seen) >= lookEvery
}

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
				f.name).Msg("the changed file is invalid; its previous content stays in use")
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

package disk

import (
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// testStore is a store with its default namespace.
type testStore struct {
	*Store
	ns
}

type ns = store.Namespace // an embedded Namespace would hide the method of the store

// kill ends the store as SIGKILL does: nothing more is written.
func (s *Store) kill() {
	s.flusher.stop()
	<-s.flusher.done
	s.flusher.mu.Lock()
	defer s.flusher.mu.Unlock()
	s.sequencer.mu.Lock()
	defer s.sequencer.mu.Unlock()
	s.sequencer.closed = true
	s.health.fail(os.ErrClosed)
	s.sequencer.journal.Close()
	_ = s.unlock()
}

func (s *Store) checkpoint() error { return s.flusher.writeCheckpoint() }

func testOptions(t testing.TB) Options {
	o := DefaultOptions()
	if !testing.Short() { // takes a quarter of the tests' processor time; make race checks it, too
		o.order = newOrder()
	}
	if testing.Verbose() {
		o.Logger = zerolog.New(zerolog.NewTestWriter(t))
	}
	return o
}

func open(t testing.TB, dir string, o Options) *testStore {
	t.Helper()
	s, err := openStore(t, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s
}

// openStore is open for a store that may fail to open.
func openStore(t testing.TB, dir string, o Options) (*testStore, error) {
	s, err := Open(dir, o)
	if err != nil {
		return nil, err
	}
	return &testStore{s, storetest.Default(t, s)}, nil
}

// TestStore runs the suite of all stores: with a daemon's options, with files that are written as late as possible, and
// with small limits that rotate segments and evict cached values constantly.
func TestStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Options)
	}{
		{"daemon", func(*Options) {}},
		{"lazy", func(o *Options) { o.Flush = -1 }},
		{"tiny", func(o *Options) {
			o.Flush, o.Checkpoint = time.Millisecond, 5*time.Millisecond
			o.Segment, o.LogSegment, o.Sessions, o.Artifacts = 1<<12, 4<<10, 1, 1
		}},
	} {
		if testing.Short() && c.name == "lazy" { // tiny covers the same and more
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			type opened struct {
				dir string
				o   Options
			}
			dirs := map[store.Store]opened{}
			storetest.Run(t, storetest.Harness{
				Open: func(t *testing.T, now func() time.Time) store.Store {
					o := testOptions(t)
					o.Now = now
					c.change(&o)
					dir := t.TempDir()
					s := open(t, dir, o)
					dirs[s] = opened{dir, o}
					return s
				},
				Reopen: func(t *testing.T, s store.Store, kill bool) store.Store {
					was := dirs[s]
					if kill {
						s.(*testStore).kill()
					} else if err := s.Close(t.Context()); err != nil {
						t.Fatalf("close: %v", err)
					}
					was.o.Logger = testOptions(t).Logger
					next := open(t, was.dir, was.o)
					dirs[next] = was
					return next
				},
			})
		})
	}
}

//go:build postgres

package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// harness opens stores with databases of their own. options changes their options.
func harness(options func(*testing.T, *Options)) storetest.Harness {
	open := func(t *testing.T, o Options) *Store {
		t.Helper()
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		return s
	}
	return storetest.Harness{
		Open: func(t *testing.T, now func() time.Time) store.Store {
			o := DefaultOptions("")
			o.Now, o.StoredLag = now, 0
			options(t, &o)
			return open(t, o)
		},
		Reopen: func(t *testing.T, s store.Store, kill bool) store.Store {
			old := s.(*Store)
			if kill {
				old.kill()
			}
			if err := old.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			return open(t, old.o)
		},
		Another: func(t *testing.T, s store.Store) store.Store { return open(t, s.(*Store).o) },
		Elapse: func(t *testing.T, s store.Store, d time.Duration) {
			for _, table := range []string{"leases", "candidates", "replicas"} {
				if _, err := s.(*Store).pool.Exec(t.Context(), "UPDATE "+table+
					" SET expires_at = expires_at - $1 * interval '1 microsecond'", d.Microseconds()); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}

// kill ends the store as SIGKILL would: its connections break.
func (s *Store) kill() {
	s.stop()
	s.pool.Reset()
}

func database(t *testing.T, o *Options) { o.URL = pgtest.NewDatabase(t) }

// Runs the suite directly on a database, and through a pooler in transaction mode.
func TestStore(t *testing.T) {
	storetest.Run(t, harness(database))
}

func TestStorePooled(t *testing.T) {
	storetest.Run(t, harness(func(t *testing.T, o *Options) {
		o.URL, o.Direct = pgtest.NewPool(t)
		separator := "?"
		if strings.Contains(o.URL, separator) {
			separator = "&"
		}
		o.URL += separator + pooled + "=true"
	}))
}

// The feed keeps changes as long as a reader may be away. Expired leases and candidates do not stay for long.
func TestSweep(t *testing.T) {
	stores, spaces := opened(t, pgtest.NewDatabase(t), 1)
	s, n := stores[0], spaces[0]
	seen := make(chan store.Change, 8)
	watch := func(from store.Cursor) error {
		stop, err := s.Watch(from, func(c store.Change) { seen <- c })
		if err == nil {
			t.Cleanup(stop)
		}
		return err
	}
	if err := watch(""); err != nil {
		t.Fatal(err)
	}
	put := func(key string) store.Cursor {
		if err := n.PutCandidate(t.Context(), key, []byte("{}"), time.Hour); err != nil {
			t.Fatal(err)
		}
		return (<-seen).Cursor
	}
	rows := func(table string) (count int) {
		if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&count); err != nil {
			t.Fatal(err)
		}
		return count
	}
	first := put("a")
	put("b")
	if err := s.sweep(t.Context()); err != nil || rows("feed") != 2 || rows("candidates") != 2 {
		t.Errorf("%d changes and %d candidates are left of two that are young: %v", rows("feed"), rows("candidates"),
			err)
	}
	for _, age := range []string{"UPDATE feed SET at = at - interval '25 hours'",
		"UPDATE candidates SET expires_at = expires_at - interval '2 hours' WHERE key = 'a'"} {
		if _, err := s.pool.Exec(t.Context(), age); err != nil {
			t.Fatal(err)
		}
	}
	last := put("c")
	if err := s.sweep(t.Context()); err != nil || rows("feed") != 1 || rows("candidates") != 2 {
		t.Errorf("%d changes and %d candidates are left, want 1 and 2: %v", rows("feed"), rows("candidates"), err)
	}
	if err := watch(first); !errors.Is(err, store.ErrGone) {
		t.Errorf("a reader that was away for longer: %v", err)
	}
	if err := watch(last); err != nil {
		t.Errorf("a reader that was not: %v", err)
	}
}

// A watcher whose process was stopped for longer than the feed is kept learns that it has missed changes, and continues
// with later ones.
func TestStoppedWatcherLearnsOfTheGap(t *testing.T) {
	stores, spaces := opened(t, pgtest.NewDatabase(t), 2)
	s, n := stores[0], spaces[0]
	held, entered, seen := make(chan struct{}), make(chan struct{}), make(chan store.Change, 8)
	first := true
	stop, err := stores[1].Watch("", func(c store.Change) {
		seen <- c
		if first { // like a stopped process
			first = false
			close(entered)
			<-held
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	put := func(key string) {
		if err := n.PutCandidate(t.Context(), key, []byte("{}"), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	<-entered
	put("missed")
	if _, err := s.pool.Exec(t.Context(), "UPDATE feed SET at = at - interval '25 hours'"); err != nil {
		t.Fatal(err)
	}
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	put("after")
	close(held)
	var kinds []string
	for range 3 {
		c := <-seen
		kinds = append(kinds, c.Kind+" "+c.Name)
	}
	if got := strings.Join(kinds, ", "); got != "candidate a, unseen , candidate after" {
		t.Errorf("the watcher saw %s", got)
	}
}

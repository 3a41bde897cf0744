//go:build postgres

package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
)

// A watcher that learns that a namespace was erased needs no connection besides its own. Otherwise as many watchers as
// connections would wait for each other.
func TestWatchersLeaveConnections(t *testing.T) {
	url := pgtest.NewDatabase(t)
	stores, _ := opened(t, url, 1)
	one, _ := opened(t, url+"&pool_max_conns=1", 1)
	const name = agent.Namespace("acme")
	if _, err := stores[0].CreateNamespace(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{stores[0], one[0]} { // both have it in use
		n, err := s.Space(name)
		if err != nil {
			t.Fatal(err)
		}
		created(t, n, "sess_"+s.o.URL)
	}
	heard := make(chan string, 16)
	for range 2 {
		stop, err := one[0].Watch("", func(c store.Change) {
			if c.Kind == store.ChangedNamespace || c.Kind == store.ChangedTool {
				heard <- c.Kind
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	if err := stores[0].EraseNamespace(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	home, err := stores[0].Space(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := home.PutTool(t.Context(), agent.Tool{Role: "r"}, 0, nil); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for range 4 {
		select {
		case kind := <-heard:
			got[kind]++
		case <-time.After(30 * time.Second):
			t.Fatalf("the watchers heard of %v, and wait", got)
		}
	}
	if got[store.ChangedNamespace] != 2 || got[store.ChangedTool] != 2 {
		t.Errorf("the watchers heard of %v, want the namespace and what came then, each of both", got)
	}
}

// A watcher learns that a namespace was erased before the erasure returns. A namespace of the same name that is used
// from then on stays usable.
func TestNamespaceIsUsedAgainAtOnce(t *testing.T) {
	t.Parallel()
	stores, _ := opened(t, pgtest.NewDatabase(t), 1)
	s := stores[0]
	const name = agent.Namespace("acme")
	old, err := s.Space(name)
	if err != nil {
		t.Fatal(err)
	}
	created(t, old, "sess_1")
	fresh := make(chan *Namespace, 1)
	stop, err := s.Watch("", func(c store.Change) {
		if c.Kind == store.ChangedNamespace {
			n, err := s.Space(name)
			if err != nil {
				t.Error(err)
			}
			fresh <- n
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := s.EraseNamespace(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	created(t, <-fresh, "sess_2")
	if _, err := old.Session(t.Context(), "sess_1"); !errors.Is(err, store.ErrGone) {
		t.Errorf("the erased namespace answers %v", err)
	}
}

// The feed is read once for all watchers that are caught up: a change costs no more statements for many of them than
// for a few.
func TestWatchersShareTheirReading(t *testing.T) {
	t.Parallel()
	const watchers, changes = 200, 10
	stores, spaces := opened(t, pgtest.NewDatabase(t), 1)
	s := stores[0]
	for range watchers {
		stop, err := s.Watch("", func(store.Change) {})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	for len(s.caughtUp()) < watchers {
		runtime.Gosched()
	}
	before := s.pool.Stat().AcquireCount()
	for i := range changes {
		if _, err := spaces[0].PutTool(t.Context(), agent.Tool{Role: fmt.Sprint("role ", i)}, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.pool.Stat().AcquireCount() - before; n > watchers*changes/2 {
		t.Errorf("%d changes took %d connections", changes, n)
	}
}

// A watcher that starts amid changes, or continues from a cursor, sees each later change once and in order, and no
// earlier ones, regardless of other watchers and of older transactions in progress.
func TestWatchersJoinAmidChanges(t *testing.T) {
	t.Parallel()
	const last, watchers = 300, 16
	stores, spaces := opened(t, pgtest.NewDatabase(t), 2)
	var put atomic.Int64 // how many are acknowledged
	ctx, end := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	beside.Go(func() { // transactions that hold up the feed
		for ctx.Err() == nil {
			if tx, err := stores[0].pool.Begin(ctx); err == nil {
				_, _ = tx.Exec(ctx, "SELECT pg_current_xact_id(), pg_sleep(0.03)")
				_ = tx.Rollback(context.Background())
			}
		}
	})
	var group sync.WaitGroup
	for w := range watchers {
		group.Go(func() {
			for put.Load() < int64(w*last/watchers) {
				runtime.Gosched()
			}
			seen := watchNumbers(t, stores[1], &put, last, w%4 == 0)
			for i, n := range seen[1:] {
				if n != seen[i]+1 {
					t.Errorf("watcher %d: %d came after %d", w, n, seen[i])
				}
			}
		})
	}
	go func() {
		group.Wait()
		end()
	}()
	for i := 0; ctx.Err() == nil; i++ { // until all have heard enough
		if _, err := spaces[0].PutTool(t.Context(), agent.Tool{Role: fmt.Sprint(i)}, 0, nil); err != nil {
			t.Fatal(err)
		}
		put.Store(int64(i + 1))
	}
}

// watchNumbers returns the numbered tools that a watcher is notified of, at least up to last. A watcher that comes back
// stops every 20 changes and continues from there.
func watchNumbers(t *testing.T, s *Store, put *atomic.Int64, last int, comesBack bool) (seen []int) {
	var at store.Cursor
	for len(seen) == 0 || seen[len(seen)-1] < last {
		heard, enough, before := make(chan store.Change, 4096), make(chan struct{}), put.Load()
		stop, err := s.Watch(at, func(c store.Change) {
			select {
			case heard <- c:
			case <-enough: // otherwise stop would wait for whoever waits for room
			}
		})
		if err != nil {
			t.Error(err)
			return []int{last}
		}
		after := put.Load()
		for i := 0; !comesBack || i < 20; i++ {
			c := <-heard
			n, err := strconv.Atoi(c.Role)
			if err != nil {
				t.Errorf("heard of %+v", c)
			}
			if at == "" && (int64(n) < before || int64(n) > after+1) { // one may be committed that is not acknowledged
				t.Errorf("the first number heard of is %d; %d to %d were there when watching began", n, before, after)
			}
			if seen, at = append(seen, n), c.Cursor; n >= last {
				break
			}
		}
		close(enough)
		stop()
	}
	return seen
}

// A watcher learns that changes it has not read are gone, even if they are removed just while it reads. It continues
// after them.
func TestWatchersHearWhatIsGone(t *testing.T) {
	t.Parallel()
	stores, spaces := opened(t, pgtest.NewDatabase(t), 2)
	heard, goOn := make(chan store.Change), make(chan struct{})
	stop, err := stores[0].Watch("", func(c store.Change) {
		heard <- c
		<-goOn
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	put := func(role string) {
		t.Helper()
		if _, err := spaces[1].PutTool(t.Context(), agent.Tool{Role: role}, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	next := func(kind, role string) {
		t.Helper()
		select {
		case c := <-heard:
			if c.Kind != kind || c.Role != role {
				t.Fatalf("heard of %s %q, want %s %q", c.Kind, c.Role, kind, role)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("heard of nothing, want %s %q", kind, role)
		}
	}
	put("first")
	next(store.ChangedTool, "first")
	put("gone") // while the watcher is busy
	put("last")
	tx, err := stores[1].pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("LOCK TABLE feed IN ACCESS EXCLUSIVE MODE")
	goOn <- struct{}{}
	for waits := false; !waits; { // until it reads the next changes
		if err := stores[1].pool.QueryRow(t.Context(),
			"SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'feed'::regclass AND NOT granted)").Scan(
			&waits); err != nil {
			t.Fatal(err)
		}
	}
	exec(`DELETE FROM feed WHERE convert_from(doc, 'UTF8')::json->>'Role' <> 'last'`)
	exec("UPDATE feed_floor SET xid = f.xid, n = f.n - 1 FROM feed f")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	next(store.ChangedUnseen, "")
	release()
	next(store.ChangedTool, "last")
}

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// feedPlace is a place in the feed.
type feedPlace struct {
	xid uint64
	n   int64
}

func (p feedPlace) cursor() store.Cursor {
	return store.Cursor(strconv.FormatUint(p.xid, 10) + "." + strconv.FormatInt(p.n, 10))
}

func (p feedPlace) before(q feedPlace) bool { return p.xid < q.xid || p.xid == q.xid && p.n < q.n }

func parseCursor(c store.Cursor) (p feedPlace, err error) {
	xid, n, _ := strings.Cut(string(c), ".")
	if p.xid, err = strconv.ParseUint(xid, 10, 64); err == nil {
		p.n, err = strconv.ParseInt(n, 10, 64)
	}
	return p, err
}

// watcher is one reader of the feed.
type watcher struct {
	store   *Store
	changed func(store.Change)
	since   string // the snapshot of the beginning, whose changes are not reported; "" for a reader that came back

	mu      sync.Mutex
	at      feedPlace // what was reported last; guarded by mu
	stopped bool      // guarded by mu
}

// Watch is part of store.Store. A replica that stays away for longer than Options.FeedAge finds its cursor gone.
func (s *Store) Watch(from store.Cursor, changed func(store.Change)) (stop func(), err error) {
	w := &watcher{store: s, changed: changed}
	ctx, cancel := context.WithTimeout(s.background, readRetry+pingTimeout)
	defer cancel()
	if err := s.read(ctx, func(ctx context.Context) error { return w.begin(ctx, from) }); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(s.background)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		end()
		return nil, errClosed
	}
	s.watchers[w] = true
	s.running.Go(func() { w.run(ctx) })
	return func() {
		end()
		w.mu.Lock() // nothing is reported any more when it returns
		w.stopped = true
		w.mu.Unlock()
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}, nil
}

// begin finds the place to begin at.
func (w *watcher) begin(ctx context.Context, from store.Cursor) error {
	var floor, oldest, next feedPlace
	var snapshot string
	if err := w.store.pool.QueryRow(ctx, `SELECT f.xid::text::int8, f.n, pg_snapshot_xmin(s)::text::int8, pg_snapshot_xmax(s)::text::int8, s::text
		FROM feed_floor f, pg_current_snapshot() AS s`).Scan(&floor.xid, &floor.n, &oldest.xid, &next.xid, &snapshot); err != nil {
		return err
	}
	if from == "" {
		w.at, w.since = oldest, snapshot
		raise(&w.store.begun, next.xid)
		return nil
	}
	at, err := parseCursor(from)
	if err != nil || at.before(floor) || !at.before(next) {
		return fmt.Errorf("%w: the place %q in the change feed", store.ErrGone, from)
	}
	w.at = at
	return nil
}

// settle waits until the stable part of the log has all calls that are not reported to watchers of "now", since they were there when these began: until
// no transaction runs that ran then. Who reads the log up to a watcher's beginning would miss them otherwise.
func (s *Store) settle(ctx context.Context) error {
	for begun := s.begun.Load(); s.settled.Load() < begun; {
		var oldest uint64
		if err := s.read(ctx, func(ctx context.Context) error {
			return s.pool.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8").Scan(&oldest)
		}); err != nil {
			return err
		}
		if raise(&s.settled, oldest); oldest >= begun {
			return nil
		}
		select {
		case <-time.After(pageEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// raise sets a number that only grows.
func raise(n *atomic.Uint64, to uint64) {
	for old := n.Load(); old < to && !n.CompareAndSwap(old, to); old = n.Load() {
	}
}

// pageEvery bounds how often a watcher reads, unless somebody waits for what it reports: changes that come close together are read at once.
const pageEvery = 20 * time.Millisecond

// run reports changes until ctx ends.
func (w *watcher) run(ctx context.Context) {
	poll := time.NewTicker(w.store.o.Poll)
	defer poll.Stop()
	for {
		rung, urgent := w.store.bell.Wait(), w.store.urgent.Wait()
		rest := time.After(pageEvery)
		more, err := w.page(ctx)
		if err != nil && ctx.Err() == nil {
			w.store.o.Logger.Debug().Err(err).Msg("the change feed could not be read; it is tried again")
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-rung:
		case <-urgent:
			continue
		case <-poll.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-urgent:
		case <-rest:
		}
	}
}

// feedPage is how many changes are read at once.
const feedPage = 256

// page reports the next changes, and whether there are more.
func (w *watcher) page(ctx context.Context) (more bool, err error) {
	w.mu.Lock()
	at := w.at
	w.mu.Unlock()
	ctx, end, err := w.store.health.while(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	if lost, err := w.lost(ctx, at); err != nil || lost {
		return lost, err
	}
	query := `SELECT f.xid::text::int8, f.n, f.doc, c.doc FROM feed f LEFT JOIN calls c ON f.call_id <> '' AND c.ns = f.ns AND c.call_id = f.call_id
		WHERE (f.xid, f.n) > ($1::text::xid8, $2) AND f.xid < pg_snapshot_xmin(pg_current_snapshot())`
	args := []any{strconv.FormatUint(at.xid, 10), at.n}
	if w.since != "" {
		query += " AND NOT pg_visible_in_snapshot(f.xid, $3::text::pg_snapshot)"
		args = append(args, w.since)
	}
	rows, err := w.store.pool.Query(ctx, query+" ORDER BY f.xid, f.n LIMIT "+strconv.Itoa(feedPage), args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	read := 0
	for ; rows.Next(); read++ {
		if err := w.report(rows); err != nil {
			return false, err
		}
	}
	if read > 0 {
		w.store.progress.Ring()
	}
	return read == feedPage, rows.Err()
}

// lost reports to the watcher that changes behind the place are gone, and goes on behind them, if they are.
func (w *watcher) lost(ctx context.Context, at feedPlace) (bool, error) {
	var floor feedPlace
	if err := w.store.pool.QueryRow(ctx, "SELECT xid::text::int8, n FROM feed_floor").Scan(&floor.xid, &floor.n); err != nil || !at.before(floor) {
		return false, err
	}
	for _, name := range w.store.names() {
		w.store.forget(name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == at && !w.stopped {
		w.changed(store.Change{Kind: store.ChangedUnseen, Cursor: floor.cursor()})
		w.at = floor
	}
	return true, nil
}

// names lists the namespaces that this replica has in use.
func (s *Store) names() []agent.Namespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.spaces))
}

// report reports one change.
func (w *watcher) report(row pgx.Rows) error {
	var at feedPlace
	var doc, log []byte
	if err := row.Scan(&at.xid, &at.n, &doc, &log); err != nil {
		return err
	}
	var c store.Change
	if err := json.Unmarshal(doc, &c); err != nil {
		return fmt.Errorf("stored change: %w", err)
	}
	c.Cursor = at.cursor()
	if log != nil {
		e, err := decodeCall(log)
		if err != nil {
			return err
		}
		c.Log = &e
	}
	if c.Kind == store.ChangedNamespace {
		w.store.forget(c.Namespace)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.changed(c)
		w.at = at
	}
	return nil
}

// awaiting returns the watchers that will see what is committed from now on.
func (s *Store) awaiting() []*watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*watcher, 0, len(s.watchers))
	for w := range s.watchers {
		out = append(out, w)
	}
	return out
}

// shownLimit bounds how long a change waits for the watchers of its replica.
const shownLimit = time.Second

// shown returns when these watchers have seen the change at that place, so that who made it does not read from this replica's caches what was
// before. A transaction that takes long, anywhere in the database's server, holds up the feed: then it does not wait for long.
func (s *Store) shown(watchers []*watcher, at feedPlace) {
	timeout := time.NewTimer(shownLimit)
	defer timeout.Stop()
	s.urgent.Ring()
	for _, w := range watchers {
		for {
			rung := s.progress.Wait()
			w.mu.Lock()
			seen := w.stopped || !w.at.before(at)
			w.mu.Unlock()
			if seen {
				break
			}
			select {
			case <-rung:
			case <-timeout.C:
				return
			case <-s.background.Done():
				return
			}
		}
	}
}

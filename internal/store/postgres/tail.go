package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// tail reads the end of the feed for all watchers that are caught up, so the cost does not grow with their number. It
// calls them one after another, so none of them may block.
type tail struct {
	reading sync.Mutex // held while a page is read and reported
	at      reach      // last place that was read; guarded by reading
}

// pageEvery is the minimum interval between reads of the tail, unless somebody waits for its reports. Thus changes in
// quick succession are read together.
const pageEvery = 20 * time.Millisecond

// runTail reports changes to the watchers that are caught up, until ctx ends.
func (s *Store) runTail(ctx context.Context) {
	poll := time.NewTicker(s.o.Poll)
	defer poll.Stop()
	for {
		rung, urgent := s.bell.Wait(), s.urgent.Wait()
		rest := time.After(pageEvery)
		more, err := s.tailPage(ctx)
		if err != nil && ctx.Err() == nil {
			s.o.Logger.Debug().Err(err).Msg("the change feed could not be read; it is tried again")
		}
		// The page was full.
		if more && err == nil {
			continue
		}
		// Wait for a change and then for the rest of pageEvery, unless somebody is in a hurry.
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

// tailPage reports the next changes to the watchers that are caught up, and returns whether there may be more.
func (s *Store) tailPage(ctx context.Context) (more bool, err error) {
	s.tail.reading.Lock()
	defer s.tail.reading.Unlock()
	to := s.caughtUp()
	if len(to) == 0 {
		return false, nil
	}
	s.tail.at, more, err = s.page(ctx, s.tail.at, to)
	return more, err
}

// caughtUp returns the watchers for which the tail reads.
func (s *Store) caughtUp() []*watcher {
	return slices.DeleteFunc(s.awaiting(), func(w *watcher) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.caught
	})
}

// feedPage is the number of changes read at once.
const feedPage = 256

// page reports the next changes after at to the watchers. It returns the new place, and whether there may be more.
func (s *Store) page(ctx context.Context, at reach, to []*watcher) (_ reach, more bool, err error) {
	ctx, end, err := s.health.while(ctx)
	if err != nil {
		return at, false, err
	}
	defer end()
	// A dead connection can look alive, and all watchers wait for this one.
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	changes, err := s.changesBehind(ctx, at.feedPlace)
	if err != nil {
		return at, false, err
	}
	floor := reach{} // read after the changes, which may have been removed just before
	if err := s.pool.QueryRow(ctx,
		"SELECT xid::text::int8, n, pg_postmaster_start_time() FROM feed_floor").Scan(&floor.xid, &floor.n,
		&floor.server); err != nil {
		return at, false, err
	}
	switch {
	case !floor.server.Equal(at.server):
		return s.pageElsewhere(ctx, at, to)
	case at.before(floor.feedPlace): // changes after the place are gone
		if err := s.forgetAll(ctx); err != nil {
			return at, false, err
		}
		for _, w := range to {
			w.lose(floor.feedPlace)
		}
		return floor, true, nil
	}
	for _, x := range changes {
		if x.change.Kind == store.ChangedNamespace {
			if err := s.forget(ctx, x.change.Namespace); err != nil {
				return at, false, err
			}
		}
		for _, w := range to {
			w.hear(x.at, x.change)
		}
		at.feedPlace = x.at
	}
	if len(changes) > 0 {
		s.progress.Ring()
	}
	return at, len(changes) == feedPage, nil
}

// pageElsewhere restarts watchers on a server that may lack changes that they have seen.
func (s *Store) pageElsewhere(ctx context.Context, at reach, to []*watcher) (_ reach, more bool, err error) {
	now, err := s.present(ctx)
	if err != nil {
		return at, false, err
	}
	if err := s.forgetAll(ctx); err != nil {
		return at, false, err
	}
	s.settling.begin(&now)
	for _, w := range to {
		w.restart(&now)
	}
	s.progress.Ring()
	return now.begin, true, nil
}

// forgetAll drops the handles of namespaces that no longer exist.
func (s *Store) forgetAll(ctx context.Context) error {
	for _, name := range s.names() {
		if err := s.forget(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// fedChange is a change with its place in the feed.
type fedChange struct {
	at     feedPlace
	change store.Change
}

// changesBehind reads the next changes after a place.
func (s *Store) changesBehind(ctx context.Context, at feedPlace) ([]fedChange, error) {
	rows, err := s.pool.Query(ctx,
		`SELECT f.xid::text::int8, f.n, f.doc, c.doc FROM feed f LEFT JOIN calls c ON f.call_id <> '' AND c.ns = f.ns AND c.call_id = f.call_id
		WHERE (f.xid, f.n) > ($1::text::xid8, $2) AND f.xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY f.xid, f.n LIMIT `+strconv.Itoa(feedPage),
		strconv.FormatUint(at.xid, 10), at.n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, readChange)
}

// names returns the namespaces for which this replica has handles.
func (s *Store) names() []agent.Namespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.spaces))
}

// readChange reads a change from a row.
func readChange(row pgx.CollectableRow) (x fedChange, err error) {
	var doc, log []byte
	if err := row.Scan(&x.at.xid, &x.at.n, &doc, &log); err != nil {
		return x, err
	}
	if err := json.Unmarshal(doc, &x.change); err != nil {
		return x, fmt.Errorf("stored change: %w", err)
	}
	x.change.Cursor = x.at.cursor()
	if log != nil {
		x.change.Log = &agent.LogEntry{}
		*x.change.Log, err = decodeCall(log)
	}
	return x, err
}

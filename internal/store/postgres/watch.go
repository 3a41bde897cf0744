package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
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

// parseCursor parses the result of cursor. Any other text is an error.
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
	read    reach // last place that it has read by itself; used by its goroutine only, until it is caught up

	mu sync.Mutex
	// since has the changes from before the watcher began, which are not reported. It is the zero value for a watcher
	// that continues from a cursor. Guarded by mu, as is everything below.
	since   snapshot
	at      feedPlace // place of the last reported change
	caught  bool      // the tail reads for this watcher
	stopped bool
}

// Watch implements store.Store. The cursor of a replica that was away for longer than Options.FeedAge is gone.
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
		w.mu.Lock() // nothing is reported any more once stop returns
		w.stopped = true
		w.mu.Unlock()
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}, nil
}

// begin determines the place to begin at.
func (w *watcher) begin(ctx context.Context, from store.Cursor) (err error) {
	now, err := w.store.present(ctx)
	if err != nil {
		return err
	}
	if from == "" {
		w.at, w.since = now.begin.feedPlace, now.seen
		w.read = now.begin
		w.store.settling.begin(&now)
		return nil
	}
	at, err := parseCursor(from)
	// Gone are places below the floor, and places that this server has not reached.
	if err != nil || at.before(now.floor) || (feedPlace{xid: now.seen.next}).before(at) {
		return fmt.Errorf("%w: the place %q in the change feed", store.ErrGone, from)
	}
	w.at, w.read = at, reach{at, now.begin.server}
	return nil
}

// reach is the last place that was read. Another server, or the same one after a restart, may lack what was read there
// and reuse its transaction ids.
type reach struct {
	feedPlace
	server time.Time // when the server started
}

// present is the state of the feed when a watcher begins.
type present struct {
	floor feedPlace // changes at or below it may be gone
	seen  snapshot  // transactions whose changes exist already
	begin reach     // place before all other changes
}

// present reads the state of the feed. The end of the feed comes from the transaction ids of stored changes, because a
// promoted standby assigns ids again that it did not receive.
func (s *Store) present(ctx context.Context) (p present, err error) {
	var oldest, newest uint64
	var text string
	if err := s.pool.QueryRow(ctx, `SELECT f.xid::text::int8, f.n, pg_snapshot_xmin(s)::text::int8, s::text,
			coalesce((SELECT xid FROM feed ORDER BY xid DESC, n DESC LIMIT 1), f.xid)::text::int8, pg_postmaster_start_time()
		FROM feed_floor f, pg_current_snapshot() AS s`).Scan(&p.floor.xid, &p.floor.n, &oldest, &text, &newest, &p.begin.server); err != nil {
		return p, err
	}
	if p.seen, err = parseSnapshot(text); err != nil {
		return p, err
	}
	p.seen.next = max(newest, p.floor.xid) + 1
	p.begin.xid = min(oldest, p.seen.next)
	return p, nil
}

// run reports the existing changes until the watcher is caught up.
func (w *watcher) run(ctx context.Context) {
	for {
		rung := w.store.bell.Wait()
		err := w.readAll(ctx) // done by itself first, because it may take long and others must not wait
		if err == nil {
			err = w.join(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		w.store.o.Logger.Debug().Err(err).Msg("the change feed could not be read; it is tried again")
		select {
		case <-ctx.Done():
		case <-rung:
		case <-time.After(w.store.o.Poll):
		}
	}
}

// readAll reports all changes after the last place that the watcher has read.
func (w *watcher) readAll(ctx context.Context) (err error) {
	for more := true; more && err == nil; {
		w.read, more, err = w.store.page(ctx, w.read, []*watcher{w})
	}
	return err
}

// join hands the watcher over to the tail. The tail does not read while the watcher reads the last changes, so none is
// missed. Changes that both have read are reported once.
func (w *watcher) join(ctx context.Context) error {
	t := &w.store.tail
	t.reading.Lock()
	defer t.reading.Unlock()
	if err := w.readAll(ctx); err != nil {
		return err
	}
	if len(w.store.caughtUp()) == 0 {
		t.at = w.read
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.caught = true
	return nil
}

// hear reports a change, unless it was already reported or was made before the watcher began.
func (w *watcher) hear(at feedPlace, c store.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped && w.at.before(at) && !w.since.has(at.xid) {
		w.changed(c)
		w.at = at
	}
}

// lose reports that changes up to the floor are gone, if the watcher has not seen them.
func (w *watcher) lose(floor feedPlace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at.before(floor) {
		w.unseen(floor)
	}
}

// restart starts the watcher again at the present.
func (w *watcher) restart(now *present) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = now.seen
	w.unseen(now.begin.feedPlace)
}

// unseen reports that the watcher has missed changes, and continues at that place. The caller holds mu.
func (w *watcher) unseen(at feedPlace) {
	if !w.stopped {
		w.changed(store.Change{Kind: store.ChangedUnseen, Cursor: at.cursor()})
		w.at = at
	}
}

// awaiting returns the current watchers. They will see what is committed from now on.
func (s *Store) awaiting() []*watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*watcher, 0, len(s.watchers))
	for w := range s.watchers {
		out = append(out, w)
	}
	return out
}

// shownLimit is how long a change waits for the watchers of its replica.
const shownLimit = time.Second

// shown waits until these watchers have seen the change at that place, so whoever made the change does not read older
// data from this replica's caches. A long transaction anywhere on the database server holds up the feed; then shown
// stops waiting after shownLimit.
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

// feedRow is a change with the other columns of its row in the feed.
type feedRow struct {
	ns     int64
	call   string // key of a call's id, for looking up its entry
	change store.Change
}

// publish adds changes to the feed and returns the place of the last one.
func publish(ctx context.Context, tx pgx.Tx, ns int64, changes []store.Change) (last feedPlace, err error) {
	if len(changes) == 0 {
		return last, nil
	}
	rows := make([]feedRow, len(changes))
	for i, c := range changes {
		rows[i] = feedRow{ns: ns, change: c}
	}
	b := &pgx.Batch{}
	queueFeed(b, rows, &last)
	return last, tx.SendBatch(ctx, b).Close()
}

// queueFeed queues the insert of changes. When the batch runs, last is set to the place of the last change.
func queueFeed(b *pgx.Batch, changes []feedRow, last *feedPlace) {
	if len(changes) == 0 {
		return
	}
	var c columns
	for i := range changes {
		c.add(rowKey{ns: changes[i].ns, a: changes[i].call}, agent.Encoded(&changes[i].change))
	}
	b.Queue(`WITH added AS (INSERT INTO feed (ns, call_id, doc)
			SELECT ns, call_id, doc FROM unnest($1::int8[], $2::text[], $3::bytea[]) WITH ORDINALITY AS k(ns, call_id, doc, i) ORDER BY i RETURNING xid, n)
		SELECT xid::text::int8, n FROM added ORDER BY n DESC LIMIT 1`, c.ns, c.a, c.docs).QueryRow(func(row pgx.Row) error { return row.Scan(&last.xid, &last.n) })
}

// channel is the channel of the notifications.
const channel = "recurgentd_feed"

// notifyEvery is the minimum interval between notifications by this replica. sendHint does not wait for the disk,
// because a lost notification only causes a poll.
const (
	notifyEvery = 20 * time.Millisecond
	sendHint    = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('" + channel + "', '')"
)

// hint signals that the feed has a new change.
func (s *Store) hint() {
	s.bell.Ring()
	select {
	case s.hints <- struct{}{}:
	default:
	}
}

// notify forwards hints to other replicas until ctx ends. It does so outside of the transactions that made the changes,
// because transactions that notify wait for each other.
func (s *Store) notify(ctx context.Context) {
	pause := time.NewTicker(notifyEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hints:
			// A failure does not matter: others poll.
			_ = s.read(ctx, func(ctx context.Context) error {
				_, err := s.pool.Exec(ctx, sendHint)
				return err
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// listen rings the bell when another replica notifies, until ctx ends. Without a connection, polling finds the changes.
func (s *Store) listen(ctx context.Context, config *pgx.ConnConfig) {
	for ctx.Err() == nil {
		if err := s.listenOnce(ctx, config); err != nil && ctx.Err() == nil {
			s.o.Logger.Debug().Err(err).Msg("no notifications of other replicas; the change feed is polled")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pingEvery):
		}
	}
}

func (s *Store) listenOnce(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // nothing is left to send
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		s.bell.Ring()
	}
}

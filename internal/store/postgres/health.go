package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/recurgentd/recurgentd/internal/store"
)

const (
	pingEvery    = time.Second
	pingTimeout  = 2 * time.Second
	statsTimeout = 2 * time.Second
	// goneAfter is how long the database may be away before pending work is given up and new work is rejected at once.
	goneAfter = 3 * time.Second
)

// health records whether the last attempt to reach the database succeeded.
type health struct {
	mu    sync.Mutex
	err   error              // guarded by mu, as is everything below
	since time.Time          // time of the first failure
	there context.Context    // ends once the database has been away for goneAfter
	gone  context.CancelFunc // ends there
}

// get returns the error of the last attempt, or nil.
func (h *health) get() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// set records the result of an attempt. A closed store stays closed.
func (h *health) set(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.err, errClosed) {
		return
	}
	if h.err == nil {
		h.since = time.Now()
	}
	h.err = err
	if err != nil && h.gone != nil && time.Since(h.since) >= goneAfter {
		h.gone()
	} else if err == nil && h.there != nil && h.there.Err() != nil {
		h.there = nil // the next outage gets a new one
	}
}

// while returns a context that ends with ctx, or once the database has been away for goneAfter. Without that limit, a
// query on a silent connection would wait for minutes. It returns an error if the database has been away for that long
// already. The caller must call end when the work is done.
func (h *health) while(ctx context.Context) (_ context.Context, end func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.there == nil {
		h.there, h.gone = context.WithCancel(context.Background())
	}
	if h.err != nil && h.there.Err() != nil {
		return nil, nil, h.err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.there, func() { cancel(store.ErrAway) })
	return ctx, func() {
		stop()
		cancel(nil)
	}, nil
}

// away records that the database could not be reached.
func (h *health) away(err error) { h.set(unavailable(err)) }

// counted are counters since the store was opened.
type counted struct {
	calls, transactions atomic.Int64
	known               atomic.Int64 // transactions without reads
	groups, took        atomic.Int64 // transactions that committed calls, and their total duration in nanoseconds
	leasesLost          atomic.Int64
}

// every calls do at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}

// ping checks whether the database accepts writes.
func (s *Store) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	var standby bool
	err := s.pool.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", store.ErrAway, err)
	case standby:
		err = fmt.Errorf("%w: it is a standby", store.ErrAway)
	}
	s.health.set(err)
}

// away reports whether the error means that the database cannot be reached now, or has no primary. The operation may be
// retried. If a commit was sent, it is unknown whether it succeeded.
func away(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(refused.Code) == 5 {
		switch refused.Code[:2] {
		case "08", "53", "57", "58": // connection, resources, shutdown, I/O error of the server
			return refused.Code != codeCanceled
		}
		return refused.Code == codeReadOnly
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// unavailable wraps an error in store.ErrAway if it means that the database is away.
func unavailable(err error) error {
	if away(err) && !errors.Is(err, store.ErrReadOnly) {
		return fmt.Errorf("%w: %w", store.ErrAway, err)
	}
	return err
}

// Error codes of PostgreSQL.
const (
	codeCanceled  = "57014"
	codeReadOnly  = "25006" // a standby, or a primary that was demoted
	codeUnique    = "23505"
	codeSerialize = "40001"
	codeDeadlock  = "40P01"
	codeIdle      = "25P03" // idle_in_transaction_session_timeout expired
	codeLocked    = "55P03"
)

// contended reports whether the error is a conflict with another transaction, so a retry may succeed.
func contended(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case codeUnique, codeSerialize, codeDeadlock, codeIdle, codeLocked:
		return true
	}
	return false
}

// gauges are the last known figures of the database.
type gauges struct {
	mu  sync.Mutex
	now store.Stats // guarded by mu
}

// countedMost is the maximum number of rows of a table that are counted. For a larger table the database's estimate is
// used, so the cost of Stats does not depend on the size of the store.
const countedMost = 10_000

const (
	countRows = `SELECT CASE WHEN n <= $2 THEN n ELSE greatest(n, (SELECT reltuples::int8 FROM pg_class WHERE oid = $1::text::regclass)) END
		FROM (SELECT count(*) AS n FROM (SELECT 1 FROM `
	countStates = `SELECT state, count(*), (sum(count(*)) OVER ())::int8, (SELECT reltuples::int8 FROM pg_class WHERE oid = 'artifacts'::regclass)
		FROM (SELECT state FROM artifacts LIMIT $1) AS part GROUP BY state`
)

// Stats implements store.Store. While the database is away, gauges keep their last values.
func (s *Store) Stats() store.Stats {
	s.gauges.mu.Lock()
	defer s.gauges.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	if now, err := s.count(ctx); err == nil {
		s.gauges.now = now
	}
	out := s.gauges.now
	out.Commits, out.Fsyncs, out.Artifacts = s.commits.calls.Load(), s.commits.transactions.Load(),
		maps.Clone(out.Artifacts)
	return out
}

// Figures are figures about the use of the database since the store was opened.
type Figures struct {
	Groups      int64         // transactions that committed calls
	GroupsTook  time.Duration // total time from the request for a connection to the end of the commit
	PoolWaits   int64         // number of times that no connection was free
	PoolWaited  time.Duration // total time of these waits
	LostLeases  int64         // leases that could not be renewed in time
	Connections int64         // current number
}

// Figures returns the figures. It does not query the database.
func (s *Store) Figures() Figures {
	pool := s.pool.Stat()
	return Figures{s.commits.groups.Load(), time.Duration(s.commits.took.Load()), pool.EmptyAcquireCount(),
		pool.EmptyAcquireWaitTime(), s.commits.leasesLost.Load(), int64(pool.TotalConns())}
}

// count queries the database for the gauges.
func (s *Store) count(ctx context.Context) (out store.Stats, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		out.Artifacts = map[string]int{}
		b := &pgx.Batch{}
		for table, n := range map[string]*int64{"sessions": &out.Sessions, "tools": &out.Tools} {
			b.Queue(countRows+table+" LIMIT $2 + 1) AS part) AS counted", table,
				int64(countedMost)).QueryRow(func(row pgx.Row) error { return row.Scan(n) })
		}
		b.Queue("SELECT fold_stored(NULL)")
		b.Queue("SELECT " + storedColumns +
			" FROM stored WHERE (ns, owner) = (0, '')").Query(func(rows pgx.Rows) (err error) {
			for rows.Next() && err == nil {
				out.Stored, err = scanStored(rows)
			}
			return errors.Join(err, rows.Err())
		})
		b.Queue(countStates, int64(countedMost+1)).Query(func(rows pgx.Rows) error {
			var state string
			var n, read, all int64
			_, err := pgx.ForEachRow(rows, []any{&state, &n, &read, &all}, func() error {
				if read > countedMost && all > read {
					n = n * all / read
				}
				out.Artifacts[state] = int(n)
				return nil
			})
			return err
		})
		return s.pool.SendBatch(ctx, b).Close()
	})
	return out, err
}

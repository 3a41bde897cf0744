package postgres

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/store"
)

// gauges are how much the database held when it was last asked.
type gauges struct {
	mu  sync.Mutex
	now store.Stats // guarded by mu
}

// countedMost bounds the rows of a table that are counted. Of a larger one the database's own estimate is taken, so that the figures cost the
// same whatever is stored.
const countedMost = 10_000

const (
	countRows = `SELECT CASE WHEN n <= $2 THEN n ELSE greatest(n, (SELECT reltuples::int8 FROM pg_class WHERE oid = $1::text::regclass)) END
		FROM (SELECT count(*) AS n FROM (SELECT 1 FROM `
	countStates = `SELECT state, count(*), (sum(count(*)) OVER ())::int8, (SELECT reltuples::int8 FROM pg_class WHERE oid = 'artifacts'::regclass)
		FROM (SELECT state FROM artifacts LIMIT $1) AS part GROUP BY state`
)

// Stats is part of store.Store. While the database is away its gauges stay as they were.
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

// Figures are figures of the work with the database since the store was opened.
type Figures struct {
	Groups      int64         // transactions that committed calls
	GroupsTook  time.Duration // from the request for a connection to the end of the commit, in sum
	PoolWaits   int64         // times that all connections were in use when one was needed
	PoolWaited  time.Duration // for them, in sum
	LostLeases  int64         // that could not be renewed in time
	Connections int64         // now
}

// Figures returns them. It asks the database nothing.
func (s *Store) Figures() Figures {
	pool := s.pool.Stat()
	return Figures{s.commits.groups.Load(), time.Duration(s.commits.took.Load()), pool.EmptyAcquireCount(),
		pool.EmptyAcquireWaitTime(), s.commits.leasesLost.Load(), int64(pool.TotalConns())}
}

// count asks the database for the gauges.
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

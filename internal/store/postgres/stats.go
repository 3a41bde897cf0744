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
